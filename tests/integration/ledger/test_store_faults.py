"""The disk is full, broken or away for a while: clean answers, nothing half done, no restart."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from reporter.common import log
from reporter.ledger import ProgressTaken, Store, StoreError, StoreFull
from reporter.run.entry import Marked, State
from reporter.run.state import Phase, Snapshot
from reporter.run.tar_upload import TarUpload, UploadState
from reporter.run.upload import UploadOutcome
from tests.integration.ledger.story import STEPS, Step, lasting
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NOW,
    PLAN,
    Disk,
    World,
    appending,
    complete,
    disk_error,
    failed_try,
    gave_up,
    on_loop,
    replacing,
    result,
    sound,
)
from tests.small_volume import small_volume

FULL = (sqlite3.SQLITE_FULL, StoreFull)


BROKEN = (sqlite3.SQLITE_IOERR_WRITE, StoreError)


FAULTS = [
    pytest.param(*FULL, id="full"),
    pytest.param(sqlite3.SQLITE_IOERR_SHMSIZE, StoreFull, id="full-for-the-index"),
    pytest.param(*BROKEN, id="broken"),
    pytest.param(sqlite3.SQLITE_IOERR_FSYNC, StoreError, id="not-synced"),
    pytest.param(sqlite3.SQLITE_READONLY, StoreError, id="read-only"),
]


def failing(disk: Disk, code: int) -> None:
    """Let every commit fail."""

    def refuse(sql: str) -> None:
        if sql == "COMMIT":
            raise disk_error(code)

    disk.before = refuse


class Once:
    """Fails one statement, the one of that number; `only` counts nothing but those."""

    def __init__(self, number: int, code: int, only: str = "") -> None:
        self.left, self._code, self._only, self.hit = number, code, only, False

    def __call__(self, sql: str) -> None:
        if sql.startswith(self._only):
            self.left -= 1
            if self.left == -1:
                self.hit = True
                raise disk_error(self._code)


async def persistent(step: Step, store: Store, *, done: bool = False) -> list[type[StoreError]]:
    """Take a step as a client that tries again; return how it was refused meanwhile.

    `done`: it was carried out nevertheless, and that may be seen already.
    """
    refused: list[type[StoreError]] = []
    while len(refused) < 3:
        before = store.snapshot()
        try:
            await step(store)
        except StoreError as error:
            refused.append(type(error))
            after = store.snapshot()
            if not done:
                assert (before.entries, before.progress) == (after.entries, after.progress)
                assert before.phase == after.phase
            # As an aggregator would, which refuses everything until it can write again.
            assert await store.probe()
        else:
            return refused
    raise AssertionError("refused for good")


@pytest.mark.parametrize(("code", "wanted"), [FULL, BROKEN], ids=["full", "broken"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_each_write_fails_once_and_nothing_is_acknowledged_that_is_not_there(
    quick_folder: Path, code, wanted, when
):
    """C14: also when the commit worked and only its answer was bad."""

    async def told(world: World, fault: Once | None) -> tuple[Snapshot, list[type[StoreError]]]:
        store = world.store(pace=3600.0)
        await store.open_run(PLAN, now=NOW)
        if fault:
            setattr(disk, when, fault)
        done = when == "after"
        refused = [error for step in STEPS for error in await persistent(step, store, done=done)]
        sound(disk)
        shown = lasting(store.snapshot())
        await store.close()
        async with world.opened() as again:
            assert shown == lasting(again.snapshot())
        return shown, refused

    disk, refusals = Disk(), []
    (quick_folder / "sound").mkdir()
    expected, _ = asyncio.run(told(World(quick_folder / "sound"), None))
    with log.capture():
        for number in itertools.count():
            folder = quick_folder / str(number)
            folder.mkdir()
            # After any other statement is the same as before the next one.
            fault = Once(number, code, "COMMIT" if when == "after" else "")
            shown, refused = asyncio.run(told(World(folder, disk.connect), fault))
            assert (number, expected) == (number, shown)
            refusals += refused
            if not fault.hit:
                break
    assert {wanted} == set(refusals)
    assert len(refusals) > len(STEPS) // 2


@pytest.mark.parametrize(("code", "wanted"), [FULL, BROKEN], ids=["full", "broken"])
def test_each_write_of_the_start_fails_once_and_the_next_start_succeeds(
    quick_folder: Path, code, wanted
):
    """Start never fails on debris of our own."""

    async def start() -> type[StoreError] | None:
        try:
            async with world.opened():
                return None
        except StoreError as error:
            return type(error)

    disk, refusals = Disk(), []
    with log.capture():
        for number in itertools.count():
            folder = quick_folder / str(number)
            folder.mkdir()
            world = World(folder, disk.connect)
            disk.before = fault = Once(number, code)
            refusals.append(asyncio.run(start()))
            if not fault.hit:
                break
            assert asyncio.run(start()) is None
    assert {wanted, None} == set(refusals)
    assert refusals.count(wanted) > 10


@pytest.mark.parametrize(("code", "wanted"), FAULTS)
@on_loop
async def test_a_batch_that_fails_is_refused_to_all_its_callers(tmp_path: Path, disk, code, wanted):
    """And when the disk is back, the same calls succeed without a restart."""
    world = World(tmp_path, disk.connect)
    with log.capture() as logs:
        async with world.opened() as store:
            before = store.snapshot()
            failing(disk, code)
            calls = [lambda key=key: store.record_result(key, result()) for key in PLAN.keys]
            refused = await asyncio.gather(*(call() for call in calls), return_exceptions=True)

            assert [wanted] * 3 == [type(error) for error in refused]
            assert 3 == len(set(map(id, refused)))
            assert (False, before) == (store.writable, store.snapshot())
            assert not await store.probe()
            sound(disk)
            assert await store.probe()
            assert [UploadOutcome.ACCEPTED] * 3 == [(await call()).outcome for call in calls]
    assert ["Store is not writable", "Store is writable again"] == [
        line["message"] for line in logs
    ]


def pages(world: World) -> bytes:
    """What the database has written, but for the index of its journal."""
    return b"".join(
        (world.folder / name).read_bytes()
        for name in ("run.db", "run.db-wal")
        if (world.folder / name).exists()
    )


@on_loop
async def test_a_start_and_a_probe_write_when_there_is_nothing_to_write(world: World):
    """To commit nothing works on a full disk too, and a row that stays the same is not written."""
    async with world.opened():
        pass
    found = pages(world)
    async with world.opened(pace=3600.0) as store:
        started = pages(world)
        assert await store.probe()
        assert found != started != pages(world)


@on_loop
async def test_a_store_that_cannot_write_refuses_progress_and_hears_heartbeats(
    tmp_path: Path, disk
):
    """Progress 503, status goes on, nobody is declared lost meanwhile."""
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        with log.capture():
            await store.record_progress(E2E, replacing(1), None, at=NOW)
            store.record_heartbeat(NODE1, 1.0, beat=True)
            world.clock.now = 10.0  # so long that the beat is among what cannot be written
            failing(disk, sqlite3.SQLITE_FULL)
            assert not await store.probe()
            for update in (replacing(2), appending(2)):
                with pytest.raises(StoreFull):
                    await store.record_progress(E2E, update, None, at=NOW)
            store.record_heartbeat(E2E, 9.0, beat=True)
            snapshot = store.snapshot()
            assert (1, 9.0) == (
                snapshot.progress[E2E].progress.completed,
                snapshot.beats[E2E].heard_at,
            )
            sound(disk)
            assert await store.probe()
        assert ProgressTaken.APPLIED == await store.record_progress(E2E, appending(2), None, at=NOW)
    async with World(tmp_path).opened() as again:
        assert 3 == again.snapshot().progress[E2E].progress.completed
        assert [True, True] == [beat.armed for beat in again.snapshot().beats.values()]


@on_loop
async def test_what_was_shown_while_the_disk_failed_is_written_when_it_is_back(
    tmp_path: Path, disk
):
    """An acknowledged replacing update is not forgotten; nobody has to ask for another try."""
    async with World(tmp_path, disk.connect).opened(pace=0.001) as store:
        with log.capture():
            failing(disk, sqlite3.SQLITE_FULL)
            await store.record_progress(E2E, replacing(5), None, at=NOW)
            while store.writable:
                await asyncio.sleep(0.001)
            sound(disk)
            while not store.writable:
                await asyncio.sleep(0.001)
    async with World(tmp_path).opened() as again:
        assert 5 == again.snapshot().progress[E2E].progress.completed


@on_loop
async def test_a_store_that_cannot_write_tries_again_by_itself(tmp_path: Path, disk):
    """Also when nothing waits to be written: the result was refused, and its worker comes back."""
    async with World(tmp_path, disk.connect).opened(pace=0.001) as store:
        with log.capture():
            failing(disk, sqlite3.SQLITE_FULL)
            with pytest.raises(StoreFull):
                await store.record_result(E2E, result())
            sound(disk)
            while not store.writable:
                await asyncio.sleep(0.001)


@on_loop
async def test_a_phase_whose_commit_only_seemed_to_fail_is_kept(tmp_path: Path, disk):
    """Whatever comes next is decided by it, and does not write the older one over it."""
    async with World(tmp_path, disk.connect).opened(pace=3600.0) as store:
        await complete(store)
        with log.capture():
            disk.after = Once(0, sqlite3.SQLITE_IOERR_FSYNC, "COMMIT")
            with pytest.raises(StoreError):
                await store.advance_run(Phase.POST_PROCESSING)
            assert Marked.CLOSED == await store.mark_failed(E2E, gave_up())
        await store.note_upload(TarUpload("host", UploadState.WAITING, NOW))
        assert Phase.POST_PROCESSING is store.phase


@on_loop
async def test_an_append_that_fails_leaves_the_next_one_without_it(tmp_path: Path, disk):
    """It was refused, so its worker will send it again; it must not be counted before that."""
    async with World(tmp_path, disk.connect).opened() as store:
        with log.capture():
            failing(disk, sqlite3.SQLITE_FULL)
            first = asyncio.ensure_future(store.record_progress(E2E, appending(5), None, at=NOW))
            second = asyncio.ensure_future(store.record_progress(E2E, appending(1), None, at=NOW))
            with pytest.raises(StoreFull):
                await first
            sound(disk)
            await asyncio.wait([second])
            await store.probe()
        expected = 0 if second.exception() else 1
        assert ProgressTaken.APPLIED == await store.record_progress(
            E2E, appending(10), None, at=NOW
        )
        assert 10 + expected == store.snapshot().progress[E2E].progress.completed


@on_loop
async def test_a_rollback_that_fails_does_not_block_the_store(tmp_path: Path, disk):
    """It is made up for before the next transaction."""
    failures = iter(["COMMIT", "ROLLBACK"])

    def refuse(sql: str) -> None:
        nonlocal awaited
        if sql == awaited:
            awaited = next(failures, "")
            raise disk_error(sqlite3.SQLITE_IOERR)

    async with World(tmp_path, disk.connect).opened() as store:
        with log.capture():
            awaited = next(failures)
            disk.before = refuse
            with pytest.raises(StoreError):
                await store.record_result(E2E, result("aa"))
            assert UploadOutcome.ACCEPTED == (await store.record_result(E2E, result("bb"))).outcome
            assert "" == awaited


@on_loop
async def test_a_disk_that_cannot_even_be_read_after_a_failed_commit(tmp_path: Path, disk):
    """Everybody is refused, nobody waits for ever, and the writer is there when the disk is."""

    def refuse(sql: str) -> None:
        if sql != "BEGIN IMMEDIATE":
            raise disk_error(sqlite3.SQLITE_IOERR_READ)

    async with World(tmp_path, disk.connect).opened(pace=3600.0) as store:
        with log.capture():
            disk.before = refuse
            for _ in range(3):
                with pytest.raises(StoreError):
                    await store.record_result(E2E, result("aa"))
            sound(disk)
            assert await store.probe()
        assert UploadOutcome.ACCEPTED == (await store.record_result(E2E, result("aa"))).outcome


@on_loop
async def test_a_commit_that_only_seemed_to_fail_shows_when_its_caller_repeats(
    tmp_path: Path, disk
):
    """The disk has the row: 409 with its digest, and the status agrees from then on."""

    def answer_badly(sql: str) -> None:
        if sql == "COMMIT":
            raise disk_error(sqlite3.SQLITE_IOERR)

    async with World(tmp_path, disk.connect).opened() as store:
        with log.capture():
            disk.after = answer_badly
            with pytest.raises(StoreError):
                await store.record_result(E2E, result("aa"))
            assert State.RUNNING == store.entry(E2E).state
            sound(disk)
            received = await store.record_result(E2E, result("bb"))
        assert (UploadOutcome.DUPLICATE, "aa") == (received.outcome, received.held.digest)
        assert State.COMPLETE == store.entry(E2E).state


@on_loop
async def test_a_phase_that_was_refused_is_not_reached_by_the_next_write(tmp_path: Path, disk):
    """Its caller was told that nothing has changed."""
    async with World(tmp_path, disk.connect).opened() as store:
        for key in PLAN.keys:
            await store.record_result(key, result())
        with log.capture():
            failing(disk, sqlite3.SQLITE_FULL)
            with pytest.raises(StoreFull):
                await store.advance_run(Phase.POST_PROCESSING)
            sound(disk)
            assert await store.probe()
        assert Phase.RUNNING == store.phase


@on_loop
async def test_a_sign_of_life_that_could_not_be_written(tmp_path: Path, disk):
    """It is written as soon as there is room: else a restart would count time that was none."""
    world = World(tmp_path, disk.connect)
    async with world.opened() as store:
        await store.note_plugin_launch("e2e", at=NOW)
    async with world.opened() as store:
        with log.capture():
            failing(disk, sqlite3.SQLITE_FULL)
            store.note_alive(NOW + 50)
            assert not await store.probe()
            sound(disk)
            assert await store.probe()
    async with world.opened(now=NOW + 60) as again:
        await again.workers_return(at=NOW + 60)
        assert NOW + 110 == again.entry(E2E).deadline


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    with small_volume(tmp_path / "small", "256k") as folder:
        yield folder


@on_loop
async def test_a_full_volume_is_said_to_be_full_and_works_again_with_space(volume: Path):
    """A46: a real one; earlier rows are intact, and no restart is needed."""
    filler = volume / "filler"
    store = Store(volume / "run.db", pace=3600.0)
    await store.open_run(PLAN, now=NOW)
    with log.capture():
        await store.record_result(NODE1, result("aa"))
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(bytes(256 * 1024))
        refused = 0
        for number in range(200):
            try:
                await store.mark_failed(E2E, failed_try(NOW + number, "x" * 4000))
            except StoreFull:
                refused += 1
        assert (True, False) == (refused > 100, store.writable)
        attempts = store.entry(E2E).attempts
        filler.unlink()
        assert await store.probe()
        await store.mark_failed(E2E, failed_try(NOW + 300))
        assert attempts + 1 == store.entry(E2E).attempts
        await store.close()
    async with World(volume).opened() as again:
        assert attempts + 1 == again.entry(E2E).attempts
        assert "aa" == again.entry(NODE1).record.digest
