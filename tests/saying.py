"""What `decide` says of an observation, in few words.

`T!` is row T, final; `A?` is row A, revisable; `-` is no verdict yet. A row in its usual words is
its letter alone. What differs from them follows: an ending (`...`), a message without its first two
words, or status, reason and message.
"""

from __future__ import annotations

from typing import Any

from reporter.verdict.case import Observation, Policy
from reporter.verdict.decide import Pending, Settled, decide
from reporter.verdict.rows import Report
from tests.situations import observed

BEFORE = " before a verdict was known; adapter container "
OURS = "Adapter container "
_USUAL = {
    "R": ("True", "AllChecked", "12 of 12"),
    "T": ("False", "AdapterTimeout", "Adapter did not produce results within 5m0s"),
    "O": ("False", "AdapterOOMKilled", f"{OURS}was killed due to out of memory (OOMKilled)"),
    "I": ("False", "InvalidResultFormat", "Failed to parse adapter result: the file is empty"),
    "X": ("False", "AdapterExitedWithError", f"{OURS}exited with code 1: Error"),
    "X0": (
        *("False", "AdapterMissingResults"),
        f"{OURS}exited successfully (code 0) but did not produce a valid result file: Completed",
    ),
    "S": ("True", "AdapterSucceeded", f"{OURS}exited successfully (code 0)"),
    "W1": (
        *("False", "AdapterImagePullFailed"),
        "container 'adapter': ErrImagePull: 401 Unauthorized",
    ),
    "W2": (
        *("False", "AdapterConfigError"),
        "container 'adapter': CreateContainerConfigError: no key",
    ),
    "W3": (
        *("False", "AdapterStartFailed"),
        "container 'adapter': StartError: exec: \"nope\": not found",
    ),
    "C": (
        *("Unknown", "AdapterCrashLooping"),
        f"{OURS}keeps failing: last exit code 1, restarted 2 times",
    ),
    "D": (
        *("False", "AdapterTimeout"),
        "Adapter did not finish within the Job's activeDeadlineSeconds (20s)",
    ),
    "E": ("Unknown", "AdapterEvicted", "Pod was disrupted: EvictionByEvictionAPI: by the API"),
    "N": ("Unknown", "AdapterInterrupted", f"Pod was deleted{BEFORE}is running"),
    "M": (
        *("Unknown", "ReporterConfigError"),
        "Invalid reporter settings: no container 'adapter'; containers: worker",
    ),
    "A": ("Unknown", "AdapterRunning", f"{OURS}is running"),
}


def said(o: Observation, policy: Policy | None = None) -> str:
    """Return the verdict, without the time of the next look."""
    verdict = decide(o, policy or Policy())
    if isinstance(verdict, Pending):
        return "-"
    mark = "!" if isinstance(verdict, Settled) else "?"
    return _words(verdict.report, mark)


def _words(report: Report, mark: str) -> str:
    shown = (report.status, report.reason, report.message)
    for name, usual in _USUAL.items():
        if name[: len(report.row)] == report.row and shown[:2] == usual[:2]:
            if shown[2].startswith(usual[2]):
                rest = shown[2].removeprefix(usual[2])
                return f"{name}{mark}" + (f" ...{rest}" if rest else "")
            message = shown[2].removeprefix(OURS).replace(BEFORE, " ... ")
            return f"{name}{mark} {message}"
    return f"{report.row}{mark} {report.status} {report.reason}: {report.message}"


def settled(words: str) -> str:
    """Return the same, final."""
    return words.replace("?", "!", 1)


def seen(*looks: Any) -> Observation:
    """Return what is known after these looks, or the observation that was given."""
    return looks[0] if isinstance(looks[0], Observation) else observed(*looks)
