"""What the store promises of snapshots, revisions and subscribers."""

from __future__ import annotations

import asyncio

import pytest

from reporter.run.entry import Entry, State
from reporter.run.progress import UpdateId
from reporter.run.state import LauncherState, Phase, Step
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    PLAN,
    TAR,
    World,
    appending,
    beat,
    complete,
    failed_try,
    gave_up,
    on_loop,
    replacing,
    result,
)


@on_loop
async def test_a_snapshot_does_not_change_after_it_was_taken(world: World):
    """F7: readers need no lock."""
    async with world.opened() as store:
        store.record_heartbeat(E2E, 1.0, beat=True)
        await store.record_progress(E2E, replacing(1), None, at=NOW)
        taken = store.snapshot()
        kept = (dict(taken.entries), dict(taken.progress), dict(taken.beats), taken.phase)
        store.record_heartbeat(NODE1, 2.0, beat=True)
        await store.record_progress(E2E, replacing(2), None, at=NOW)
        await store.record_progress(NODE1, appending(2), None, at=NOW)
        await complete(store)
        await store.advance_run(Phase.POST_PROCESSING)

        assert kept == (
            dict(taken.entries),
            dict(taken.progress),
            dict(taken.beats),
            taken.phase,
        )
        with pytest.raises(TypeError):
            taken.entries[E2E] = Entry(E2E)


@on_loop
async def test_an_unchanged_run_is_one_and_the_same_snapshot(world: World):
    """Asking again costs nothing."""
    async with world.opened() as store:
        await store.record_result(E2E, result())
        first = store.snapshot()
        await store.record_result(E2E, result())
        assert first is store.snapshot()


@on_loop
async def test_the_revision_grows_by_one_per_change_and_only_then(world: World):
    """Repeated calls, beats and refused updates change nothing; what is only in memory has none."""
    async with world.opened(pace=3600.0) as store:
        await store.probe()  # what is written behind by itself is written once
        await beat(store, 0.5)
        await store.probe()
        both = dict.fromkeys((NODE1, NODE2), gave_up())
        steps = [
            (1, lambda: store.record_result(E2E, result())),
            (0, lambda: store.record_result(E2E, result())),
            (1, lambda: store.mark_failed(NODE1, failed_try(text="cut\ud800"))),
            (0, lambda: store.mark_failed(NODE1, failed_try(text="cut\ud800"))),
            (2, lambda: store.mark_all_failed(both)),
            (0, lambda: store.mark_all_failed(both)),
            (0, lambda: store.record_progress(E2E, replacing(1), UpdateId("a", 1), at=NOW)),
            (1, store.probe),
            (0, lambda: store.record_progress(E2E, replacing(1), UpdateId("a", 1), at=NOW)),
            (1, lambda: store.record_progress(E2E, appending(1), UpdateId("a", 2), at=NOW)),
            (0, lambda: beat(store, 1.0)),
            (0, lambda: beat(store, 2.0)),
            (0, store.probe),
            (2, lambda: store.touch([NODE1, E2E])),
            (0, lambda: store.touch([])),
            (0, lambda: store.note_plugin_launch("nope", at=NOW)),
            (2, lambda: store.note_plugin_launch("sysd", at=NOW)),
            (0, lambda: store.note_plugin_launch("sysd", at=NOW + 1)),
            (1, lambda: store.advance_run(Phase.POST_PROCESSING)),
            (0, lambda: store.advance_run(Phase.POST_PROCESSING)),
            (1, lambda: store.packing_failed("no space\ud800", at=NOW)),
            (0, lambda: store.packing_failed("no space\ud800", at=NOW + 1)),
            # What failed is shown as such from now on.
            (3, lambda: store.advance_run(Phase.CLOSED, tar=TAR)),
            (0, lambda: store.advance_run(Phase.CLOSED, tar=TAR)),
        ]
        for number, (grows, step) in enumerate(steps):
            before = store.snapshot().revision
            await step()
            assert (number, grows) == (number, store.snapshot().revision - before)


@on_loop
async def test_the_revision_never_falls_back_over_restarts(world: World):
    """A start is no change: who knows the revision need not read the run again."""
    seen = []
    for number in range(3):
        async with world.opened() as store:
            seen.append(store.snapshot().revision)
            await store.record_progress(E2E, replacing(number), None, at=NOW)
            await store.probe()
            seen.append(store.snapshot().revision)

    assert [1, 2, 2, 3, 3, 4] == seen


@on_loop
async def test_what_is_ahead_of_the_revision_is_said_to_be(world: World):
    """An update is seen before it is written, and whoever knows the revision must ask again."""
    async with world.opened(pace=3600.0) as store:
        await store.probe()
        await store.record_progress(E2E, replacing(1), None, at=NOW)
        ahead = store.snapshot()
        assert await store.probe()
        written = store.snapshot()

        assert [(True, 1), (False, 2)] == [(s.ahead, s.revision) for s in (ahead, written)]
        assert ahead.progress == written.progress


@on_loop
async def test_the_changes_since_a_revision(world: World):
    """In the order in which they were made, each entry once, over a restart too."""
    async with world.opened() as store:
        first = store.snapshot().revision
        await store.mark_failed(NODE2, failed_try())
        await store.record_result(NODE1, result())
        await store.record_progress(E2E, appending(1), None, at=NOW)
        await store.mark_failed(NODE2, gave_up())
        changed = {since: tuple(store.changes(first + since)) for since in range(-1, 6)}
    expected = {
        -1: (NODE1, E2E, NODE2),
        0: (NODE1, E2E, NODE2),
        1: (NODE1, E2E, NODE2),
        2: (E2E, NODE2),
        3: (NODE2,),
        4: (),
        5: (),
    }
    assert expected == changed
    async with world.opened() as again:
        again_changed = {since: tuple(again.changes(first + since)) for since in range(-1, 6)}
        assert expected == again_changed


@on_loop
async def test_subscribers_hear_of_changes_until_they_leave(world: World):
    """Several changes in a row may be one call; what did not change is none."""
    async with world.opened() as store:
        heard = asyncio.Queue()
        leave = store.subscribe(lambda: heard.put_nowait(store.snapshot().revision))
        calls = [store.record_progress(E2E, appending(1), None, at=NOW) for _ in range(3)]
        await asyncio.gather(*calls)
        while store.snapshot().revision != await heard.get():
            pass
        await store.record_result(E2E, result())
        assert store.snapshot().revision == await heard.get()
        leave()
        leave()
        await store.record_result(NODE1, result())
        await asyncio.sleep(0)
        assert heard.empty()


@on_loop
async def test_what_the_launcher_shows_is_not_ahead_once_it_is_written(world: World):
    """Else each reader would get the whole run again, until the next change."""
    async with world.opened(pace=3600.0) as store:
        store.subscribe(store.snapshot)
        store.show_launch({}, LauncherState(Step.WATCHING))
        assert await store.probe()
        assert not store.snapshot().ahead


@on_loop
async def test_what_a_subscriber_sees_is_there_before_the_caller_is_answered(world: World):
    """F28: a 200 is visible in the status by the time it is sent."""
    async with world.opened() as store:
        await store.record_result(E2E, result())
        assert State.COMPLETE == store.snapshot().entries[E2E].state


@on_loop
async def test_each_transaction_is_measured(world: World):
    """Seconds, and how many callers shared it."""
    measured = []
    async with world.opened(on_commit=lambda *figures: measured.append(figures)) as store:
        await asyncio.gather(*(store.record_result(key, result()) for key in PLAN.keys))
        assert 3 <= sum(operations for _, operations in measured)
        assert all(0 <= seconds < 30 for seconds, _ in measured)
