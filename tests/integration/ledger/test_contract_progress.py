"""What the store promises of progress and heartbeats."""

from __future__ import annotations

import asyncio

import pytest

from reporter.ledger import ProgressTaken
from reporter.run.entry import State
from reporter.run.heartbeats import Beat
from reporter.run.progress import Progress, StoredProgress, UpdateId
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    World,
    appending,
    failed_try,
    on_loop,
    replacing,
    result,
    totals,
)

# -- progress ------------------------------------------------------------------------------------


@on_loop
async def test_a_replacing_update_is_seen_at_once(world: World):
    """A20: without giving the loop a chance to do anything else, also after an append."""
    async with world.opened() as store:
        await store.record_progress(E2E, appending(1), None, at=NOW)
        call = store.record_progress(E2E, replacing(7), UpdateId("a", 1), at=NOW + 1)
        with pytest.raises(StopIteration) as answer:
            call.send(None)
        assert ProgressTaken.APPLIED == answer.value.value
        expected = StoredProgress(replacing(7), NOW + 1, UpdateId("a", 1))
        assert expected == store.snapshot().progress[E2E]


@on_loop
async def test_an_append_adds_to_what_was_replaced_before(world: World):
    """A26: the base need not be on the disk yet."""
    async with world.opened() as store:
        await store.record_progress(E2E, Progress("m", 33, 33), None, at=NOW)
        await store.record_progress(
            E2E, Progress(appendtotals=True, appendcompleted=4), None, at=NOW
        )
        assert (37, 37) == totals(store)
    async with world.opened() as again:
        assert (37, 37) == totals(again)


@on_loop
async def test_a_repeated_append_counts_once_over_a_restart_too(world: World):
    """A49, C9: its id is kept with it."""
    async with world.opened() as store:
        assert ProgressTaken.APPLIED == await store.record_progress(
            E2E, appending(5), UpdateId("a", 3), at=NOW
        )
    async with world.opened() as again:
        for seq in (3, 2):
            assert ProgressTaken.STALE == await again.record_progress(
                E2E, appending(5), UpdateId("a", seq), at=NOW
            )
        assert ProgressTaken.APPLIED == await again.record_progress(
            E2E, appending(5), UpdateId("b", 1), at=NOW
        )
        assert ProgressTaken.STALE == await again.record_progress(
            E2E, appending(5), UpdateId("a", 9), at=NOW
        )
        assert (0, 10) == totals(again)


@on_loop
async def test_appends_at_the_same_time_all_count(world: World):
    """None is computed from a value that another one is just changing."""
    async with world.opened() as store:
        await asyncio.gather(
            *(store.record_progress(E2E, appending(1), None, at=NOW) for _ in range(50))
        )
        assert (0, 50) == totals(store)
    async with world.opened() as again:
        assert (0, 50) == totals(again)


@on_loop
async def test_the_same_append_twice_at_once_counts_once(world: World):
    """The second waits for the first instead of calling it stale before it is on the disk."""
    async with world.opened() as store:
        answers = await asyncio.gather(
            *(store.record_progress(E2E, appending(1), UpdateId("a", 1), at=NOW) for _ in range(2))
        )
        assert [ProgressTaken.APPLIED, ProgressTaken.STALE] == answers
        assert (0, 1) == totals(store)


@on_loop
async def test_a_replacing_update_beats_an_append_that_is_on_its_way(world: World):
    """Order of arrival: the append came first, so it must not come back later."""
    async with world.opened() as store:
        append = asyncio.ensure_future(
            store.record_progress(E2E, appending(5), UpdateId("a", 1), at=NOW)
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await store.record_progress(E2E, replacing(60), UpdateId("a", 2), at=NOW)
        await append
        await store.record_progress(E2E, appending(1), UpdateId("a", 3), at=NOW)
        assert (100, 61) == totals(store)
    async with world.opened() as again:
        assert (100, 61) == totals(again)


@on_loop
async def test_an_overtaken_update_of_a_replaced_sender_cannot_undo_an_append(world: World):
    """While the append of the new sender is on its way, one of the old sender arrives."""
    async with world.opened() as store:
        await store.record_progress(E2E, replacing(1), UpdateId("old", 1), at=NOW)
        append = asyncio.ensure_future(
            store.record_progress(E2E, appending(5), UpdateId("new", 1), at=NOW)
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert ProgressTaken.STALE == await store.record_progress(
            E2E, replacing(2), UpdateId("old", 2), at=NOW
        )
        await append
        assert (100, 6) == totals(store)
    async with world.opened() as again:
        assert (100, 6) == totals(again)


@on_loop
async def test_replacing_updates_overtake_each_other_while_an_append_is_on_its_way(world: World):
    """The newest is the newest, whatever the disk is doing."""
    async with world.opened() as store:
        append = asyncio.ensure_future(
            store.record_progress(E2E, appending(5), UpdateId("a", 1), at=NOW)
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        answers = [
            await store.record_progress(E2E, replacing(seq), UpdateId("a", seq), at=NOW)
            for seq in (4, 3)
        ]
        await append
        assert [ProgressTaken.APPLIED, ProgressTaken.STALE] == answers
        assert (100, 4) == totals(store)


@on_loop
async def test_an_append_whose_caller_has_gone_is_in_or_out_but_never_half(world: World):
    """Memory and disk agree, and the next append finds the first one."""
    async with world.opened() as store:
        gone = asyncio.ensure_future(store.record_progress(E2E, appending(5), None, at=NOW))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gone.cancel()
        await store.record_progress(E2E, appending(1), None, at=NOW)
        assert (0, 6) == totals(store)
    async with world.opened() as again:
        assert (0, 6) == totals(again)


@on_loop
async def test_progress_after_the_result_leaves_the_entry_complete(world: World):
    """A27."""
    async with world.opened() as store:
        await store.record_result(E2E, result())
        assert ProgressTaken.APPLIED == await store.record_progress(E2E, replacing(9), None, at=NOW)
        assert (State.COMPLETE, (100, 9)) == (store.entry(E2E).state, totals(store))


# -- heartbeats ----------------------------------------------------------------------------------


@on_loop
async def test_any_request_is_a_sign_of_life_but_only_a_beat_arms(world: World):
    """A52: a worker that never beats is not judged."""
    async with world.opened() as store:
        store.record_heartbeat(E2E, 3.0, beat=False)
        assert {E2E: Beat(3.0, armed=False)} == store.snapshot().beats
        store.record_heartbeat(E2E, 4.0, beat=True)
        store.record_heartbeat(E2E, 5.0, beat=False)
        assert {E2E: Beat(5.0, armed=True)} == store.snapshot().beats


@on_loop
async def test_ages_start_anew_with_a_restart_but_the_armed_stay_armed(world: World):
    """A53: an aggregator that was away must not declare its workers lost."""
    async with world.opened() as store:
        store.record_heartbeat(E2E, 0.0, beat=True)
        store.record_heartbeat(NODE1, 0.0, beat=False)
    world.clock.now = 7_000.0
    async with world.opened() as again:
        assert {E2E: Beat(7_000.0, armed=True), NODE1: Beat(7_000.0, armed=False)} == (
            again.snapshot().beats
        )


@on_loop
async def test_a_pause_of_the_process_is_taken_off_all_ages(world: World):
    """A53: and nobody was heard in the future."""
    async with world.opened() as store:
        store.record_heartbeat(E2E, 10.0, beat=True)
        store.record_heartbeat(NODE1, 95.0, beat=True)
        store.snapshot()
        store.shift_heartbeats(60.0, 100.0)
        assert [70.0, 100.0] == [beat.heard_at for beat in store.snapshot().beats.values()]


@on_loop
async def test_windows_are_moved_again_when_workers_can_connect(world: World):
    """C11: from then on 30 s at least; what has longer, and what has none, stays as it is."""
    async with world.opened() as store:
        await store.mark_failed(E2E, failed_try(NOW))
        await store.mark_failed(NODE1, failed_try(NOW + 50.0))
        await store.workers_return(at=NOW + 100.0)
        assert [NOW + 130.0, NOW + 170.0] == [store.entry(key).window.until for key in (E2E, NODE1)]
        assert store.entry(NODE2).window is None
        revision = store.snapshot().revision
        await store.workers_return(at=NOW + 100.0)
        assert revision == store.snapshot().revision


@on_loop
async def test_a_sign_of_life_counts_before_it_is_written(world: World):
    """A pause of the process begins with the last one, not with the last that is on the disk."""
    async with world.opened(pace=3600.0) as store:
        await store.note_plugin_launch("e2e", at=NOW)
        store.note_alive(NOW + 1)
        for _ in range(3):
            await store.probe()
        store.note_alive(NOW + 50)
        await store.workers_return(at=NOW + 60)
        assert NOW + 110 == store.entry(E2E).deadline
