"""What the store promises of opening and closing a run."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from reporter.ledger import StoreError, WrongRun
from reporter.run.entry import Entry, State, Window
from reporter.run.plan import Plan, Plugin
from reporter.run.progress import UpdateId
from reporter.run.state import Phase
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    PLAN,
    World,
    appending,
    facts,
    failed_try,
    gave_up,
    on_loop,
    replacing,
    report,
    result,
    totals,
)

# -- opening -------------------------------------------------------------------------------------


@on_loop
async def test_a_new_run_has_every_entry_of_the_plan_open_and_in_its_order(world: World):
    """Plan order, then node."""
    async with world.opened() as store:
        snapshot = store.snapshot()

        assert [E2E, NODE1, NODE2] == list(snapshot.entries)
        assert [Entry(E2E), Entry(NODE1), Entry(NODE2)] == list(snapshot.entries.values())
        assert (PLAN, Phase.RUNNING, NOW, None, None) == (
            snapshot.plan,
            snapshot.phase,
            snapshot.started_at,
            snapshot.tar,
            snapshot.error,
        )


@on_loop
async def test_everything_is_there_when_the_run_is_opened_again(world: World):
    """All fields of all kinds of facts survive, the moment of the first start too."""
    async with world.opened() as store:
        await store.note_plugin_launch("sysd", at=NOW)
        await store.mark_failed(E2E, gave_up())
        await store.record_result(E2E, report())
        await store.record_result(NODE1, result())
        await store.mark_failed(NODE2, failed_try(text="cut\ud800"))
        await store.record_progress(
            E2E, replacing(3, failures=("f\x00", "ä"), errors=("e",)), UpdateId("a", 4), at=NOW
        )
        await store.record_progress(E2E, appending(2, "g"), UpdateId("b", 1), at=NOW + 1)
        store.record_heartbeat(NODE2, 0.0, beat=True)
        store.record_heartbeat(E2E, 0.0, beat=False)
        before = store.snapshot()
    async with world.opened(now=NOW + 5) as again:
        after = again.snapshot()

    assert facts(before) == facts(after)
    assert NOW == after.started_at


@on_loop
async def test_another_run_is_refused_and_the_first_left_as_it_was(world: World):
    """Runs are never mixed."""
    async with world.opened() as store:
        await store.record_result(E2E, result())
    with pytest.raises(WrongRun, match="holds run run-1, not run-2"):
        await world.store().open_run(replace(PLAN, run="run-2"), now=NOW)
    async with world.opened() as again:
        assert State.COMPLETE == again.entry(E2E).state


@on_loop
async def test_the_same_run_with_another_plan_is_refused(world: World):
    """A plan is fixed for the run: entries cannot come and go."""
    async with world.opened():
        pass
    other = replace(PLAN, plugins=(*PLAN.plugins, Plugin("third")))
    with pytest.raises(WrongRun) as refused:
        await world.store().open_run(other, now=NOW)
    assert "run run-1 started with a different plan: third is new" == str(refused.value)


@on_loop
async def test_of_many_differences_between_two_plans_the_first_are_named(world: World):
    """A message is for people."""
    async with world.opened():
        pass
    other = replace(PLAN, plugins=tuple(Plugin(f"p{number}") for number in range(7)))
    with pytest.raises(WrongRun, match=r"e2e is missing; .*; p2 is new and 4 more$"):
        await world.store().open_run(other, now=NOW)


@on_loop
async def test_a_plan_that_lists_the_same_in_another_order_is_the_same(world: World):
    """The run goes on with the plan it began with."""
    async with world.opened():
        pass
    e2e, sysd = PLAN.plugins
    other = replace(PLAN, plugins=(replace(sysd, nodes=sysd.nodes[::-1]), e2e))
    async with world.opened(plan=other) as again:
        assert PLAN == again.snapshot().plan
        assert list(PLAN.keys) == list(again.snapshot().entries)


@on_loop
async def test_an_empty_plan_may_close_at_once(world: World):
    """A54: nothing is expected, so nothing is open."""
    async with world.opened(plan=Plan("empty", ())) as store:
        await store.advance_run(Phase.POST_PROCESSING)
        assert Phase.CLOSED == (await store.advance_run(Phase.CLOSED)).phase


@on_loop
async def test_outages_move_windows_and_deadlines_over_restarts(world: World):
    """C11: by the time since the last sign of life, which is counted once."""
    async with world.opened() as store:
        await store.note_plugin_launch("e2e", at=NOW)
        await store.note_plugin_launch("sysd", at=NOW)
        await store.mark_failed(NODE1, failed_try())
        store.note_alive(NOW + 20)
    async with world.opened(now=NOW + 80) as again:
        assert NOW + 100 == again.entry(E2E).deadline
        for _ in range(2):
            await again.workers_return(at=NOW + 95)
            assert [NOW + 175, NOW + 125] == [again.entry(k).deadline for k in (E2E, NODE2)]
            assert Window(NOW, NOW + 125, "bad archive") == again.entry(NODE1).window


@on_loop
async def test_an_outage_ends_later_than_a_sign_of_life_that_is_still_to_be_written(world: World):
    """Which is older, and would give its time away once more at the next start."""
    async with world.opened() as store:
        await store.note_plugin_launch("e2e", at=NOW)
        store.note_alive(NOW + 20)
        await store.workers_return(at=NOW + 80)
        assert NOW + 160 == store.entry(E2E).deadline
    async with world.opened() as again:
        await again.workers_return(at=NOW + 81)
        assert NOW + 161 == again.entry(E2E).deadline


# -- closing -------------------------------------------------------------------------------------


@on_loop
async def test_a_closed_store_takes_nothing_and_says_so(world: World):
    """Reading still works; closing again is nothing."""
    async with world.opened() as store:
        await store.record_result(E2E, result())
        await store.close()
        for call in (
            store.record_result(NODE1, result()),
            store.record_progress(NODE1, replacing(1), None, at=NOW),
            store.record_progress(NODE1, appending(1), None, at=NOW),
        ):
            with pytest.raises(StoreError, match="closed"):
                await call
        assert (False, State.COMPLETE) == (store.writable, store.entry(E2E).state)


@on_loop
async def test_closing_writes_what_was_only_in_memory(world: World):
    """C10 does not hold for a clean stop: nothing at all is lost."""
    async with world.opened(pace=3600.0) as store:
        for number in range(5):
            await store.record_progress(NODE2, replacing(number), None, at=NOW)
            await asyncio.sleep(0)
        store.record_heartbeat(NODE2, 0.0, beat=True)
    async with world.opened() as again:
        assert (100, 4) == totals(again, NODE2)
        assert again.snapshot().beats[NODE2].armed


@on_loop
async def test_closing_writes_more_than_one_transaction_takes(world: World):
    """A fleet that reports at once is written in several."""
    plan = Plan("run-1", (Plugin("load", tuple(f"n{number}" for number in range(2_100))),))
    async with world.opened(plan=plan, pace=3600.0) as store:
        for key in plan.keys:
            await store.record_progress(key, replacing(1), None, at=NOW)
    async with world.opened(plan=plan) as again:
        assert set(plan.keys) == set(again.snapshot().progress)
