"""What happens inside a transaction: read, ask the pure functions of the run, write.

An operation gets the open `Transaction` of an engine and returns its answer. It decides before it
writes; `RunNotReady` concerns only its own caller. Engines run the operations one after the other,
and a whole batch of them lasts or none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from reporter.aggregator.store.contract import ProgressTaken, Received, RunNotReady, WrongRun
from reporter.core.run import entry as rules
from reporter.core.run.entry import Entry, Failure, Marked, Record
from reporter.core.run.plan import Key, Plan
from reporter.core.run.progress import Sent
from reporter.core.run.snapshot import Phase, Tar

T = TypeVar("T")

REVISIONS = 1_000_000
"""How many revisions are promised to the disk ahead of their use.

A revision is shown before it is written, and must not be shown twice for different states. The
number on disk is one that was never reached; after a kill it is where counting goes on.
"""


@dataclass(frozen=True)
class Run:
    """The one row about the run itself.

    `revision` is the end of the promised range. `alive_at` is when a process last said that it was
    there, `unpacked_since` when the packing failed first (Unix seconds).
    """

    plan: Plan
    started_at: float
    phase: Phase = Phase.RUNNING
    revision: int = 0
    tar: Tar | None = None
    error: str | None = None
    alive_at: float = 0.0
    unpacked_since: float | None = None


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

    def entry(self, key: Key) -> Entry:
        """Read an entry of the plan."""

    def put_entry(self, entry: Entry) -> None:
        """Write an entry."""

    def put_progress(self, sent: Iterable[tuple[Key, Sent]]) -> None:
        """Write the latest progress of some keys."""

    def put_beats(self, beats: Iterable[tuple[Key, bool, float]]) -> None:
        """Write, for some keys, whether they are armed and their last sign of life (Unix s)."""

    def progress(self) -> dict[Key, Sent]:
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


def _update(transaction: Transaction, old: Entry, new: Entry) -> None:
    if new != old:
        transaction.put_entry(new)


def open_run(plan: Plan, now: float) -> Operation[Loaded]:
    """Create the run or take it up again."""

    def operation(transaction: Transaction) -> Loaded:
        run = transaction.run
        if run is None:
            run = Run(plan, now, alive_at=now)
            transaction.put_run(run)
            entries = {key: Entry(key) for key in plan.keys}
            for entry in entries.values():
                transaction.put_entry(entry)
        else:
            if run.plan.run != plan.run:
                raise WrongRun(f"the store holds run {run.plan.run}, not {plan.run}")
            if run.plan != plan:
                raise WrongRun(f"the store holds run {plan.run} with another plan")
            entries = {key: transaction.entry(key) for key in plan.keys}
        first = run.revision + 1
        run = replace(run, revision=first + REVISIONS)
        transaction.put_run(run)
        return Loaded(run, first, entries, transaction.progress(), transaction.armed())

    return operation


def workers_return(at: float, seen: float | None) -> Operation[None]:
    """Give open entries back the time since the last sign of life, and make this one the last.

    `seen` is the newest sign of life that is not written yet.
    """

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        outage = max(0.0, at - (run.alive_at if seen is None else seen))
        for key in run.plan.keys:
            old = transaction.entry(key)
            timeout = run.plan.timeout_of(key.plugin)
            _update(transaction, old, rules.returned(old, at, outage, timeout))
        transaction.put_run(replace(run, alive_at=at))

    return operation


def record_result(key: Key, record: Record) -> Operation[Received]:
    """Apply the rank rule."""

    def operation(transaction: Transaction) -> Received:
        old = transaction.entry(key)
        new, outcome = rules.receive(old, record, closed=_closed(transaction))
        _update(transaction, old, new)
        return Received(outcome, new.record)

    return operation


def mark_failed(key: Key, failure: Failure, windows: Windows) -> Operation[Marked]:
    """Open or move the retry window, or write an error by the rank rule."""

    def operation(transaction: Transaction) -> Marked:
        old = transaction.entry(key)
        new, marked = rules.fail(
            old, failure, closed=_closed(transaction), window=windows.retry, cap=windows.cap
        )
        _update(transaction, old, new)
        return marked

    return operation


def mark_all_failed(
    failures: Mapping[Key, Failure], windows: Windows
) -> Operation[Mapping[Key, Marked]]:
    """Do the same for many keys."""

    def operation(transaction: Transaction) -> Mapping[Key, Marked]:
        return {
            key: mark_failed(key, failure, windows)(transaction)
            for key, failure in failures.items()
        }

    return operation


def launch(plugin: str, at: float) -> Operation[None]:
    """Set the deadline of the plugin's entries, unless they have one."""

    def operation(transaction: Transaction) -> None:
        plan = known(transaction).plan
        for key in plan.keys:
            if key.plugin == plugin:
                old = transaction.entry(key)
                _update(transaction, old, rules.launch(old, at, plan.timeout_of(plugin)))

    return operation


def lose(key: Key, text: str, at: float) -> Operation[bool]:
    """Put an error that anything may replace in the place of a record whose bytes are gone."""

    def operation(transaction: Transaction) -> bool:
        old = transaction.entry(key)
        over = known(transaction).phase is Phase.CLOSED
        if over or old.record is None or not old.record.digest:
            return False
        transaction.put_entry(rules.lose(old, at, text))
        return True

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
        still_open = [key for key in run.plan.keys if not transaction.entry(key).terminal]
        if still_open:
            raise RunNotReady(f"{still_open[0]} and {len(still_open) - 1} others are open")
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


def append_progress(key: Key, sent: Sent) -> Operation[ProgressTaken]:
    """Write an update that its caller waits for, if the run still takes any."""

    def operation(transaction: Transaction) -> ProgressTaken:
        if _closed(transaction):
            return ProgressTaken.CLOSED
        transaction.put_progress([(key, sent)])
        return ProgressTaken.APPLIED

    return operation


def write_behind(
    progress: list[tuple[Key, Sent]],
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
