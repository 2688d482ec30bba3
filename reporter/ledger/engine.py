"""What an engine of a store is: it runs operations in transactions and tells what has changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from reporter.ledger.contract import StoreError
from reporter.ledger.transaction import Changed, Operation, Run, Transaction
from reporter.run.entry import Entry
from reporter.run.plan import Key
from reporter.run.progress import StoredProgress
from reporter.run.results import Sum
from reporter.run.state import Kind, kind_of, result_counts

T = TypeVar("T")


@dataclass(frozen=True)
class Changes:
    """What has changed with a transaction, and how the run stands after it.

    `entries` and `progress` are in the order of their revisions; `revisions` has the keys of both.
    `tally` counts all entries of the run, `tests` what is in their results, `bytes` is how large
    these are; `due_at` is when time runs out for the first of them. `seconds` is how long
    it took, `operations` how many callers shared it.
    """

    run: Run
    entries: Mapping[Key, Entry]
    progress: Mapping[Key, StoredProgress]
    revisions: Mapping[Key, int]
    tally: Mapping[Kind, int]
    tests: Mapping[str, int]
    bytes: int
    due_at: float | None
    seconds: float
    operations: int


class Feed:
    """How far the changes of a ledger have been told. Belongs to the thread of an engine."""

    def __init__(self) -> None:
        self._revision, self._sure = 0, False
        self._kinds: dict[Key, Kind] = {}
        self._tally: Counter[Kind] = Counter()
        self._tests = Sum()
        self._sizes: dict[Key, int] = {}
        self._bytes = 0

    def news(self, transaction: Transaction, made: Sequence[Changed]) -> Sequence[Changed]:
        """What is to be told after a transaction that made these changes; ask at its end.

        A commit that seemed to fail may have reached the disk after all, so then the rows say it.
        """
        return made if self._sure else transaction.changes(self._revision)

    def committed(
        self,
        run: Run,
        news: Sequence[Changed],
        due_at: float | None,
        seconds: float,
        operations: int,
    ) -> Changes:
        """Put together what is told."""
        self._revision, self._sure = run.revision, True
        entries: dict[Key, Entry] = {}
        progress: dict[Key, StoredProgress] = {}
        revisions: dict[Key, int] = {}
        for revision, key, value in news:
            revisions.pop(key, None)
            revisions[key] = revision
            if isinstance(value, Entry):
                entries[key] = value
                self._count(key, kind_of(value))
                self._tests.put(key, result_counts(value) or {})
                size = 0 if value.record is None else value.record.size
                self._bytes += size - self._sizes.get(key, 0)
                self._sizes[key] = size
            else:
                progress[key] = value
        tally, tests = dict(+self._tally), self._tests.counts()
        return Changes(
            run,
            entries,
            progress,
            revisions,
            tally,
            tests,
            self._bytes,
            due_at,
            seconds,
            operations,
        )

    def refused(self) -> None:
        """Take note that a commit failed, or seemed to."""
        self._sure = False

    def _count(self, key: Key, kind: Kind) -> None:
        if (before := self._kinds.get(key)) != kind:
            if before is not None:
                self._tally[before] -= 1
            self._tally[kind] += 1
            self._kinds[key] = kind


class Watch(Protocol):
    """Hears of each transaction, on the loop and before its callers get their answers."""

    def committed(self, changes: Changes) -> None:
        """It is on the disk."""

    def refused(self, error: StoreError) -> None:
        """It is not, as far as is known."""


class Engine(Protocol):
    """Runs operations in transactions, one after the other and in the order they were given."""

    async def open(self, operation: Operation[T], watch: Watch) -> T:
        """Get ready, run the first operation and tell everything there is.

        On an error everything is released again.
        """

    def commit(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Run an operation; done when it lasts. Raises `StoreError` when it does not."""

    async def close(self) -> None:
        """Finish what was given, stop and release everything. May be repeated."""
