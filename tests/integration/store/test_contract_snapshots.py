"""What every store promises of snapshots, revisions and subscribers, the same for each engine."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from reporter.core.run.entry import Entry, State
from reporter.core.run.progress import UpdateId
from reporter.core.run.snapshot import Phase
from tests.integration.store.contract import GAVE_UP, TAR, beat, complete, renew
from tests.integration.store.world import (
    E2E,
    NODE1,
    NOW,
    PLAN,
    World,
    appending,
    failed_try,
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
    """Repeated calls, later beats and refused updates change nothing."""
    async with world.opened() as store:
        steps = [
            (1, lambda: store.record_result(E2E, result())),
            (0, lambda: store.record_result(E2E, result())),
            (1, lambda: store.mark_failed(NODE1, failed_try())),
            (0, lambda: store.mark_failed(NODE1, failed_try())),
            (2, lambda: store.mark_all_failed(GAVE_UP)),
            (0, lambda: store.mark_all_failed(GAVE_UP)),
            (1, lambda: store.record_progress(E2E, replacing(1), UpdateId("a", 1), at=NOW)),
            (0, lambda: store.record_progress(E2E, replacing(1), UpdateId("a", 1), at=NOW)),
            (1, lambda: store.record_progress(E2E, appending(1), UpdateId("a", 2), at=NOW)),
            (1, lambda: beat(store, 1.0)),
            (0, lambda: beat(store, 2.0)),
            (0, store.probe),
            (1, lambda: renew(store)),
            (1, lambda: store.advance_run(Phase.POST_PROCESSING)),
            (0, lambda: store.advance_run(Phase.POST_PROCESSING)),
            (1, lambda: store.advance_run(Phase.CLOSED, tar=TAR)),
        ]
        for number, (grows, step) in enumerate(steps):
            before = store.snapshot().revision
            await step()
            assert (number, grows) == (number, store.snapshot().revision - before)


@on_loop
async def test_the_revision_never_falls_back_over_restarts(world: World):
    """A reader that knows a revision must never see it with other content."""
    seen = []
    for number in range(3):
        async with world.opened() as store:
            seen.append(store.snapshot().revision)
            await store.record_progress(E2E, replacing(number), None, at=NOW)
            seen.append(store.snapshot().revision)

    assert all(first < second for first, second in itertools.pairwise(seen))


@on_loop
async def test_subscribers_hear_of_changes_until_they_leave(world: World):
    """Several changes in a row may be one call; what did not change is none."""
    async with world.opened() as store:
        heard = asyncio.Queue()
        leave = store.subscribe(lambda: heard.put_nowait(store.snapshot().revision))
        for number in range(3):
            await store.record_progress(E2E, replacing(number), None, at=NOW)
        assert store.snapshot().revision == await heard.get()
        await store.record_result(E2E, result())
        assert store.snapshot().revision == await heard.get()
        leave()
        leave()
        await store.record_result(NODE1, result())
        await asyncio.sleep(0)
        assert heard.empty()


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
