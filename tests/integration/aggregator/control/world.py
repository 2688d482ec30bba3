"""One run under control, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

from reporter.aggregator.control import Control
from reporter.aggregator.tarball.package import PackageFailed
from reporter.common import log
from reporter.ledger import StoreFull, Windows
from reporter.run.clock import RunClock
from reporter.run.entry import Marked, State
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause, Failure, Rank, Record
from reporter.run.state import Phase, Snapshot, Tar
from reporter.run.upload import UploadOutcome
from tests.aggregators.contexts import context
from tests.aggregators.stores import QuickStore, volatile
from tests.unit.run.world import status_document

E2E, NODE1, NODE2 = Key("e2e", "global"), Key("sysd", "node1"), Key("sysd", "node2")


PLAN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", nodes=("node1", "node2"))), 3_600)


FAILED = PackageFailed("the tarball cannot be made: disk full")


TAR = Tar("run-1.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 7)


class Files:
    """Stands for the files behind the rows; `broken` is raised instead of the next works."""

    def __init__(self) -> None:
        self.packaged = self.cleared = 0
        self.broken: dict[str, Exception] = {}

    async def package(self, snapshot) -> Tar:
        assert Phase.POST_PROCESSING is snapshot.phase
        self._fail("package")
        self.packaged += 1
        return TAR

    async def clear(self, snapshot: Snapshot) -> None:
        self._fail("clear")
        self.cleared += 1

    def _fail(self, what: str) -> None:
        if what in self.broken:
            raise self.broken[what]


class World:
    """A run, its control and its clocks. `restart` is a new process on the same disk."""

    def __init__(self, plan: Plan = PLAN, *, window: float = 120.0, timeout: float = 120.0) -> None:
        self.plan, self.window, self.timeout = plan, window, timeout
        self.mono, self.wall = 1_000.0, 1_800_000_000.0
        self.path = volatile(self) / "run.db"
        self.counted = list[str]()
        self.uploads = SimpleNamespace(holding=set[Key](), excused=set[Key](), queued=set[Key]())
        self.workers = SimpleNamespace(full_seconds=0.0)
        self.full: StoreFull | None = None
        self.launcher: Any = None

    async def start(
        self,
        *,
        recovering: float = 0.0,
        broken: Exception | None = None,
        package_again: bool = False,
    ) -> World:
        """Open the run as a fresh process does, which takes so long to get its disk in order."""
        self.files = Files()
        if broken is not None:
            self.files.broken["package"] = broken
        now = RunClock(lambda: self.mono, lambda: self.wall)
        self.store = QuickStore(
            self.path,
            now=now,
            windows=Windows(retry=self.window),
            before_commit=self._commit,
        )
        await self.store.open_run(self.plan, now=self.wall)
        if package_again:
            assert await self.store.package_again()
        self.move(recovering)
        shared = context(
            self.plan,
            self.path.parent,
            store=self.store,
            settings={"heartbeat_timeout_seconds": self.timeout},
            now=now,
        )
        shared.metrics.count = self.counted.append
        self.control = Control(
            shared, self.files, self.uploads, self.workers, launcher=self.launcher
        )
        await self.control.tick()
        return self

    async def restart(self, after: float = 0.0, **options: Any) -> None:
        """Be killed, stay away for `after` seconds, start again with another monotonic clock."""
        self.wall += after
        self.mono = 5.0
        self.uploads.holding.clear()
        await self.store.close()
        await self.start(**options)

    async def pass_time(self, seconds: float, step: float = 1.0) -> None:
        """Let time go by as the process sees it, a tick each `step`."""
        end = self.mono + seconds
        while self.mono < end:
            self.move(min(step, end - self.mono))
            await self.control.tick()

    def move(self, seconds: float) -> None:
        """Let time go by while the process is stopped."""
        self.mono += seconds
        self.wall += seconds

    async def result(self, key: Key, verdict: str = "passed") -> UploadOutcome:
        """Hand in a result."""
        record = Record(
            Rank.RESULT, self.wall, digest="cd" * 32, size=3, filename="r", verdict=verdict
        )
        return (await self.store.record_result(key, record)).outcome

    async def attempt(self, key: Key, text: str = "bad archive") -> Marked:
        """Have an upload fail."""
        return await self.store.mark_failed(key, Failure("attempt", self.wall, text))

    def beat(self, key: Key) -> None:
        """Have a worker send a heartbeat."""
        self.store.record_heartbeat(key, self.mono, beat=True)

    def state(self, key: Key) -> tuple[State, Cause | None]:
        """An entry's state and why."""
        entry = self.store.entry(key)
        return entry.state, entry.record.cause if entry.record else None

    def shown(self, key: Key) -> dict:
        """An entry as `/status` shows it."""
        shown = status_document(self.store.snapshot(), now=self.wall, mono=self.mono)
        return next(entry for entry in shown["plugins"] if entry["key"] == str(key))

    def _commit(self) -> None:
        if self.full is not None:
            raise self.full


def play(story: Awaitable[None]) -> list[dict]:
    """Run a test's story and return what was logged."""

    async def told() -> None:
        await story

    with log.capture() as events:
        asyncio.run(told())
    return events
