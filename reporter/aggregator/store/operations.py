"""What happens inside a transaction: read, ask the pure functions of the run, write.

An operation gets the open `Transaction` of an engine and returns its answer. It decides before it
writes; `RunNotReady` concerns only its own caller. Engines run the operations one after the other,
and a whole batch of them lasts or none does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from reporter.aggregator.store.contract import ProgressTaken, Received, RunNotReady, WrongRun
from reporter.core.run import entry as rules
from reporter.core.run.entry import Entry, Failure, Marked, Record
from reporter.core.run.plan import Key, Plan, differences
from reporter.core.run.progress import Progress, Sent, Taken, UpdateId, fitting, newest, take
from reporter.core.run.snapshot import Phase, Tar

T = TypeVar("T")

REVISIONS = 1_000_000
"""How many revisions are promised to the disk ahead of their use.

A revision is shown before it is written, and must not be shown twice for different states. The
number on disk is one that was never reached; after a kill it is where counting goes on.
"""


_NAMED = 5  # differences between two plans


@dataclass(frozen=True)
class Run:
    """The one row about the run itself.

    `revision` is the end of the promised range. `alive_at` is when a process last said that it was
    there, `unpacked_since` when the packing failed first (Unix seconds). `launching` says that its
    plugins are launched by us, and that there may be objects of theirs, `retrieved_at` when the
    tarball was first downloaded as a whole.
    """

    plan: Plan
    started_at: float
    phase: Phase = Phase.RUNNING
    revision: int = 0
    tar: Tar | None = None
    error: str | None = None
    alive_at: float = 0.0
    unpacked_since: float | None = None
    launching: bool = False
    retrieved_at: float | None = None


@dataclass(frozen=True)
class Loaded:
    """Everything a process needs in memory when it opens a run; `revision` is the first to use."""

    run: Run
    revision: int
    entries: Mapping[Key, Entry]
    progress: Mapping[Key, Sent]
    armed: Mapping[Key, bool]


class Transaction(Protocol):
    """An open transaction."""

    @property
    def run(self) -> Run | None:
        """The run, or nothing in a new store."""

    def put_run(self, run: Run) -> None:
        """Write the run."""

    def entries(self, keys: Collection[Key] | None = None) -> dict[Key, Entry]:
        """Read these entries of the plan, or all."""

    def open_entries(self) -> dict[Key, Entry]:
        """Read the entries that are not decided."""

    def put_entries(self, entries: Collection[Entry]) -> None:
        """Write entries."""

    def progress(self, key: Key) -> Sent | None:
        """Read the progress of a key."""

    def put_progress(self, sent: Mapping[Key, Sent]) -> None:
        """Write the progress of some keys, where it is newer than what is there."""

    def put_beats(self, beats: Iterable[tuple[Key, bool, float]]) -> None:
        """Write, for some keys, whether they are armed and their last sign of life (Unix s)."""

    def all_progress(self) -> dict[Key, Sent]:
        """Read the progress of all keys."""

    def armed(self) -> dict[Key, bool]:
        """Read which keys were heard, and whether by a real heartbeat."""


Operation = Callable[[Transaction], T]


@dataclass(frozen=True)
class Windows:
    """Seconds: how long a failed upload may be retried, and at most after the first failure."""

    retry: float = 120.0
    cap: float = 600.0


def known(transaction: Transaction) -> Run:
    """Return the run of a store that was opened."""
    run = transaction.run
    if run is None:
        raise WrongRun("the store no longer holds the run")
    return run


def _closed(transaction: Transaction) -> bool:
    return known(transaction).phase is not Phase.RUNNING


def _change(
    transaction: Transaction, keys: Collection[Key], rule: Callable[[Entry], tuple[Entry, T]]
) -> dict[Key, T]:
    """Apply a rule to some entries; return what it says of each."""
    old = transaction.entries(keys)
    decided = {key: rule(entry) for key, entry in old.items()}
    transaction.put_entries([new for key, (new, _) in decided.items() if new != old[key]])
    return {key: answer for key, (_, answer) in decided.items()}


def open_run(plan: Plan, now: float) -> Operation[Loaded]:
    """Create the run or take it up again."""

    def operation(transaction: Transaction) -> Loaded:
        run = transaction.run
        if run is None:
            run = Run(plan, now, alive_at=now)
            transaction.put_run(run)
            transaction.put_entries([Entry(key) for key in plan.keys])
        elif run.plan.run != plan.run:
            raise WrongRun(f"the store holds run {run.plan.run}, not {plan.run}")
        elif found := differences(run.plan, plan):
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            named = "; ".join(found[:_NAMED])
            raise WrongRun(f"run {plan.run} began with another plan: {named}{more}")
        entries = transaction.entries()
        first = run.revision + 1
        run = replace(run, revision=first + REVISIONS)
        transaction.put_run(run)
        return Loaded(
            run,
            first,
            {key: entries[key] for key in run.plan.keys},
            transaction.all_progress(),
            transaction.armed(),
        )

    return operation


def workers_return(at: float, seen: float | None) -> Operation[None]:
    """Give open entries back the time since the last sign of life, and make this one the last.

    `seen` is the newest sign of life that is not written yet.
    """

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        outage = max(0.0, at - (run.alive_at if seen is None else seen))

        def rule(entry: Entry) -> tuple[Entry, None]:
            timeout = run.plan.timeout_of(entry.key.plugin)
            return rules.returned(entry, at, outage, timeout), None

        _change(transaction, transaction.open_entries(), rule)
        transaction.put_run(replace(run, alive_at=at))

    return operation


def record_result(key: Key, record: Record) -> Operation[Received]:
    """Apply the rank rule."""

    def operation(transaction: Transaction) -> Received:
        closed = _closed(transaction)

        def rule(entry: Entry) -> tuple[Entry, Received]:
            new, outcome = rules.receive(entry, record, closed=closed)
            return new, Received(outcome, new.record)

        return _change(transaction, [key], rule)[key]

    return operation


def mark_failed(failures: Mapping[Key, Failure], windows: Windows) -> Operation[dict[Key, Marked]]:
    """Open or move the retry windows, or write errors by the rank rule."""

    def operation(transaction: Transaction) -> dict[Key, Marked]:
        closed = _closed(transaction)

        def rule(entry: Entry) -> tuple[Entry, Marked]:
            return rules.fail(
                entry, failures[entry.key], closed=closed, window=windows.retry, cap=windows.cap
            )

        return _change(transaction, failures.keys(), rule)

    return operation


def launch(plugin: str, at: float) -> Operation[None]:
    """Note the launch of the plugin's entries, and start their clocks, unless they have begun."""

    def operation(transaction: Transaction) -> None:
        plan = known(transaction).plan
        found, timeout = plan.plugin(plugin), plan.timeout_of(plugin)
        _change(
            transaction,
            found.keys if found else (),
            lambda entry: (rules.start(rules.launch(entry, at), at, timeout), None),
        )

    return operation


def begin_launching() -> Operation[None]:
    """Note that objects of the run may exist from now on."""

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        if not run.launching:
            transaction.put_run(replace(run, launching=True))

    return operation


def launch_entries(keys: Collection[Key], at: float) -> Operation[None]:
    """Note the launch of some entries."""

    def operation(transaction: Transaction) -> None:
        _change(transaction, keys, lambda entry: (rules.launch(entry, at), None))

    return operation


def start_entries(starts: Mapping[Key, float]) -> Operation[None]:
    """Start the clocks of some entries."""

    def operation(transaction: Transaction) -> None:
        plan = known(transaction).plan

        def rule(entry: Entry) -> tuple[Entry, None]:
            timeout = plan.timeout_of(entry.key.plugin)
            return rules.start(entry, starts[entry.key], timeout), None

        _change(transaction, starts.keys(), rule)

    return operation


def lose(key: Key, text: str, at: float) -> Operation[bool]:
    """Put an error that anything may replace in the place of a record whose bytes are gone."""

    def operation(transaction: Transaction) -> bool:
        over = known(transaction).phase is Phase.CLOSED

        def rule(entry: Entry) -> tuple[Entry, bool]:
            if over or entry.record is None or not entry.record.digest:
                return entry, False
            return rules.lose(entry, at, text), True

        return _change(transaction, [key], rule)[key]

    return operation


def advance_run(phase: Phase, tar: Tar | None, error: str | None) -> Operation[None]:
    """Go one phase on."""
    order = list(Phase)

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        steps = order.index(phase) - order.index(run.phase)
        if steps <= 0:
            return
        if steps > 1:
            raise RunNotReady(f"{phase} does not follow {run.phase}")
        if still_open := transaction.open_entries():
            first, *others = still_open
            raise RunNotReady(f"{first} and {len(others)} others are open")
        transaction.put_run(replace(run, phase=phase, tar=tar, error=error))

    return operation


def packing_failed(error: str, at: float) -> Operation[float]:
    """Say why there is no tarball yet; return since when."""

    def operation(transaction: Transaction) -> float:
        run = known(transaction)
        since = at if run.unpacked_since is None else run.unpacked_since
        if run.phase is Phase.POST_PROCESSING:
            transaction.put_run(replace(run, error=error, unpacked_since=since))
        return since

    return operation


def package_again() -> Operation[bool]:
    """Take back that packing was given up."""

    def operation(transaction: Transaction) -> bool:
        run = known(transaction)
        if run.unpacked_since is None or run.tar is not None:
            return False
        phase = Phase.POST_PROCESSING
        transaction.put_run(replace(run, phase=phase, error=None, unpacked_since=None))
        return True

    return operation


def retrieved(at: float) -> Operation[None]:
    """Note that the tarball was downloaded; the first time stands."""

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        if run.retrieved_at is None:
            transaction.put_run(replace(run, retrieved_at=at))

    return operation


def take_progress(
    key: Key,
    update: Progress,
    update_id: UpdateId | None,
    *,
    at: float,
    unwritten: Sent | None,
    room: int,
) -> Operation[ProgressTaken]:
    """Combine an update with what is stored, or with what is newer and was only in memory.

    Its texts are kept if they fit into `room` bytes.
    """

    def operation(transaction: Transaction) -> ProgressTaken:
        if _closed(transaction):
            return ProgressTaken.CLOSED
        before = newest(transaction.progress(key), unwritten)
        sent, taken = take(before, update, update_id, at)
        if taken is Taken.STALE:
            return ProgressTaken.STALE
        transaction.put_progress({key: fitting(sent, room)})
        return ProgressTaken.APPLIED

    return operation


def write_behind(
    progress: Mapping[Key, Sent],
    beats: list[tuple[Key, bool, float]],
    revision: int,
    alive_at: float | None,
) -> Operation[int]:
    """Write what was only in memory, and promise revisions up to `revision`; return that."""

    def operation(transaction: Transaction) -> int:
        if progress:
            transaction.put_progress(progress)
        if beats:
            transaction.put_beats(beats)
        run = known(transaction)
        sign = run.alive_at if alive_at is None else alive_at
        if (run.revision, run.alive_at) != (revision, sign):
            transaction.put_run(replace(run, revision=revision, alive_at=sign))
        return revision

    return operation
