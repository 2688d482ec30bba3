"""Verdicts as the contract words them."""

from reporter.verdict.facts import Waiting
from tests.situations import (
    pod,
)

SUCCESS = ("R", "True", "AllChecked", "12 of 12")


TIMEOUT = ("T", "False", "AdapterTimeout", "Adapter did not produce results within 5m0s")


KILLED = (
    "O",
    "False",
    "AdapterOOMKilled",
    "Adapter container was killed due to out of memory (OOMKilled)",
)


EMPTY = (
    "I",
    "False",
    "InvalidResultFormat",
    "Failed to parse adapter result: the file is empty",
)


FAILED = ("X", "False", "AdapterExitedWithError", "Adapter container exited with code 1: Error")


NO_FILE = (
    "X",
    "False",
    "AdapterMissingResults",
    "Adapter container exited successfully (code 0) but did not produce a valid result file:"
    " Completed",
)


RUNS = ("A", "Unknown", "AdapterRunning", "Adapter container is running")


def waiting(reason, message="said the kubelet"):
    """A Pod whose adapter waits for that reason."""
    return pod(Waiting(reason, message), phase="Pending")
