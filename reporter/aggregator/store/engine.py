"""What an engine of a store is: it runs operations in transactions and tells of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from reporter.aggregator.store.contract import StoreError
from reporter.aggregator.store.operations import Loaded, Operation, Run
from reporter.core.run.entry import Entry
from reporter.core.run.plan import Key
from reporter.core.run.progress import Sent

T = TypeVar("T")


@dataclass(frozen=True)
class Changes:
    """A committed transaction: entries and progress it read or wrote, the run if that was written.

    `seconds` is how long it took, `operations` how many callers shared it.
    """

    entries: Mapping[Key, Entry]
    progress: Mapping[Key, Sent]
    run: Run | None
    seconds: float
    operations: int


class Watch(Protocol):
    """Hears of each transaction, on the loop and before its callers get their answers."""

    def committed(self, changes: Changes) -> None:
        """It is on the disk."""

    def refused(self, error: StoreError) -> None:
        """It is not; nothing of it is."""


class Engine(Protocol):
    """Runs operations in transactions, one after the other and in the order they were given."""

    async def open(self, operation: Operation[Loaded], watch: Watch) -> Loaded:
        """Get ready and run the first operation; on an error everything is released again."""

    def commit(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Run an operation; done when it lasts. Raises `StoreError` when it does not."""

    async def close(self) -> None:
        """Finish what was given, stop and release everything. May be repeated."""
