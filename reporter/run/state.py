"""A run at one moment, and what its entries and their results add up to.

Immutable: readers need no lock. How it is shown is not here (`status`, `annotation`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from reporter.run.entry import Entry, State
from reporter.run.heartbeats import Beat
from reporter.run.plan import Key, Plan
from reporter.run.progress import StoredProgress
from reporter.run.record import Rank
from reporter.run.results import ResultStatus, without_result
from reporter.run.tar_upload import TarUpload

UNREACHABLE: Final = "AggregatorUnreachable"
"""The reason of a Pod whose worker has a heartbeat due, and says what keeps it from us."""


@dataclass(frozen=True, slots=True)
class PodState:
    """What an entry's Pod does. `since` is how long it has been so."""

    name: str
    node: str
    phase: str
    reason: str
    message: str
    since: float | None
    restarts: int


class Step(StrEnum):
    """How far the launcher is."""

    LAUNCHING = "launching"  # some entry has no Job yet
    WATCHING = "watching"
    REMOVING = "removing"  # all entries are decided
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LauncherTrouble:
    """What keeps the launcher from its work since that time."""

    since: float
    reason: str


@dataclass(frozen=True, slots=True)
class LauncherState:
    """How the launcher is. `stays` has, by kind and name, why an object could not be removed."""

    step: Step
    degraded: LauncherTrouble | None = None
    stays: Mapping[str, str] = field(default_factory=dict)


class Phase(StrEnum):
    """How far the run is; one way only."""

    RUNNING = "running"
    POST_PROCESSING = "post-processing"  # the set of results is final
    CLOSED = "closed"  # the tarball is there, or packing was given up


class Status(StrEnum):
    """The words of a run's status."""

    RUNNING = "running"
    POST_PROCESSING = "post-processing"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Tar:
    """The tarball: base name, RFC 3339 time of measuring, SHA-256 in hexadecimal, bytes."""

    name: str
    created: str
    sha256: str
    size: int


class Kind(NamedTuple):
    """What entries are counted by: plugin, state, and the verdict in the record."""

    plugin: str
    state: State
    verdict: str


def kind_of(entry: Entry) -> Kind:
    """Return what an entry counts as."""
    record = entry.record
    return Kind(entry.key.plugin, entry.state, "" if record is None else record.verdict)


@dataclass(frozen=True)
class Snapshot:
    """Everything that is known about a run.

    `entries` has every key of the plan, in its order; `progress` and `beats` only the keys that
    sent any. Times are by the run's clock, `skew` seconds ahead of the wall clock. `error` says why
    the aggregator itself failed. `pods` has what is known of the entries' Pods, `launcher` how it
    is, where there is one. `retrieved_at` is when a client first confirmed that it has the tarball
    (by the wall clock), `upload` how its upload stands, where one was asked for. `ahead` says that
    some of it is newer than the revision. `counted` is the tally, `tests` the tests of all results
    by status and `summed` the bytes of the results, where they are kept.
    """

    plan: Plan
    revision: int
    phase: Phase
    started_at: float
    entries: Mapping[Key, Entry]
    progress: Mapping[Key, StoredProgress]
    beats: Mapping[Key, Beat]
    tar: Tar | None = None
    error: str | None = None
    pods: Mapping[Key, PodState] = field(default_factory=dict)
    launcher: LauncherState | None = None
    retrieved_at: float | None = None
    upload: TarUpload | None = None
    skew: int = 0
    ahead: bool = False
    counted: Mapping[Kind, int] | None = field(default=None, compare=False, repr=False)
    tests: Mapping[str, int] | None = field(default=None, compare=False, repr=False)
    summed: int | None = field(default=None, compare=False, repr=False)

    @property
    def bytes(self) -> int:
        """How large the results are that have come, as they came."""
        if self.summed is not None:
            return self.summed
        return sum(entry.record.size for entry in self.entries.values() if entry.record is not None)

    @property
    def closed(self) -> bool:
        """Whether the set of results is final: post-processing has begun."""
        return self.phase is not Phase.RUNNING

    @cached_property
    def tally(self) -> Mapping[Kind, int]:
        """How many entries there are of each kind."""
        return (
            Counter(map(kind_of, self.entries.values())) if self.counted is None else self.counted
        )


def run_status(snapshot: Snapshot) -> Status:
    """The status of the run, first match wins.

    The aggregator itself failed; an entry failed or timed out (at once: people want to know
    early); an entry is running; the run is not finalised yet; complete.
    """
    states = {kind.state for kind in snapshot.tally}
    if snapshot.error is not None or states & {State.FAILED, State.TIMED_OUT}:
        return Status.FAILED
    return stage(snapshot)


def stage(snapshot: Snapshot) -> Status:
    """How far the run is, whatever became of its entries: `running` to `complete`."""
    if still_open(snapshot):
        return Status.RUNNING
    return Status.COMPLETE if snapshot.phase is Phase.CLOSED else Status.POST_PROCESSING


def still_open(snapshot: Snapshot) -> set[str]:
    """Return the names of the plugins that have entries to be waited for."""
    return {kind.plugin for kind in snapshot.tally if kind.state is State.RUNNING}


def percent_complete(snapshot: Snapshot) -> float:
    """Return the share of entries that are decided, 0 to 1, four decimals; 1 for an empty plan."""
    return share(counts(snapshot)["decided"], len(snapshot.entries))


def share(part: int, whole: int) -> float:
    """Return what share of all entries these are, 0 to 1, four decimals; 1 only for all."""
    return part * 10_000 // whole / 10_000 if whole else 1.0


def final(snapshot: Snapshot) -> bool:
    """Return whether the run is over, packed or given up: nothing changes any more."""
    return snapshot.phase is Phase.CLOSED


def at_rest(snapshot: Snapshot) -> bool:
    """Return whether the run is over and nothing of its plugins is being removed any more."""
    launcher = snapshot.launcher
    return final(snapshot) and (launcher is None or launcher.step is Step.DONE)


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
