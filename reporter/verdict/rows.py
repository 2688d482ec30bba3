"""The rows of the contract: what each situation says on the Job.

The wording of every condition is here. What it quotes comes from where it was found: why a Pod is
no fit (`pod`), what keeps a container from starting (`not_starting`), what is wrong with a file.
"""

import posixpath
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from reporter.common.text import clean, go_duration
from reporter.verdict.facts import (
    Container,
    FileInvalid,
    Progress,
    ResultLook,
    ResultPayload,
    Running,
    Searched,
    State,
    Terminated,
    Waiting,
)

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MESSAGE_LIMIT = 1024  # bytes


class Row(StrEnum):
    """The situations of a Job, by the letters that people know them by: letter, reason.

    The letter is the `rule` of the annotation and of the log. `docs/contract.md` has the table with
    everything that is shown, and which of them are final when.
    """

    reason: str  # empty where it is the adapter's, or depends on the exit code

    def __new__(cls, letter: str, reason: str = "") -> Self:
        """Make a member."""
        row = str.__new__(cls, letter)
        row._value_, row.reason = letter, reason
        return row

    __repr__ = str.__repr__  # what a person reads in the log on a terminal

    RESULT = "R"  # a valid result file: True or False, reason and message are the adapter's
    OUT_OF_MEMORY = "O", "AdapterOOMKilled"  # False: the kubelet says why the adapter was killed
    INVALID_RESULT = "I", "InvalidResultFormat"  # False: what lies there is no result
    NO_RESULT = "X"  # False: the adapter ended without one
    SUCCEEDED = "S", "AdapterSucceeded"  # True: exit code 0, and no result is required
    IMAGE = "W1", "AdapterImagePullFailed"  # False, as long as its image cannot be pulled
    CONFIG = "W2", "AdapterConfigError"  # False, as long as its container misses a reference
    START = "W3", "AdapterStartFailed"  # False, as long as its container cannot be started
    CRASH_LOOPING = "C", "AdapterCrashLooping"  # Unknown: it may still succeed
    TIMEOUT = "T", "AdapterTimeout"  # False: the wait time is over
    DEADLINE = "D", "AdapterTimeout"  # False: an activeDeadlineSeconds has passed
    EVICTED = "E", "AdapterEvicted"  # Unknown: the platform took the Pod away
    INTERRUPTED = "N", "AdapterInterrupted"  # Unknown: deleted, suspended, lost or stopped before
    MISFIT = "M", "ReporterConfigError"  # Unknown: our own settings do not fit the Pod
    RUNNING = "A", "AdapterRunning"  # Unknown: work goes on


@dataclass(frozen=True, slots=True)
class Report:
    """One row, filled in: what goes onto the Job unchanged.

    `row` is a `Row`; empty for what is none of them, a result that came too late. `details` are the
    adapter's, for an annotation of their own.
    """

    row: str
    status: str
    reason: str
    message: str
    details: str | None = None

    @property
    def from_file(self) -> bool:
        """Whether the reason comes from the adapter."""
        return self.row == Row.RESULT


def _report(row: Row, status: str, message: str, reason: str = "") -> Report:
    return Report(row, status, reason or row.reason, clean(message, MESSAGE_LIMIT))


def result(payload: ResultPayload) -> Report:
    """R: what the adapter reported."""
    status = TRUE if payload.success else FALSE
    return Report(Row.RESULT, status, payload.reason, payload.message, payload.details)


def timeout(wait: float, *, refused: bool = False) -> Report:
    """T: the wait time is over."""
    note = " (the Pod could not be read: forbidden)" if refused else ""
    return _report(
        Row.TIMEOUT, FALSE, f"Adapter did not produce results within {go_duration(int(wait))}{note}"
    )


def out_of_memory() -> Report:
    """O: the kubelet says OOMKilled, whatever the exit code."""
    return _report(
        Row.OUT_OF_MEMORY, FALSE, "Adapter container was killed due to out of memory (OOMKilled)"
    )


def invalid(file: ResultLook) -> Report | None:
    """I: there is a result file, and it is invalid."""
    if not isinstance(file, FileInvalid):
        return None
    return _report(Row.INVALID_RESULT, FALSE, f"Failed to parse adapter result: {file.cause}")


def exited(run: Terminated, *, result_required: bool, searched: Searched | None = None) -> Report:
    """X or S: the adapter ended without a result file."""
    said = f": {run.reason}" if run.reason else ""
    if run.exit_code != 0:
        message = f"Adapter container exited with code {run.exit_code}{said}"
        return _report(Row.NO_RESULT, FALSE, message, "AdapterExitedWithError")
    if not result_required:
        return _report(Row.SUCCEEDED, TRUE, "Adapter container exited successfully (code 0)")
    message = (
        "Adapter container exited successfully (code 0) but did not produce a valid result file"
    )
    return _report(Row.NO_RESULT, FALSE, message + said + _where(searched), "AdapterMissingResults")


def _where(searched: Searched | None) -> str:
    if searched is None:
        return ""
    # One of that name that does not count was left by somebody before this run.
    expected = posixpath.basename(searched.path)
    names = [f"an older {name}" if name == expected else name for name in searched.found]
    found = f"; found {', '.join(names)}" if names else ""
    return f" (looked for {searched.path}{found})"


def trouble(row: Row, text: str) -> Report:
    """W1, W2, W3: the adapter cannot start; `text` is the kubelet's reason and message."""
    return _report(row, FALSE, text)


def crash_looping(adapter: Container) -> Report | None:
    """C: the adapter keeps failing, and the kubelet delays each restart longer."""
    waiting = isinstance(adapter.state, Waiting) and adapter.state.reason == "CrashLoopBackOff"
    if not waiting or adapter.restarts < 2:
        return None
    code = f"last exit code {adapter.last.exit_code}, " if adapter.last else ""
    return _report(
        Row.CRASH_LOOPING,
        UNKNOWN,
        f"Adapter container keeps failing: {code}restarted {adapter.restarts} times",
    )


def deadline(
    owner: str, seconds: float, *, restarts: int = 0, last: Terminated | None = None
) -> Report:
    """D: a deadline of the Job or the Pod passed; `last` is the run before, where one failed."""
    limit = f"Adapter did not finish within the {_limit(owner, seconds)}"
    if restarts <= 0:
        return _report(Row.DEADLINE, FALSE, limit)
    code = f"last exit code {last.exit_code}, " if last else ""
    times = "once" if restarts == 1 else f"{restarts} times"
    return _report(Row.DEADLINE, FALSE, f"{limit}; {code}restarted {times}")


def after_deadline(report: Report, owner: str, seconds: float) -> Report:
    """Return a row that a deadline made final; what the adapter itself reported is not changed.

    Nor is a message that says it already: it may be read back from the Job.
    """
    ending = f"; the {_limit(owner, seconds)} passed"
    if report.from_file or report.message.endswith(ending):
        return report
    kept = clean(report.message, MESSAGE_LIMIT - len(ending.encode()))
    return replace(report, message=kept + ending)


def of_index(report: Report, index: int | None, *, completions: int) -> Report:
    """Return a report that names its completion index, where the Job has several.

    A message that names it already may be read back from the Job.
    """
    beginning = f"index {index}: "
    if index is None or completions <= 1 or report.message.startswith(beginning):
        return report
    return replace(report, message=clean(beginning + report.message, MESSAGE_LIMIT))


def late_result(result: ResultPayload) -> Report:
    """Return what announces a result that came after the timeout; it is no row."""
    said = f"{TRUE if result.success else FALSE} {result.reason}: {result.message}"
    message = f"Result received after the verdict {Row.TIMEOUT.reason}: {said}"
    return Report("", UNKNOWN, "LateResult", clean(message, MESSAGE_LIMIT))


def _limit(owner: str, seconds: float) -> str:
    return f"{owner}'s activeDeadlineSeconds ({go_duration(int(seconds))})"


def evicted(reason: str, message: str) -> Report:
    """E: the platform took the Pod away."""
    said = f"{reason}: {message}" if message else reason
    return _report(Row.EVICTED, UNKNOWN, f"Pod was disrupted: {said or 'no reason given'}")


def interrupted(cause: str, state: State | None) -> Report:
    """N: how the work would have ended cannot be known."""
    return _report(
        Row.INTERRUPTED, UNKNOWN, f"{cause} before a verdict was known; adapter {describe(state)}"
    )


UNWRITTEN = "the verdict was "
FORBIDDEN = "; writing it was forbidden: "


def last_words(report: Report, error: str, *, forbidden: bool) -> str:
    """Return what a reporter leaves in its termination message: a verdict that is not written."""
    how = FORBIDDEN if forbidden else "; writing it failed: "
    # It all fits into a condition, with what `unwritten` and `of_index` put before it.
    said = clean(f"{report.status} {report.reason}: {report.message}", 640)
    return f"{UNWRITTEN}{said}{how}{clean(error, 256)}"


def words_left(reporter: Container) -> str:
    """Return the last words of a reporter that has ended; empty without any."""
    runs = () if isinstance(reporter.state, Running) else (reporter.state, reporter.last)
    said = (run.message for run in runs if isinstance(run, Terminated))
    return next((each for each in said if each.startswith(UNWRITTEN)), "")


def unwritten(words: str) -> Report:
    """N: the reporter has ended, and these are its last words."""
    return _report(Row.INTERRUPTED, UNKNOWN, f"Reporter ended; {words}")


def misfit(problem: str) -> Report:
    """M: the reporter's own settings do not fit."""
    return _report(Row.MISFIT, UNKNOWN, f"Invalid reporter settings: {problem}")


def running(
    state: State | None, progress: Progress | None, received: ResultPayload | None = None
) -> Report:
    """A: the work goes on; `received` is a result that is held until the adapter ends."""
    message = f"Adapter {describe(state)}"
    if received is not None:
        message = f"{message}; result received: {received.reason}"
    if progress is not None and (shown := describe_progress(progress)):
        message = f"{message}; {shown}"
    return _report(Row.RUNNING, UNKNOWN, message)


def describe(state: State | None) -> str:
    """Return in words what a container does."""
    match state:
        case None:
            return "container cannot be observed"
        case Running():
            return "container is running"
        case Waiting(reason=""):
            return "container has not started yet"
        case Waiting():
            return f"container is waiting: {state.reason}"
        case ended:
            return f"container ended with exit code {ended.exit_code}"


def describe_progress(progress: Progress) -> str:
    """Return in words how far the adapter is; empty if it did not say."""
    parts = []
    if progress.completed is not None:
        of = f" of {progress.total}" if progress.total is not None else ""
        parts.append(f"{progress.completed}{of} completed")
    elif progress.total is not None:
        parts.append(f"{progress.total} in total")
    for count, word in ((len(progress.failures), "failed"), (len(progress.errors), "with errors")):
        if count:
            parts.append(f"{count} {word}")
    if progress.msg:
        parts.append(progress.msg)
    return ", ".join(parts)
