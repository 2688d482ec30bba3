"""What happens to entries inside a transaction: read, ask the pure functions of the run, write.

An operation gets the open `Transaction` of an engine and returns its answer. It decides before it
writes; `RunNotReady` concerns only its own caller. Engines run the operations one after the other,
and a whole batch of them lasts or none does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from reporter.ledger.contract import Received
from reporter.ledger.transaction import Operation, Transaction, known, running
from reporter.run import entry as rules
from reporter.run.entry import Entry, Marked, State
from reporter.run.plan import Key
from reporter.run.record import Failure, Record, ResultVerdict
from reporter.run.state import Phase

T = TypeVar("T")


@dataclass(frozen=True)
class Windows:
    """Seconds: how long a failed upload may be retried, and at most after the first failure."""

    retry: float = 120.0
    cap: float = 600.0


def _change(
    transaction: Transaction, old: Mapping[Key, Entry], rule: Callable[[Entry], tuple[Entry, T]]
) -> dict[Key, T]:
    """Apply a rule to some entries; return what it says of each."""
    decided = {key: rule(entry) for key, entry in old.items()}
    transaction.put_entries([new for key, (new, _) in decided.items() if new != old[key]])
    return {key: answer for key, (_, answer) in decided.items()}


def record_result(key: Key, record: Record) -> Operation[Received]:
    """Apply the rank rule."""

    def operation(transaction: Transaction) -> Received:
        closed = not running(transaction)

        def rule(entry: Entry) -> tuple[Entry, Received]:
            new, outcome = rules.receive(entry, record, closed=closed)
            return new, Received(outcome, new.record)

        return _change(transaction, transaction.entries([key]), rule)[key]

    return operation


def judge(key: Key, digest: str, said: ResultVerdict) -> Operation[bool]:
    """Note what a result says, unless it is judged or no longer held."""

    def operation(transaction: Transaction) -> bool:
        def rule(entry: Entry) -> tuple[Entry, bool]:
            new = rules.judge(entry, digest, said)
            return new, new is not entry

        return _change(transaction, transaction.entries([key]), rule)[key]

    return operation


def mark_failed(failures: Mapping[Key, Failure], windows: Windows) -> Operation[dict[Key, Marked]]:
    """Open or move the retry windows, or write errors by the rank rule."""

    def operation(transaction: Transaction) -> dict[Key, Marked]:
        closed = not running(transaction)

        def rule(entry: Entry) -> tuple[Entry, Marked]:
            return rules.fail(
                entry, failures[entry.key], closed=closed, window=windows.retry, cap=windows.cap
            )

        return _change(transaction, transaction.entries(failures.keys()), rule)

    return operation


def give_up_due(now: float, excused: Collection[Key], queued: Collection[Key]) -> Operation[int]:
    """Give up the entries whose time is over; return how many."""

    def rule(entry: Entry) -> tuple[Entry, bool]:
        key = entry.key
        failure = rules.due(entry, now, excused=key in excused, queued=key in queued)
        if failure is None:
            return entry, False
        return rules.fail(entry, failure, closed=False)[0], True

    def operation(transaction: Transaction) -> int:
        if not running(transaction):
            return 0
        return sum(_change(transaction, transaction.due_entries(now), rule).values())

    return operation


def launch(plugin: str, at: float) -> Operation[None]:
    """Note the launch of the plugin's entries, and start their clocks, unless they have begun."""

    def operation(transaction: Transaction) -> None:
        plan = known(transaction).plan
        found, timeout = plan.plugin(plugin), plan.timeout_of(plugin)
        _change(
            transaction,
            transaction.entries(found.keys if found else ()),
            lambda entry: (rules.start(rules.launch(entry, at), at, timeout), None),
        )

    return operation


def launch_entries(keys: Collection[Key], at: float) -> Operation[None]:
    """Note the launch of some entries."""

    def operation(transaction: Transaction) -> None:
        entries = transaction.entries(keys)
        _change(transaction, entries, lambda entry: (rules.launch(entry, at), None))

    return operation


def start_entries(starts: Mapping[Key, float]) -> Operation[None]:
    """Start the clocks of some entries."""

    def operation(transaction: Transaction) -> None:
        plan = known(transaction).plan

        def rule(entry: Entry) -> tuple[Entry, None]:
            timeout = plan.timeout_of(entry.key.plugin)
            return rules.start(entry, starts[entry.key], timeout), None

        _change(transaction, transaction.entries(starts.keys()), rule)

    return operation


def workers_return(at: float, wall: float, seen: float | None) -> Operation[None]:
    """Give open entries back the time since the last sign of life, and make this one the last.

    `seen` is the newest sign of life that is not written yet, `wall` the wall clock's time.
    """

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        outage = max(0.0, at - (run.alive_at if seen is None else seen))

        def rule(entry: Entry) -> tuple[Entry, None]:
            timeout = run.plan.timeout_of(entry.key.plugin)
            return rules.returned(entry, at, outage, timeout), None

        _change(transaction, transaction.entries_in(State.RUNNING), rule)
        transaction.put_run(replace(run, alive_at=at, alive_wall=wall))

    return operation


def lose(key: Key, text: str, at: float) -> Operation[bool]:
    """Put an error that anything may replace in the place of a record whose bytes are gone."""

    def operation(transaction: Transaction) -> bool:
        over = known(transaction).phase is Phase.CLOSED

        def rule(entry: Entry) -> tuple[Entry, bool]:
            if over or entry.record is None or not entry.record.digest:
                return entry, False
            return rules.lose(entry, at, text), True

        return _change(transaction, transaction.entries([key]), rule)[key]

    return operation


def touch(keys: Collection[Key]) -> Operation[None]:
    """Let entries take a new number as they are."""

    def operation(transaction: Transaction) -> None:
        transaction.put_entries(transaction.entries(keys).values())

    return operation
