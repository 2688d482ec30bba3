"""Verdicts and Pods that several tests of an interruption share."""

from dataclasses import replace

from reporter.verdict.facts import Disruption, Job
from tests.situations import (
    at,
    deleted,
    pod,
    running,
)

BEFORE = "before a verdict was known; adapter container"


DELETED = ("N", "Unknown", "AdapterInterrupted", f"Pod was deleted {BEFORE} is running")


SUSPENDED = ("N", "Unknown", "AdapterInterrupted", f"Job was suspended {BEFORE} is running")


GONE = ("N", "Unknown", "AdapterInterrupted", f"Pod is gone {BEFORE} is running")


GIVEN_UP = (
    "N",
    "Unknown",
    "AdapterInterrupted",
    f"Pod was stopped by the kubelet {BEFORE} is running",
)


STOPPED = ("N", "Unknown", "AdapterInterrupted", f"Reporter was stopped {BEFORE} is running")


JOB_LATE = (
    "D",
    "False",
    "AdapterTimeout",
    "Adapter did not finish within the Job's activeDeadlineSeconds (20s)",
)


POD_LATE = (
    "D",
    "False",
    "AdapterTimeout",
    "Adapter did not finish within the Pod's activeDeadlineSeconds (20s)",
)


EVICTED = (
    "E",
    "Unknown",
    "AdapterEvicted",
    "Pod was disrupted: EvictionByEvictionAPI: by the API",
)


SHUT_DOWN = (
    "E",
    "Unknown",
    "AdapterEvicted",
    "Pod was disrupted: Terminated: node shutdown",
)


runs = pod(running())


going = deleted(runs)  # deletion asked for at 20 s, 30 s of grace


failing = pod(running(), failing_at=at(20))


evicting = replace(going, disruption=Disruption("EvictionByEvictionAPI", "by the API"))


shut_down = pod(running(), disruption=Disruption("Terminated", "node shutdown", under_way=True))


suspended = Job(suspended=True)


limited = Job(started_at=at(0), deadline=20)


exhausted = Job(failure="BackoffLimitExceeded")
