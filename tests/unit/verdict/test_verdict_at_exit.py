"""RESULT_TRUST=at-exit: a result is the verdict once the adapter has ended, and its end counts."""

from dataclasses import replace

import pytest

from reporter.verdict.annotation import evidence
from reporter.verdict.case import Policy
from reporter.verdict.decide import decide
from reporter.verdict.facts import (
    Container,
    Disruption,
    Form,
    Job,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Running,
    Waiting,
)
from tests.situations import (
    BAD,
    LOOPING,
    LOST,
    ON_FAILURE,
    OOM,
    PENDING,
    at,
    deleted,
    ended,
    final,
    in_form,
    observed,
    pod,
    revisable,
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import FAILED, KILLED, SUCCESS, TIMEOUT

AT_EXIT = Policy(at_exit=True)
FAILURE = ("R", "False", "QuotaLow", "2 of 12 failed")
DEADLINE = (
    "D",
    "False",
    "AdapterTimeout",
    "Adapter did not finish within the Job's activeDeadlineSeconds (20s)",
)
LOOPS = (
    "C",
    "Unknown",
    "AdapterCrashLooping",
    "Adapter container keeps failing: last exit code 1, restarted 2 times",
)
DELETED = (
    "N",
    "Unknown",
    "AdapterInterrupted",
    "Pod was deleted before a verdict was known; adapter container is running",
)


def going_on(said):
    """Row A."""
    return revisable("A", "Unknown", "AdapterRunning", f"Adapter {said}")


def again(state, *, end=None, restarts=1, **fields):
    """The adapter under OnFailure after a run from second 1 to second 10."""
    last = end or ended(1, start=1, end=10)
    return pod(state, last=last, restarts=restarts, restart=ON_FAILURE, **fields)


NO_ADAPTER = pod(adapter=None, misfit="no container 'adapter'; containers: worker")
BETWEEN_RUNS = pod(LOOPING, restart=ON_FAILURE)
"""As a deletion leaves it: without `lastState`."""
EVICTED = Disruption("EvictionByEvictionAPI", "drained")
THROWN_AWAY = Job(failure="BackoffLimitExceeded")

CASES = {
    # while it runs
    "success while it runs": (
        observed((3, pod(running()), valid())),
        going_on("container is running; result received: AllChecked"),
    ),
    "failure while it runs": (
        observed((3, pod(running()), valid(result=BAD))),
        going_on("container is running; result received: QuotaLow"),
    ),
    "no result while it runs": (observed((3, pod(running()))), going_on("container is running")),
    "success, the API still shows it waiting": (
        observed((3, pod(Waiting("PodInitializing")), valid())),
        going_on("container is waiting: PodInitializing; result received: AllChecked"),
    ),
    "OnFailure: success while it runs": (
        observed((3, pod(running(), restart=ON_FAILURE), valid())),
        going_on("container is running; result received: AllChecked"),
    ),
    # it ended by itself
    "success and exit 0": (observed((11, pod(ended(0)), valid())), final(*SUCCESS)),
    "success and exit 1": (observed((11, pod(ended(1)), valid())), final(*FAILED)),
    "success and OOM kill": (observed((11, pod(OOM), valid())), final(*KILLED)),
    "success and OOM kill of a child, exit 0": (
        observed((11, pod(ended(0, "OOMKilled")), valid())),
        final(*KILLED),
    ),
    "failure and exit 0": (observed((11, pod(ended(0)), valid(result=BAD))), final(*FAILURE)),
    "failure and exit 1": (observed((11, pod(ended(1)), valid(result=BAD))), final(*FAILURE)),
    "failure and OOM kill": (observed((11, pod(OOM), valid(result=BAD))), final(*FAILURE)),
    "success and container lost": (observed((11, pod(LOST), valid())), final(*SUCCESS)),
    "success and exit 1, then deletion": (
        observed((25, deleted(pod(ended(1)), 20), valid())),
        final(*FAILED),
    ),
    # under OnFailure it may run again
    "OnFailure: success and exit 0": (
        observed((11, pod(ended(0), restart=ON_FAILURE), valid())),
        final(*SUCCESS),
    ),
    "OnFailure: success and exit 1, it runs again": (
        observed((11, pod(ended(1), restart=ON_FAILURE), valid())),
        going_on("container ended with exit code 1"),
    ),
    "OnFailure: success and exit 1, in back-off": (
        observed((11, again(LOOPING, restarts=0), valid())),
        going_on("container is waiting: CrashLoopBackOff"),
    ),
    "OnFailure: failure and exit 1, in back-off": (
        observed((11, again(LOOPING, restarts=0), valid(result=BAD))),
        going_on("container is waiting: CrashLoopBackOff; result received: QuotaLow"),
    ),
    "OnFailure: success and exit 1, in a crash loop": (
        observed((31, again(LOOPING, end=ended(1, start=20, end=30), restarts=2), valid(25))),
        revisable(*LOOPS),
    ),
    "OnFailure: success and exit 1, in back-off at the end of the wait time": (
        observed((301, again(LOOPING, restarts=0), valid())),
        final(*TIMEOUT),
    ),
    "OnFailure: failure and exit 1, in back-off at the end of the wait time": (
        observed((301, again(LOOPING, restarts=0), valid(result=BAD))),
        final(*FAILURE),
    ),
    "OnFailure: the second run has a result": (
        observed((22, again(running(20)), valid(21))),
        going_on("container is running; result received: AllChecked"),
    ),
    "back-off limit: success and exit 1 of the run before the extra run": (
        observed(
            (11, pod(ended(1), restart=ON_FAILURE), valid(9)),
            (13, deleted(again(running(12)), 13), valid(9)),
            job=THROWN_AWAY,
            stopped=13,
        ),
        final(*FAILED),
    ),
    "back-off limit: success and exit 1, the last state not shown any more": (
        observed(
            (11, again(LOOPING, restarts=0), valid(9)),
            (13, deleted(BETWEEN_RUNS, 13), valid(9)),
            job=THROWN_AWAY,
            stopped=13,
        ),
        final(*FAILED),
    ),
    "deadline: success and exit 1, the last state not shown any more": (
        observed(
            (19, again(LOOPING, restarts=0), valid(9)),
            (20, deleted(BETWEEN_RUNS, 20), valid(9)),
            job=Job("u", at(0), 20.0),
            stopped=20,
        ),
        final(*FAILED[:3], f"{FAILED[3]}; the Job's activeDeadlineSeconds (20s) passed"),
    ),
    "the Pod's deadline, whose time is that of the run's end: success and exit 1": (
        observed(
            (19, again(LOOPING, restarts=0, deadline=20.0), valid(9)),
            (20, again(LOOPING, restarts=0, deadline=20.0, failing_at=at(10)), valid(9)),
            stopped=20,
        ),
        final(*FAILED[:3], f"{FAILED[3]}; the Pod's activeDeadlineSeconds (20s) passed"),
    ),
    "deletion: success and exit 1, then an end that the kubelet has invented": (
        observed(
            (19, again(LOOPING, restarts=0), valid(9)),
            (20, deleted(pod(LOST, restart=ON_FAILURE), 20), valid(9)),
            stopped=20,
        ),
        final(
            "N",
            "Unknown",
            "AdapterInterrupted",
            "Pod was deleted before a verdict was known; adapter container ended with exit code"
            " 137",
        ),
    ),
    "back-off limit: success and OOM kill of the run before the extra run": (
        observed(
            (11, pod(OOM, restart=ON_FAILURE), valid(9)),
            (13, deleted(again(running(12), end=OOM), 13), valid(9)),
            job=THROWN_AWAY,
            stopped=13,
        ),
        final(*KILLED),
    ),
    "back-off limit: success and the container lost before the extra run": (
        observed(
            (11, pod(LOST, restart=ON_FAILURE), valid(9)),
            (13, deleted(again(running(12), end=LOST), 13), valid(9)),
            job=THROWN_AWAY,
            stopped=13,
        ),
        final(*SUCCESS),
    ),
    "back-off limit: failure and exit 1 of the run before the extra run": (
        observed(
            (11, pod(ended(1), restart=ON_FAILURE), valid(9, result=BAD)),
            (13, deleted(again(running(12)), 13), valid(9, result=BAD)),
            job=THROWN_AWAY,
            stopped=13,
        ),
        final(*FAILURE),
    ),
    # nobody sees its end: the wait time
    "success, still running at the end of the wait time": (
        observed((301, pod(running()), valid())),
        final(*SUCCESS),
    ),
    "OnFailure: success, still running at the end of the wait time": (
        observed((301, pod(running(), restart=ON_FAILURE), valid())),
        final(*SUCCESS),
    ),
    "success, not started at the end of the wait time": (
        observed((301, pod(), valid())),
        revisable(*SUCCESS),
    ),
    "success and exit 1 at the end of the wait time": (
        observed((301, pod(ended(1)), valid())),
        final(*FAILED),
    ),
    # the Pod cannot be read
    "Pod refused for less than 30 s": (
        observed((3, PodRefused()), (32, PodRefused(), valid())),
        going_on("container cannot be observed; result received: AllChecked"),
    ),
    "Pod refused for 30 s": (
        observed((3, PodRefused()), (33, PodRefused(), valid())),
        revisable(*SUCCESS),
    ),
    "Pod refused when SIGTERM comes": (
        observed((3, PodRefused(), valid()), stopped=3),
        revisable(*SUCCESS),
    ),
    "Pod refused for less than 30 s after it was shown, the wait time is over": (
        observed((3, pod(running())), (299, PodRefused()), (301, PodRefused(), valid())),
        going_on("container is running; result received: AllChecked"),
    ),
    "Pod refused for 30 s after it was shown": (
        observed((3, pod(running())), (5, PodRefused()), (35, PodRefused(), valid())),
        revisable(*SUCCESS),
    ),
    "Pod refused after exit 1 was shown": (
        observed((11, pod(ended(1)), valid()), (12, PodRefused(), valid())),
        final(*FAILED),
    ),
    "Pod refused at the end of the wait time": (
        observed((270, PodRefused()), (300, PodRefused(), valid())),
        final(*SUCCESS),
    ),
    "Pod never seen": (observed((3, PodNeverSeen(), valid())), revisable(*SUCCESS)),
    "Pod never seen at the end of the wait time": (
        observed((300, PodNeverSeen(), valid())),
        final(*SUCCESS),
    ),
    "no answer about the Pod yet": (
        observed((3, PodUnknown(), valid())),
        going_on("container cannot be observed; result received: AllChecked"),
    ),
    "misfit": (
        observed((3, NO_ADAPTER, valid())),
        revisable(
            "M",
            "Unknown",
            "ReporterConfigError",
            "Invalid reporter settings: no container 'adapter'; containers: worker",
        ),
    ),
    "misfit at the end of the wait time": (
        observed((300, NO_ADAPTER, valid())),
        final(*SUCCESS),
    ),
    "Pod gone while it ran": (observed((21, PodGone(pod(running())), valid())), final(*SUCCESS)),
    "Pod gone after exit 1": (observed((21, PodGone(pod(ended(1))), valid())), final(*FAILED)),
    # the Pod is taken away
    "success and exit 143 after the deletion": (
        observed((25, deleted(pod(ended(143, end=22)), 20), valid())),
        final(*SUCCESS),
    ),
    "success and OOM kill after the deletion": (
        observed((25, deleted(pod(replace(OOM, finished_at=at(22))), 20), valid())),
        final(*SUCCESS),
    ),
    "success, evicted": (
        observed((25, deleted(pod(ended(137, end=22), disruption=EVICTED), 20), valid())),
        final(*SUCCESS),
    ),
}


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize(("o", "expected"), CASES.values(), ids=CASES.keys())
def test_at_exit(o, expected, form):
    """In both forms the same, except for when a deletion is settled."""
    if o.stopping_since is not None and form is Form.CLASSIC:
        o = replace(o, now=o.stopping_since + 29)

    assert expected == verdict(in_form(o, form), AT_EXIT)


def test_a_result_that_waits_for_a_deletion_to_settle():
    """Until then the deletion is shown, because a True before the end may have to be taken back."""
    running_on = deleted(pod(running()), 20)
    job = Job("u", at(0), 20.0)

    assert revisable(*DELETED) == verdict(observed((21, running_on, valid())), AT_EXIT)
    assert revisable(*DEADLINE) == verdict(observed((21, running_on, valid()), job=job), AT_EXIT)
    stopped = observed((22, running_on, valid()), stopped=22)
    assert final(*SUCCESS) == verdict(stopped, AT_EXIT)
    classic = in_form(stopped, Form.CLASSIC)
    assert revisable(*DELETED) == verdict(classic, AT_EXIT)
    assert final(*SUCCESS) == verdict(replace(classic, now=51), AT_EXIT)


def test_a_run_that_a_deletion_finds_between_two_tries():
    """Its own exit code stands against its result, so the deletion is the verdict."""
    o = observed((21, deleted(again(LOOPING), 20), valid()), stopped=21)

    assert "N" == decide(o, AT_EXIT).report.row


def test_a_reporter_that_was_stopped_alone_waits_for_the_end_first():
    """Then the result is the best that is known; whoever starts next may know better."""
    o = observed((21, pod(running()), valid()), stopped=21)

    assert PENDING == verdict(o, AT_EXIT)
    assert revisable(*SUCCESS) == verdict(replace(o, now=24), AT_EXIT)


@pytest.mark.parametrize("run", [ended(1), OOM])
def test_what_the_file_said_is_in_the_evidence(run):
    """The reason of the result that its run's end has outranked."""
    o = observed((11, pod(run), valid()))

    file = evidence(o, at(11))["file"]
    assert ("valid", "AllChecked") == (file["state"], file["resultReason"])


def test_what_the_file_of_the_run_before_said_is_in_the_evidence():
    """Also where the extra run of the back-off limit has taken its place."""
    first = pod(ended(1), restart=ON_FAILURE)
    extra = deleted(again(running(12)), 13)
    gone = replace(extra, adapter=Container("adapter", Running(at(12)), None, 1))
    o = observed((11, first, valid(9)), (13, PodSeen(gone), valid(9)), job=THROWN_AWAY)

    assert "AllChecked" == evidence(o, at(13))["lastEndedRun"]["resultReason"]
