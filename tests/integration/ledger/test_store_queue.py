"""A disk that stands still: what waits in the store's queue and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reporter.ledger import ProgressTaken, Store, StoreBusy
from reporter.ledger.writer import QUEUE
from reporter.run.entry import State
from reporter.run.plan import Plan, Plugin
from reporter.run.state import LauncherState, Phase, PodState, Step
from reporter.run.upload import UploadOutcome
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    Disk,
    World,
    appending,
    failed_try,
    on_loop,
    replacing,
    result,
    sound,
)


class Rest:
    """Lets the next commit wait until it is told to go on; the loop goes on meanwhile."""

    def __init__(self, disk: Disk) -> None:
        self._disk, self._loop = disk, asyncio.get_running_loop()
        self.begun, self.over = asyncio.Event(), asyncio.Event()
        disk.before = self._rest

    def _rest(self, sql: str) -> None:
        if sql == "COMMIT":
            sound(self._disk)
            self._loop.call_soon_threadsafe(self.begun.set)
            asyncio.run_coroutine_threadsafe(self.over.wait(), self._loop).result()


async def rests(store: Store) -> None:
    """Have the store write behind once, so that it does not by itself for the rest of the pace."""
    await store.record_progress(NODE2, replacing(1), None, at=NOW)
    for _ in range(3):
        await asyncio.sleep(0)
        await store.probe()


@on_loop
async def test_more_than_a_full_queue_is_refused_at_once(tmp_path: Path, disk):
    """A slow disk does not make the aggregator grow, and the store does not count as broken."""
    async with World(tmp_path, disk.connect).opened() as store:
        rest = Rest(disk)
        first = asyncio.ensure_future(store.record_result(E2E, result()))
        await rest.begun.wait()
        waiting = [
            asyncio.ensure_future(store.mark_failed(NODE1, failed_try(NOW + number)))
            for number in range(QUEUE)
        ]
        await asyncio.sleep(0)
        with pytest.raises(StoreBusy):
            await store.record_result(NODE2, result())
        assert store.writable
        rest.over.set()
        await asyncio.gather(first, *waiting)
        assert QUEUE == store.entry(NODE1).attempts
        assert UploadOutcome.ACCEPTED == (await store.record_result(NODE2, result())).outcome


@on_loop
async def test_a_disk_that_stands_still_does_not_hold_up_replacing_updates(tmp_path: Path, disk):
    """A34 as far as the store goes: they are seen, and snapshots are taken, meanwhile."""
    async with World(tmp_path, disk.connect).opened() as store:
        rest = Rest(disk)
        waiting = asyncio.ensure_future(store.record_result(E2E, result()))
        await rest.begun.wait()
        for number in range(1000):
            await store.record_progress(NODE1, replacing(number), None, at=NOW)
        assert 999 == store.snapshot().progress[NODE1].progress.completed
        assert State.RUNNING == store.entry(E2E).state
        rest.over.set()
        await waiting
        assert State.COMPLETE == store.entry(E2E).state


@on_loop
async def test_what_is_written_behind_does_not_overwrite_an_append_before_it(tmp_path: Path, disk):
    """Both wait for the disk: the append, and after it what its key had before."""
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        await rests(store)
        rest = Rest(disk)
        calls = [asyncio.ensure_future(store.record_result(E2E, result()))]
        await rest.begun.wait()
        await store.record_progress(NODE1, replacing(10), None, at=NOW)
        calls.append(
            asyncio.ensure_future(store.record_progress(NODE1, appending(5), None, at=NOW))
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        calls.append(asyncio.ensure_future(store.probe()))
        await asyncio.sleep(0)
        rest.over.set()
        await asyncio.gather(*calls)
        assert 15 == store.snapshot().progress[NODE1].progress.completed
    async with world.opened() as again:
        assert 15 == again.snapshot().progress[NODE1].progress.completed


@on_loop
async def test_an_update_that_comes_while_an_older_one_is_written_is_written_next(
    tmp_path: Path, disk
):
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        await rests(store)
        rest = Rest(disk)
        await store.record_progress(NODE1, replacing(1), None, at=NOW)
        writing = asyncio.ensure_future(store.probe())
        await rest.begun.wait()
        await store.record_progress(NODE1, replacing(2), None, at=NOW + 1)
        rest.over.set()
        await writing
        assert store.snapshot().ahead
    async with world.opened() as again:
        assert 2 == again.snapshot().progress[NODE1].progress.completed


@on_loop
async def test_what_the_launcher_shows_while_it_is_written_is_written_next(tmp_path: Path, disk):
    """Whoever knows the revision has to ask again."""
    pod = PodState("p-1", "node1", "Pending", "", "", NOW, 0)
    async with World(tmp_path, disk.connect).opened(pace=3600.0) as store:
        await rests(store)
        rest = Rest(disk)
        store.show_launch({NODE1: pod}, LauncherState(Step.WATCHING))
        writing = asyncio.ensure_future(store.probe())
        await rest.begun.wait()
        store.show_launch({NODE1: pod, NODE2: pod}, LauncherState(Step.WATCHING))
        rest.over.set()
        await writing
        before = store.snapshot()
        await store.probe()
        assert (True, False) == (before.ahead, store.snapshot().ahead)
        assert NODE2 in store.changes(before.revision)


@on_loop
async def test_closing_waits_for_an_append_that_is_on_its_way(tmp_path: Path, disk):
    """And for the order of what it goes with: what replaced it is the last to be written."""
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        rest = Rest(disk)
        append = asyncio.ensure_future(store.record_progress(NODE1, appending(5), None, at=NOW))
        await rest.begun.wait()
        later = asyncio.ensure_future(store.record_progress(NODE1, replacing(60), None, at=NOW))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0)
        rest.over.set()
        await closing
        assert [ProgressTaken.APPLIED] * 2 == [await append, await later]
    async with world.opened() as again:
        assert 60 == again.snapshot().progress[NODE1].progress.completed


@on_loop
async def test_an_append_whose_caller_left_is_still_before_what_comes_after(tmp_path: Path, disk):
    """Of the same moment, the one that is written first would stay."""
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        rest = Rest(disk)
        append = asyncio.ensure_future(store.record_progress(NODE1, appending(5), None, at=NOW))
        await rest.begun.wait()
        append.cancel()
        await asyncio.wait([append])
        later = asyncio.ensure_future(store.record_progress(NODE1, replacing(60), None, at=NOW))
        await asyncio.sleep(0)
        rest.over.set()
        assert ProgressTaken.APPLIED == await later
    async with world.opened() as again:
        assert 60 == again.snapshot().progress[NODE1].progress.completed


@on_loop
async def test_what_was_given_before_the_end_is_still_done(tmp_path: Path, disk):
    """Also when it waits for the disk together with the end."""
    world = World(tmp_path, disk.connect)
    async with world.opened(pace=3600.0) as store:
        rest = Rest(disk)
        calls = [asyncio.ensure_future(store.record_result(E2E, result()))]
        await rest.begun.wait()
        calls.append(asyncio.ensure_future(store.record_result(NODE1, result())))
        await asyncio.sleep(0)
        calls.append(asyncio.ensure_future(store._writer.close()))
        await asyncio.sleep(0)
        rest.over.set()
        await asyncio.gather(*calls)
    async with world.opened() as again:
        assert State.COMPLETE == again.entry(NODE1).state


@on_loop
async def test_many_keys_take_as_many_statements_as_one(tmp_path: Path, disk):
    """A launch, a sweep, a return and the end of a run, however large the plan is."""
    plan = Plan("run-1", (Plugin("load", tuple(f"n{number}" for number in range(300))),))
    statements: list[str] = []
    async with World(tmp_path, disk.connect).opened(plan=plan, pace=3600.0) as store:
        disk.before = statements.append
        for call, most in (
            (lambda: store.note_launches(plan.keys, at=NOW), 7),
            (lambda: store.start_entries(dict.fromkeys(plan.keys, NOW)), 7),
            (lambda: store.mark_all_failed(dict.fromkeys(plan.keys, failed_try())), 7),
            (lambda: store.workers_return(at=NOW + 99), 9),
            (lambda: store.touch(plan.keys), 7),
            (lambda: store.give_up_due(NOW + 999), 10),
            (lambda: store.advance_run(Phase.POST_PROCESSING), 6),
            (lambda: store.advance_run(Phase.CLOSED), 10),
        ):
            statements.clear()
            await call()
            assert len(statements) <= most, statements
        assert {State.FAILED} == {entry.state for entry in store.snapshot().entries.values()}
        assert Phase.CLOSED is store.phase
