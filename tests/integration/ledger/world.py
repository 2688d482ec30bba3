"""What the store's tests share: a plan, records, places that can be opened again, broken disks."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reporter.ledger import Store
from reporter.run.clock import RunClock
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.progress import Progress
from reporter.run.record import Cause, Failure, Rank, Record
from reporter.run.state import Snapshot, Tar

E2E = Key("e2e", "global")
NODE1, NODE2 = Key("sysd", "node1"), Key("sysd", "node2")
PLAN = Plan(
    "run-1",
    (Plugin("e2e", timeout_seconds=100), Plugin("sysd", ("node1", "node2"), order=1)),
    timeout_seconds=50,
)
NOW = 1_000_000.0
TAR = Tar("run-1_202601010000.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 12)
HANG = 30.0  # seconds; only a bound


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), HANG))

    return run


def result(digest: str = "aa", at: float = NOW) -> Record:
    """A result with everything that a row can hold."""
    return Record(
        Rank.RESULT,
        at,
        digest=digest,
        size=2**40,
        filename="ä.tar.gz",
        content_type="application/gzip",
        serial="0f",
        archive=True,
        notes=("link a -> b", "\ufffd"),
    )


def report(digest: str = "ee", at: float = NOW) -> Record:
    """A worker's own error report."""
    return Record(
        Rank.WORKER,
        at,
        digest=digest,
        size=3,
        cause=Cause.WORKER_ERROR,
        reason="OOM",
        text="it broke",
        document='{"error":"it broke"}',
    )


def gave_up(at: float = NOW, cause: Cause = Cause.POD_FAILED) -> Failure:
    """An error of the aggregator's own."""
    return Failure("final", at, "the pod is gone", cause, "Evicted", '{"error":"the pod is gone"}')


def failed_try(at: float = NOW, text: str = "bad archive") -> Failure:
    """An upload that failed."""
    return Failure("attempt", at, text)


def replacing(completed: int, **fields: Any) -> Progress:
    """A replacing update."""
    return Progress(msg=f"step {completed}", total=100, completed=completed, **fields)


def appending(completed: int, *failing: str) -> Progress:
    """An appending update."""
    return Progress(msg="more", appendcompleted=completed, appendfailing=failing)


@dataclass
class Clock:
    """Seconds that pass when told to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """One place where a run is kept, whatever opens it."""

    folder: Path
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    clock: Clock = field(default_factory=Clock)
    wall: Clock = field(default_factory=lambda: Clock(NOW))

    @property
    def path(self) -> Path:
        """Where the database is."""
        return self.folder / "run.db"

    def store(self, **options: Any) -> Store:
        """A store of this place, not open yet."""
        options = {"now": RunClock(self.clock, self.wall)} | options
        return Store(self.path, connect=self.connect, **options)

    @asynccontextmanager
    async def opened(
        self, *, plan: Plan = PLAN, now: float = NOW, **options: Any
    ) -> AsyncIterator[Store]:
        """A store with the run open; closed afterwards."""
        store = self.store(**options)
        await store.open_run(plan, now=now)
        try:
            yield store
        finally:
            await store.close()


async def complete(store: Store) -> None:
    """Bring every entry to an end."""
    for key in PLAN.keys:
        await store.record_result(key, result())


def facts(snapshot: Snapshot) -> Snapshot:
    """What a restart must keep: all but the revision and the ages."""
    armed = {key: replace(beat, heard_at=0.0) for key, beat in snapshot.beats.items()}
    return replace(snapshot, revision=0, ahead=False, beats=MappingProxyType(armed))


def totals(store: Store, key: Key = E2E) -> tuple[int, int]:
    """Total and completed, as shown."""
    progress = store.snapshot().progress[key].progress
    return progress.total, progress.completed


async def beat(store: Store, mono: float, key: Key = E2E) -> None:
    """A heartbeat."""
    store.record_heartbeat(key, mono, beat=True)


def disk_error(code: int, text: str = "disk I/O error") -> sqlite3.OperationalError:
    """What the sqlite3 module raises for a result code."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


class Disk:
    """A disk that fails: `before` and `after` are called around each statement and may raise."""

    def __init__(self) -> None:
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None

    def connect(self, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        """Open a database on this disk."""
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                disk.before(sql)
                cursor = super().execute(sql, *parameters)
                disk.after(sql)
                return cursor

            def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                disk.before(sql)
                return super().executemany(sql, *parameters)

        return sqlite3.connect(*args, factory=Connection, **kwargs)


def sound(disk: Disk) -> None:
    """Let everything succeed again."""
    disk.before = disk.after = lambda _: None
