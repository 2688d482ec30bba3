"""The engine that keeps a run in an SQLite database, and the one thread that writes it.

The loop puts operations into a bounded queue; the thread takes all that wait into one transaction,
so that a slow disk makes groups larger, not waits longer. SQLite is touched in the thread only.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from reporter.ledger import schema
from reporter.ledger.cached import CachedStore
from reporter.ledger.contract import RunNotReady, StoreBusy, StoreError, StoreLocked
from reporter.ledger.engine import Changes, Feed, Watch
from reporter.ledger.operations import Windows
from reporter.ledger.sqlite_transaction import SqliteTransaction
from reporter.ledger.transaction import Operation, known
from reporter.ledger.write_behind import PACE, RUN_BYTES
from reporter.run.clock import RunClock

T = TypeVar("T")

QUEUE = 1_024


class _Order(NamedTuple):
    operation: Operation[Any]
    answer: asyncio.Future[Any]


class _SqliteEngine:
    def __init__(self, path: Path, connect: schema.Connect) -> None:
        self._path, self._connect = path, connect
        self._stopped: asyncio.Future[None] | None = None
        self._taking = False

    async def open(self, operation: Operation[T], watch: Watch) -> T:
        if self._taking:
            raise StoreLocked(f"{self._path} is open already")
        self._loop, self._watch = asyncio.get_running_loop(), watch
        # Unbounded by itself: the end must fit in, and the loop, its only giver, counts.
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        stopped = self._stopped = self._loop.create_future()
        opened: asyncio.Future[T] = self._loop.create_future()
        threading.Thread(
            target=self._work, args=(operation, opened, stopped), name="store", daemon=True
        ).start()
        try:
            answer = await opened
        except asyncio.CancelledError:
            self._orders.put(None)
            raise
        self._taking = True
        return answer

    def commit(self, operation: Operation[T]) -> asyncio.Future[T]:
        if not self._taking:
            raise StoreError("the store is closed")
        if self._orders.qsize() >= QUEUE:
            raise StoreBusy(f"{QUEUE} operations wait for the disk")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._orders.put(_Order(operation, answer))
        return answer

    async def close(self) -> None:
        if self._taking:
            self._taking = False
            self._orders.put(None)
        if self._stopped is not None:
            await asyncio.shield(self._stopped)

    # -- in the thread ---------------------------------------------------------------------------

    def _work(
        self,
        first: Operation[T],
        opened: asyncio.Future[T],
        stopped: asyncio.Future[None],
    ) -> None:
        # A loop that is closed has nobody left to tell anything.
        with contextlib.suppress(RuntimeError):
            try:
                with _locked(self._path):
                    transaction = SqliteTransaction(schema.open_database(self._path, self._connect))
                    feed = Feed()
                    try:
                        self._open(transaction, feed, first, opened)
                        while orders := self._next():
                            self._commit(transaction, feed, orders)
                    finally:
                        with contextlib.suppress(sqlite3.Error):
                            transaction.close()
            except Exception as error:
                self._tell(_reject, opened, schema.store_error(error, self._path))
            self._tell(_resolve, stopped, None)

    def _next(self) -> list[_Order]:
        """Wait for an order and take what else is there; nothing: the end."""
        orders = []
        order = self._orders.get()
        while order is not None:
            orders.append(order)
            try:
                order = self._orders.get_nowait()
            except queue.Empty:
                return orders
        if orders:
            self._orders.put(None)  # the end comes after these
        return orders

    def _open(
        self,
        transaction: SqliteTransaction,
        feed: Feed,
        operation: Operation[T],
        opened: asyncio.Future[T],
    ) -> None:
        with transaction.begun():
            answer = operation(transaction)
            news, due_at = feed.news(transaction, transaction.changed), transaction.next_due()
        changes = feed.committed(known(transaction), news, due_at, 0.0, 1)
        self._tell(self._watch.committed, changes)
        self._tell(_resolve, opened, answer)

    def _commit(self, transaction: SqliteTransaction, feed: Feed, orders: list[_Order]) -> None:
        # Nothing is read after the end: what the disk refuses must be told to those who asked.
        began = time.perf_counter()
        answers: list[object] = []
        try:
            with transaction.begun():
                for order in orders:
                    try:
                        answers.append(order.operation(transaction))
                    except RunNotReady as not_ready:
                        answers.append(not_ready)
                news, due_at = feed.news(transaction, transaction.changed), transaction.next_due()
        except Exception as error:
            feed.refused()
            self._tell(self._refused, orders, schema.store_error(error, self._path))
            return
        seconds = time.perf_counter() - began
        changes = feed.committed(known(transaction), news, due_at, seconds, len(orders))
        self._tell(self._committed, orders, answers, changes)

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)

    # -- on the loop again -----------------------------------------------------------------------

    def _committed(self, orders: list[_Order], answers: list[object], changes: Changes) -> None:
        self._watch.committed(changes)
        for order, answer in zip(orders, answers, strict=True):
            if isinstance(answer, RunNotReady):
                _reject(order.answer, answer)
            else:
                _resolve(order.answer, answer)

    def _refused(self, orders: list[_Order], error: StoreError) -> None:
        self._watch.refused(error)
        for order in orders:
            _reject(order.answer, type(error)(str(error)))


def _resolve(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _reject(future: asyncio.Future[Any], error: StoreError) -> None:
    if not future.done():
        future.set_exception(error)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes out. The lock is the kernel's: it ends with the process."""
    beside = path.with_name(path.name + ".lock")
    # Not on the database itself: SQLite's own locks there would be lost with this descriptor.
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(f"another process has {path} open") from None
        yield
    finally:
        os.close(descriptor)


class SqliteStore(CachedStore):
    """The store of a run in the database at `path`; its directory must be there.

    `connect` opens the database in place of `sqlite3.connect`.
    """

    def __init__(
        self,
        path: Path,
        *,
        now: RunClock | None = None,
        on_commit: Callable[[float, int], None] | None = None,
        windows: Windows | None = None,
        pace: float = PACE,
        room: int = RUN_BYTES,
        connect: schema.Connect = sqlite3.connect,
    ) -> None:
        super().__init__(
            _SqliteEngine(path, connect),
            now=now or RunClock(time.monotonic, time.time),
            on_commit=on_commit,
            windows=windows,
            pace=pace,
            room=room,
        )
