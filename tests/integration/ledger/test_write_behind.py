"""Progress and heartbeats reach the disk behind the back of those who send them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from reporter.common import log
from reporter.ledger import StoreFull
from reporter.run.plan import Plan, Plugin
from reporter.run.progress import Progress, StoredProgress, footprint
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    PLAN,
    Disk,
    World,
    appending,
    disk_error,
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
        if sql.startswith("INSERT INTO item"):
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
        return dict(connection.execute("SELECT key, doc FROM item WHERE kind = 'progress'"))
    finally:
        connection.close()


@on_loop
async def test_an_update_is_on_the_disk_soon_without_anybody_asking(tmp_path: Path, disk: Disk):
    """Within a second, by the store's own doing."""
    async with World(tmp_path, disk.connect).opened() as store:
        written = Written(disk)
        await store.record_progress(NODE1, replacing(7), None, at=NOW)
        while str(NODE1) not in on_disk(tmp_path / "run.db"):
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
    assert set(map(str, PLAN.keys)) == set(on_disk(tmp_path / "run.db"))


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
async def test_beats_are_written_together_and_in_the_time_of_the_store(tmp_path: Path, disk: Disk):
    """One statement for all keys; a wall clock that is set back makes nobody older."""
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        written = Written(disk)
        store.record_heartbeat(NODE2, 0.0, beat=True)
        await store.probe()
        before = len(written.beats)
        world.clock.now, world.wall.now = 5.0, NOW - 3600.0
        store.record_heartbeat(NODE2, 4.0, beat=False)
        store.record_heartbeat(NODE1, 5.0, beat=False)
        revision = store.snapshot().revision
        await store.probe()
        assert before + 1 == len(written.beats)
        assert revision == store.snapshot().revision
        connection = sqlite3.connect(tmp_path / "run.db")
        rows = connection.execute("SELECT key, armed, heard_at FROM beat ORDER BY key").fetchall()
        connection.close()
    assert [("sysd/node1", 0, NOW + 5.0), ("sysd/node2", 1, NOW + 4.0)] == rows


@on_loop
async def test_an_older_beat_does_not_replace_a_newer_one(tmp_path: Path):
    """Another process may have heard the worker since, and may have heard it beat."""
    world = World(tmp_path)
    async with world.opened(pace=3600.0) as store:
        await store._writer.submit(lambda batch: batch.beats.append((NODE1, True, NOW + 50.0)))
        world.clock.now = 5.0
        store.record_heartbeat(NODE1, 5.0, beat=False)
        await store.probe()
        connection = sqlite3.connect(tmp_path / "run.db")
        rows = connection.execute("SELECT key, armed, heard_at FROM beat").fetchall()
        connection.close()
    assert [("sysd/node1", 1, NOW + 50.0)] == rows


@on_loop
async def test_what_is_written_behind_does_not_replace_what_is_newer(tmp_path: Path):
    """The transaction decides, by the time of both: another process may have written since."""
    theirs = StoredProgress(replacing(9), NOW + 2)
    async with World(tmp_path).opened(pace=3600.0) as store:
        await store.record_progress(NODE1, replacing(1), None, at=NOW)
        await store._writer.submit(lambda batch: batch.put_progress(NODE1, theirs))
        await store.probe()
        assert theirs == store.snapshot().progress[NODE1]
        await store.record_progress(NODE1, replacing(2), None, at=NOW + 1)
        assert 2 == store.snapshot().progress[NODE1].progress.completed
    async with World(tmp_path).opened() as again:
        assert 2 == again.snapshot().progress[NODE1].progress.completed


@on_loop
async def test_a_sign_of_life_is_a_small_write_however_long_the_plan_is(tmp_path: Path):
    """One comes every few seconds, and SQLite writes the whole of a row that has another length."""
    plan = Plan("run-1", (Plugin("load", tuple(f"n{number}" for number in range(5_000))),))
    log_ahead = tmp_path / "run.db-wal"
    async with World(tmp_path).opened(plan=plan, pace=3600.0) as store:
        store.note_alive(NOW + 1)
        await store.probe()
        before = log_ahead.stat().st_size
        store.note_alive(NOW + 6.789)
        await store.probe()
        assert log_ahead.stat().st_size - before < 10_000


@on_loop
async def test_the_texts_of_a_run_have_an_end(tmp_path: Path):
    """Beyond it an update keeps its counts only, and room that is given back is used again."""
    one = footprint(StoredProgress(replacing(1), 0.0))
    async with World(tmp_path).opened(room=2 * one + 32) as store:
        for key in PLAN.keys:
            await store.record_progress(key, replacing(1), None, at=NOW)
        shown = [store.snapshot().progress[key].progress for key in PLAN.keys]
        assert ["step 1", "step 1", ""] == [progress.msg for progress in shown]
        assert (100, 1) == (shown[2].total, shown[2].completed)

        await store.record_progress(NODE2, appending(4, "a"), None, at=NOW)
        appended = store.snapshot().progress[NODE2].progress
        assert (5, (), 1) == (appended.completed, appended.failures, appended.failures_total)

        await store.record_progress(E2E, Progress(total=1), None, at=NOW)
        await store.record_progress(NODE2, replacing(2), None, at=NOW)
        assert "step 2" == store.snapshot().progress[NODE2].progress.msg


@on_loop
async def test_an_append_that_was_refused_takes_no_room(tmp_path: Path, disk: Disk):
    """Else a full disk would take the texts of the run bit by bit."""
    room = footprint(StoredProgress(replacing(1), 0.0)) + 8

    def refuse(sql: str) -> None:
        if sql == "COMMIT":
            raise disk_error(sqlite3.SQLITE_FULL)

    async with World(tmp_path, disk.connect).opened(room=room) as store:
        with log.capture():
            disk.before = refuse
            with pytest.raises(StoreFull):
                await store.record_progress(E2E, appending(1, "x" * 20), None, at=NOW)
            disk.before = lambda _: None
            assert await store.probe()
        await store.record_progress(NODE1, replacing(1), None, at=NOW)
        assert "step 1" == store.snapshot().progress[NODE1].progress.msg
