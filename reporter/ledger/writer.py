"""The one thread that writes: it takes all operations that wait into one transaction.

So a slow disk makes groups larger, not waits longer. SQLite is touched in this thread only.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from reporter.ledger import database
from reporter.ledger.errors import RunNotReady, StoreBusy, StoreError, StoreLocked
from reporter.ledger.lifecycle import Run
from reporter.ledger.rows import Commit, Operation, Rows
from reporter.run.plan import Key, Plan

T = TypeVar("T")

QUEUE = 1_024

Opened = tuple[Plan, dict[Key, bool], Commit]


class _Order(NamedTuple):
    operation: Operation[Any]
    answer: asyncio.Future[Any]


class Writer:
    """Runs operations on a database one after the other, in the order in which they were given.

    `committed` and `refused` are called on the loop after each transaction, before its callers get
    their answers: what is new with the seconds it took and how many operations shared it, or why
    nothing is changed, as far as is known.
    """

    def __init__(
        self,
        path: Path,
        connect: database.Connect,
        committed: Callable[[Commit, float, int], None],
        refused: Callable[[StoreError], None],
    ) -> None:
        self._path, self._connect = path, connect
        self._on_commit, self._on_refusal = committed, refused
        self._stopped: asyncio.Future[None] | None = None
        self._taking = False

    async def open(self, plan: Plan, run: Run) -> Opened:
        """Open the database and do `Rows.open`; on an error everything is released again."""
        if self._taking:
            raise StoreLocked(f"{self._path} is open already")
        self._loop = asyncio.get_running_loop()
        # Unbounded by itself: the end must fit in, and the loop, its only giver, counts.
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        stopped = self._stopped = self._loop.create_future()
        opened: asyncio.Future[Opened] = self._loop.create_future()
        threading.Thread(
            target=self._work, args=(plan, run, opened, stopped), name="store", daemon=True
        ).start()
        try:
            answer = await opened
        except asyncio.CancelledError:
            self._orders.put(None)
            raise
        self._taking = True
        return answer

    def submit(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Run an operation; done when it lasts. Raises `StoreError` when it does not."""
        if not self._taking:
            raise StoreError("the store is closed")
        if self._orders.qsize() >= QUEUE:
            raise StoreBusy(f"{QUEUE} operations wait for the disk")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._orders.put(_Order(operation, answer))
        return answer

    async def close(self) -> None:
        """Finish what was given, stop and release everything. May be repeated."""
        if self._taking:
            self._taking = False
            self._orders.put(None)
        if self._stopped is not None:
            await asyncio.shield(self._stopped)

    # -- in the thread ---------------------------------------------------------------------------

    def _work(
        self, plan: Plan, run: Run, opened: asyncio.Future[Opened], stopped: asyncio.Future[None]
    ) -> None:
        # A loop that is closed has nobody left to tell anything.
        with contextlib.suppress(RuntimeError):
            try:
                with database.opened(self._path, self._connect) as connection:
                    rows = Rows(connection)
                    self._tell(_resolve, opened, rows.open(plan, run))
                    while orders := self._next():
                        self._transact(rows, orders)
            except Exception as error:
                self._tell(_reject, opened, database.store_error(error, self._path))
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

    def _transact(self, rows: Rows, orders: list[_Order]) -> None:
        began = time.perf_counter()
        try:
            answers, commit = rows.commit([order.operation for order in orders])
        except Exception as error:
            self._tell(self._refused, orders, database.store_error(error, self._path))
        else:
            self._tell(self._answer, orders, answers, commit, time.perf_counter() - began)

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)

    # -- on the loop again -----------------------------------------------------------------------

    def _answer(
        self, orders: list[_Order], answers: list[object], commit: Commit, seconds: float
    ) -> None:
        self._on_commit(commit, seconds, len(orders))
        for order, answer in zip(orders, answers, strict=True):
            if isinstance(answer, RunNotReady):
                _reject(order.answer, answer)
            else:
                _resolve(order.answer, answer)

    def _refused(self, orders: list[_Order], error: StoreError) -> None:
        self._on_refusal(error)
        for order in orders:
            _reject(order.answer, type(error)(str(error)))


def _resolve(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _reject(future: asyncio.Future[Any], error: StoreError) -> None:
    if not future.done():
        future.set_exception(error)
