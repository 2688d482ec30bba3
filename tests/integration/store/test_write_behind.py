"""Progress and heartbeats reach the disk behind the back of those who send them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from reporter.aggregator.store import ProgressTaken, StoreFull
from reporter.aggregator.store.write_behind import BEATS_PACE, LatestProgress
from reporter.core.run.plan import Key
from reporter.core.run.progress import Progress, Sent, footprint
from tests.integration.store.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    PLAN,
    Disk,
    World,
    appending,
    on_loop,
    replacing,
)


class Written:
    """What each transaction wrote: how many statements of which kind, and in which thread."""

    def __init__(self, disk: Disk) -> None:
        self.progress: list[int] = []
        self.beats: list[int] = []
        self.threads: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._more = asyncio.Event()
        disk.before, disk.after = self._note, self._done

    def _note(self, sql: str) -> None:
        self.threads.add(threading.get_ident())
        if sql.startswith("INSERT INTO progress"):
            self.progress.append(1)
        if sql.startswith("INSERT INTO beat"):
            self.beats.append(1)

    def _done(self, sql: str) -> None:
        if sql == "COMMIT":
            self._loop.call_soon_threadsafe(self._more.set)

    async def commit(self) -> None:
        """Wait for the next commit."""
        self._more.clear()
        await self._more.wait()


def on_disk(path: Path) -> dict[str, str]:
    """The progress rows, as another process reads them."""
    connection = sqlite3.connect(path)
    try:
        return dict(connection.execute("SELECT node, sent FROM progress"))
    finally:
        connection.close()


@on_loop
async def test_an_update_is_on_the_disk_soon_without_anybody_asking(tmp_path: Path, disk: Disk):
    """Within a second, by the store's own doing."""
    async with World(tmp_path, disk.connect).opened() as store:
        written = Written(disk)
        await store.record_progress(NODE1, replacing(7), None, at=NOW)
        while "node1" not in on_disk(tmp_path / "run.db"):
            await written.commit()


@on_loop
async def test_ten_thousand_updates_are_a_handful_of_writes(tmp_path: Path, disk: Disk):
    """One a second for all keys together, and none of them in the loop's thread."""
    async with World(tmp_path, disk.connect).opened(pace=3600.0) as store:
        written = Written(disk)
        await store.record_progress(E2E, replacing(0), None, at=NOW)
        await written.commit()
        first = len(written.progress)
        for number in range(10_000):
            await store.record_progress(PLAN.keys[number % 3], replacing(number), None, at=NOW)
        await asyncio.sleep(0)
        assert first == len(written.progress)
        assert await store.probe()
        assert first + 1 == len(written.progress)
        assert threading.get_ident() not in written.threads
    assert {"global", "node1", "node2"} == set(on_disk(tmp_path / "run.db"))


@on_loop
async def test_what_was_written_is_not_written_again(tmp_path: Path, disk: Disk):
    """A quiet run costs nothing."""
    async with World(tmp_path, disk.connect).opened(pace=0.001) as store:
        written = Written(disk)
        await store.record_progress(E2E, replacing(1), None, at=NOW)
        await written.commit()
        await store.probe()
        before = len(written.progress)
        for _ in range(5):
            await store.probe()
        assert before == len(written.progress)


@on_loop
async def test_an_append_brings_what_was_there_before_it_to_the_disk(tmp_path: Path, disk: Disk):
    """So that need not be written once more."""
    async with World(tmp_path, disk.connect).opened(pace=3600.0) as store:
        for _ in range(3):
            await store.probe()
        await store.record_progress(E2E, replacing(1), None, at=NOW)
        for _ in range(3):
            await store.probe()
        written = Written(disk)
        await store.record_progress(E2E, replacing(2), None, at=NOW)
        await store.record_progress(E2E, Progress(appendcompleted=1), None, at=NOW)
        assert 1 == len(written.progress)
        await store.probe()
        assert 1 == len(written.progress)


@on_loop
async def test_beats_are_written_every_five_seconds(tmp_path: Path, disk: Disk):
    """They may be lost, so they are not worth more."""
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        written = Written(disk)
        store.record_heartbeat(NODE2, 0.0, beat=True)
        await store.probe()
        before = len(written.beats)
        world.clock.now = world.wall.now = BEATS_PACE
        world.wall.now += NOW
        store.record_heartbeat(NODE2, 4.0, beat=True)
        store.record_heartbeat(NODE1, 5.0, beat=False)
        await store.probe()
        assert before + 1 == len(written.beats)
        connection = sqlite3.connect(tmp_path / "run.db")
        rows = connection.execute("SELECT node, armed, heard_at FROM beat ORDER BY node").fetchall()
        connection.close()
    assert [("node1", 0, NOW + 5.0), ("node2", 1, NOW + 4.0)] == rows


@on_loop
async def test_the_texts_of_a_run_have_an_end():
    """Beyond it an update keeps its counts only, and room that is given back is used again."""
    room = 3 * footprint(Sent(replacing(1), 0.0)) + 32
    keys = [Key("sysd", f"node{number}") for number in range(4)]
    written: list[Sent] = []

    async def commit(operation) -> ProgressTaken:
        written.append(operation)
        return ProgressTaken.APPLIED

    latest = LatestProgress({keys[0]: Sent(replacing(1), 0.0)}, commit, lambda: None, room)
    for key in keys[1:]:
        assert ProgressTaken.APPLIED is latest.replace(key, replacing(1), None, 1.0)
    assert ["step 1"] * 3 + [""] == [latest.shown[key].progress.msg for key in keys]
    counts = latest.shown[keys[3]].progress
    assert (100, 1) == (counts.total, counts.completed)

    assert ProgressTaken.APPLIED is await latest.append(keys[3], appending(4, "a"), None, 2.0)
    assert (5, (), 1) == (
        latest.shown[keys[3]].progress.completed,
        latest.shown[keys[3]].progress.failures,
        latest.shown[keys[3]].progress.failures_total,
    )
    latest.replace(keys[0], Progress(total=1), None, 3.0)
    latest.replace(keys[3], replacing(2), None, 3.0)
    assert "step 2" == latest.shown[keys[3]].progress.msg


@on_loop
async def test_room_of_an_append_that_was_refused_is_given_back():
    """Else a full disk would take the texts of the run bit by bit."""
    key, other = Key("e2e", "global"), Key("sysd", "node1")

    async def commit(operation) -> ProgressTaken:
        raise StoreFull("full")

    room = footprint(Sent(replacing(1), 0.0)) + 8
    latest = LatestProgress({}, commit, lambda: None, room)
    with pytest.raises(StoreFull):
        await latest.append(key, appending(1, "x" * 20), None, 1.0)
    latest.replace(other, replacing(1), None, 2.0)
    assert "step 1" == latest.shown[other].progress.msg
