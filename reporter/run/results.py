"""What the results say, of one entry and of the whole run; whether they came is `entry`'s matter.

Reading a result is not done here: whoever takes it in keeps its verdict in the record.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from reporter.run.entry import Entry, State
from reporter.run.record import Rank
from reporter.run.state import Phase, Snapshot, share, still_open


class ResultStatus(StrEnum):
    """The words for a verdict. Empty instead of a word: nobody has judged the result."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"  # judged, but it says neither
    TIMEOUT = "timeout"


NOT_PASSED: Final = frozenset({ResultStatus.FAILED, ResultStatus.UNKNOWN, ResultStatus.TIMEOUT})


def result_status(snapshot: Snapshot, entry: Entry) -> str:
    """Return the verdict on an entry, a word of `ResultStatus` or nothing.

    A missing result counts as failed once the run is closed; until then it may still come.
    """
    record = entry.record
    if entry.state is State.TIMED_OUT:
        return ResultStatus.TIMEOUT
    if record is not None and record.verdict:
        return record.verdict
    missing = entry.state is State.FAILED and snapshot.phase is Phase.CLOSED
    return ResultStatus.FAILED if missing else ""


def without_result(verdict: str) -> str:
    """Return what an entry counts as whose result is missing; `verdict` is its sender's, if known.

    It has failed, also if the condition of its Job says that it passed; but not if its sender could
    not tell.
    """
    return verdict if verdict == ResultStatus.UNKNOWN else ResultStatus.FAILED


def result_counts(entry: Entry) -> Mapping[str, int] | None:
    """Return how many tests had which outcome; an adapter's result is one test, as is an error."""
    record = entry.record
    if record is None or not record.verdict:
        return None
    return record.counts or {record.verdict: 1}


def why(entry: Entry) -> tuple[str, str]:
    """Return reason and message of the verdict, in the worker's words; empty without any."""
    record = entry.record
    if record is None or record.rank < Rank.WORKER:
        return "", ""
    return record.reason, record.message if record.rank is Rank.RESULT else record.text


def run_result_status(snapshot: Snapshot) -> str:
    """The verdict on the run: failed as soon as an entry is, else empty until all are decided.

    Then unknown if an entry is, or was not judged; else passed.
    """
    words = {_counted(kind.state, kind.verdict) for kind in snapshot.tally}
    if ResultStatus.FAILED in words:
        return ResultStatus.FAILED
    if still_open(snapshot) or judging(snapshot):
        return ""
    return ResultStatus.PASSED if words == {ResultStatus.PASSED} else ResultStatus.UNKNOWN


def judging(snapshot: Snapshot) -> bool:
    """Whether a result that is in may still get its verdict."""
    return not snapshot.closed and any(
        kind.state is State.COMPLETE and not kind.verdict for kind in snapshot.tally
    )


def plugins_reported(snapshot: Snapshot) -> float:
    """Return the share of entries with a result, 0 to 1, four decimals; 1 for an empty plan."""
    return share(counts(snapshot)["received"], len(snapshot.entries))


def counts(snapshot: Snapshot) -> dict[str, int]:
    """How many entries there are: all, and those that are decided, received, failed, unknown.

    Failed are those whose result is missing or says so; a verdict Unknown counts only as unknown.
    """
    found = dict.fromkeys(("entries", "decided", "received", "failed", "unknown"), 0)
    for (_, state, verdict), many in snapshot.tally.items():
        word = _counted(state, verdict)
        found["entries"] += many
        found["decided"] += many * (state is not State.RUNNING)
        found["received"] += many * (state is State.COMPLETE)
        found["failed"] += many * (word == ResultStatus.FAILED)
        found["unknown"] += many * (word == ResultStatus.UNKNOWN)
    return found


def _counted(state: State, verdict: str) -> str:
    """What an entry counts as in the run's verdict."""
    missing = state in (State.FAILED, State.TIMED_OUT)
    return without_result(verdict) if missing else verdict
