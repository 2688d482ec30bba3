"""What every store promises, the same for each engine."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from types import MappingProxyType

import pytest

from reporter.aggregator.store import (
    ProgressTaken,
    Received,
    RunNotReady,
    Store,
    StoreError,
    StoreFull,
    WrongRun,
)
from reporter.aggregator.store.operations import Windows
from reporter.core.run.beats import Beat
from reporter.core.run.entry import Cause, Entry, Marked, Outcome, Rank, State, Window
from reporter.core.run.plan import Key, Plan, Plugin
from reporter.core.run.progress import Progress, Sent, UpdateId
from reporter.core.run.snapshot import Phase, Snapshot, Tar
from tests.integration.store.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    PLAN,
    World,
    appending,
    failed_try,
    gave_up,
    on_loop,
    replacing,
    report,
    result,
)

TAR = Tar("202601010000_sonobuoy_run-1.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 12)
NOBODY = Key("nope", "global")
GAVE_UP = dict.fromkeys((NODE1, NODE2), gave_up())


async def complete(store: Store) -> None:
    """Bring every entry to an end."""
    for key in PLAN.keys:
        await store.record_result(key, result())


def facts(snapshot: Snapshot) -> Snapshot:
    """What a restart must keep: all but the revision and the ages."""
    armed = {key: replace(beat, heard_at=0.0) for key, beat in snapshot.beats.items()}
    return replace(snapshot, revision=0, beats=MappingProxyType(armed))


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
        await store.launch("sysd", at=NOW)
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
    with pytest.raises(WrongRun, match="with another plan"):
        await world.store().open_run(other, now=NOW)


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
        await store.launch("e2e", at=NOW)
        await store.launch("sysd", at=NOW)
        await store.mark_failed(NODE1, failed_try())
        store.note_alive(NOW + 20)
    async with world.opened(now=NOW + 80) as again:
        assert NOW + 100 == again.entry(E2E).deadline
        for _ in range(2):
            await again.workers_return(at=NOW + 95)
            assert [NOW + 175, NOW + 125] == [again.entry(k).deadline for k in (E2E, NODE2)]
            assert Window(NOW, NOW + 125, "bad archive") == again.entry(NODE1).window


@on_loop
async def test_a_sign_of_life_that_could_not_be_written(world: World):
    """It is written as soon as there is room: else a restart would count time that was none."""
    if world.kind != "memory":
        return
    full = [StoreFull("full")]

    def before_commit() -> None:
        if full:
            raise full[0]

    async with world.opened() as store:
        await store.launch("e2e", at=NOW)
    async with world.opened() as store:
        store._engine._before_commit = before_commit
        store.note_alive(NOW + 50)
        assert not await store.probe()
        full.clear()
        assert await store.probe()
    async with world.opened(now=NOW + 60) as again:
        await again.workers_return(at=NOW + 60)
        assert NOW + 110 == again.entry(E2E).deadline


# -- results and errors --------------------------------------------------------------------------


@on_loop
async def test_the_first_result_is_held_and_the_second_refused(world: World):
    """A1, A2: the answer names what is held."""
    async with world.opened() as store:
        assert Received(Outcome.ACCEPTED, result("aa")) == await store.record_result(
            E2E, result("aa")
        )
        assert Received(Outcome.DUPLICATE, result("aa")) == await store.record_result(
            E2E, result("bb")
        )
        assert result("aa") == store.snapshot().entries[E2E].record


@on_loop
async def test_of_fifty_rivals_exactly_one_wins(world: World):
    """A47: the transaction decides, and all get the winner's digest."""
    async with world.opened() as store:
        answers = await asyncio.gather(
            *(store.record_result(E2E, result(f"{number:02x}")) for number in range(50))
        )

        assert 1 == sum(answer.outcome is Outcome.ACCEPTED for answer in answers)
        assert {store.entry(E2E).record} == {answer.held for answer in answers}


@on_loop
async def test_a_late_result_replaces_an_error_and_keeps_it_beside(world: World):
    """A31: accepted once, then held."""
    async with world.opened() as store:
        assert Marked.RECORDED == await store.mark_failed(E2E, gave_up(cause=Cause.DEADLINE))
        assert State.TIMED_OUT == store.entry(E2E).state
        assert Outcome.ACCEPTED == (await store.record_result(E2E, result())).outcome
        assert Outcome.DUPLICATE == (await store.record_result(E2E, result("bb"))).outcome
        assert Marked.IGNORED == await store.mark_failed(E2E, gave_up())

        entry = store.entry(E2E)
        assert (State.COMPLETE, True, Rank.AGGREGATOR) == (
            entry.state,
            entry.late,
            entry.superseded.rank,
        )


@on_loop
async def test_a_workers_error_report_gives_way_to_its_result(world: World):
    """A42: 200, 409, 200, 409."""
    async with world.opened() as store:
        records = [report("e1"), report("e2"), result(), report("e3")]
        outcomes = [(await store.record_result(E2E, record)).outcome for record in records]

        assert [
            Outcome.ACCEPTED,
            Outcome.DUPLICATE,
            Outcome.ACCEPTED,
            Outcome.DUPLICATE,
        ] == outcomes


@on_loop
async def test_a_failed_try_opens_a_window_and_a_success_ends_it(world: World):
    """A7, A8: retrying, then complete."""
    async with world.opened() as store:
        assert Marked.RECORDED == await store.mark_failed(E2E, failed_try())
        assert (True, State.RUNNING) == (store.entry(E2E).retrying, store.entry(E2E).state)
        await store.record_result(E2E, result())
        assert (False, None) == (store.entry(E2E).retrying, store.entry(E2E).window)


@on_loop
async def test_windows_are_as_long_as_the_store_was_told(world: World):
    """A29, A48: the length of a window and its cap are settings."""
    async with world.opened(windows=Windows(retry=1.0, cap=1.5)) as store:
        await store.mark_failed(E2E, failed_try(NOW))
        assert NOW + 1.0 == store.entry(E2E).window.until
        await store.mark_failed(E2E, failed_try(NOW + 0.9))
        assert NOW + 1.5 == store.entry(E2E).window.until


@on_loop
async def test_a_failure_of_a_key_outside_the_plan_is_ignored(world: World):
    """A32: nothing is stored, nobody is told of a change."""
    async with world.opened() as store:
        before = store.snapshot()
        assert Marked.IGNORED == await store.mark_failed(NOBODY, gave_up())
        ignored = {NOBODY: Marked.IGNORED}
        assert ignored == await store.mark_all_failed({NOBODY: gave_up()})
        await store.launch("nope", at=NOW)
        assert before == store.snapshot()


@on_loop
async def test_many_failures_in_one_step(world: World):
    """F12: each by the rules, what is decided already stays; all of them are one transaction."""
    commits: list[int] = []
    async with world.opened(on_commit=lambda _, number: commits.append(number)) as store:
        await store.record_result(NODE1, result())
        marked = await store.mark_all_failed(
            dict.fromkeys((NODE1, NODE2, NOBODY), gave_up()) | {E2E: failed_try()}
        )
        assert {
            E2E: Marked.RECORDED,
            NODE1: Marked.IGNORED,
            NODE2: Marked.RECORDED,
            NOBODY: Marked.IGNORED,
        } == marked
        assert [1, 1] == commits
        assert store.entry(E2E).retrying
        assert [State.RUNNING, State.COMPLETE, State.FAILED] == [
            store.entry(key).state for key in PLAN.keys
        ]


@on_loop
async def test_lost_bytes_make_room_for_any_upload(world: World):
    """A row without its blob: failed, cause lost, and a new upload is welcome."""
    async with world.opened() as store:
        assert not await store.lose(E2E, "nothing held", at=NOW)
        await store.record_result(E2E, result("aa"))
        assert await store.lose(E2E, "the bytes are gone", at=NOW + 1)
        assert not await store.lose(E2E, "said twice", at=NOW + 2)
        lost = store.entry(E2E).record
        assert (Rank.LOST, Cause.LOST, "the bytes are gone", NOW + 1) == (
            lost.rank,
            lost.cause,
            lost.text,
            lost.at,
        )
        assert Outcome.ACCEPTED == (await store.record_result(E2E, result("bb"))).outcome


@on_loop
async def test_the_first_launch_sets_the_deadline_from_the_plan(world: World):
    """A restarted aggregator says it again; that gives no new time."""
    async with world.opened() as store:
        for at in (NOW, NOW + 40):
            await store.launch("e2e", at=at)
            await store.launch("sysd", at=at)

        assert [(NOW, NOW + 100), (NOW, NOW + 50), (NOW, NOW + 50)] == [
            (entry.launched_at, entry.deadline) for entry in store.snapshot().entries.values()
        ]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store: store.record_result(NOBODY, result()), id="result"),
        pytest.param(
            lambda store: store.record_progress(NOBODY, replacing(1), None, at=NOW), id="progress"
        ),
        pytest.param(lambda store: store.lose(NOBODY, "gone", at=NOW), id="lose"),
        pytest.param(lambda store: beat(store, 0.0, NOBODY), id="heartbeat"),
    ],
)
@on_loop
async def test_a_key_outside_the_plan_is_the_callers_mistake(world: World, call):
    """They have checked it against the plan before."""
    async with world.opened() as store:
        before = store.snapshot()
        with pytest.raises(KeyError):
            await call(store)
        assert before == store.snapshot()


# -- the phases ----------------------------------------------------------------------------------


@on_loop
async def test_a_run_does_not_close_while_an_entry_is_open(world: World):
    """And the refusal is its caller's alone: the store goes on working."""
    async with world.opened() as store:
        await store.record_result(E2E, result())
        refused, accepted = await asyncio.gather(
            store.advance_run(Phase.POST_PROCESSING),
            store.record_result(NODE1, result()),
            return_exceptions=True,
        )
        assert isinstance(refused, RunNotReady)
        assert Outcome.ACCEPTED == accepted.outcome
        assert (Phase.RUNNING, True) == (store.phase, store.writable)


@on_loop
async def test_phases_are_taken_one_by_one_and_never_back(world: World):
    """A repeated call, and one for a phase that is over, change nothing."""
    async with world.opened() as store:
        await complete(store)
        with pytest.raises(RunNotReady, match="closed does not follow running"):
            await store.advance_run(Phase.CLOSED, tar=TAR)
        await store.advance_run(Phase.POST_PROCESSING)
        closed = await store.advance_run(Phase.CLOSED, tar=TAR)
        assert (Phase.CLOSED, TAR) == (closed.phase, closed.tar)
        for phase in Phase:
            assert closed == await store.advance_run(phase)
        other = replace(TAR, size=13)
        assert closed == await store.advance_run(Phase.CLOSED, tar=other, error="too late")
    async with world.opened() as again:
        assert (Phase.CLOSED, TAR) == (again.phase, again.snapshot().tar)


@on_loop
async def test_a_tarball_that_failed_may_be_made_later(world: World):
    """F29: the error is shown until there is a tarball, over a restart too."""
    async with world.opened() as store:
        await complete(store)
        await store.advance_run(Phase.POST_PROCESSING)
        assert NOW == await store.packing_failed("no space\udcff", at=NOW)
        assert "no space\udcff" == store.snapshot().error
    async with world.opened() as again:
        assert "no space\udcff" == again.snapshot().error
        assert NOW == await again.packing_failed("read-only", at=NOW + 60)
        assert "read-only" == again.snapshot().error
        closed = await again.advance_run(Phase.CLOSED, tar=TAR)
        assert (None, TAR) == (closed.error, closed.tar)
        await again.packing_failed("late", at=NOW + 99)
        assert not await again.package_again()
        assert closed == again.snapshot()


@on_loop
async def test_packing_that_was_given_up(world: World):
    """It is final, over restarts too, until somebody takes it back."""
    async with world.opened() as store:
        await complete(store)
        assert not await store.package_again()
        await store.advance_run(Phase.POST_PROCESSING)
        await store.packing_failed("no space", at=NOW)
        given_up = await store.advance_run(Phase.CLOSED, error="no space")
        assert (Phase.CLOSED, "no space", None) == (given_up.phase, given_up.error, given_up.tar)
    async with world.opened() as again:
        before = again.snapshot()
        assert (Phase.CLOSED, "no space") == (before.phase, before.error)
        await again.advance_run(Phase.CLOSED, tar=TAR)
        assert not await again.lose(E2E, "gone", at=NOW)
        assert before == again.snapshot()
        assert await again.package_again()
        taken_back = again.snapshot()
        assert (Phase.POST_PROCESSING, None) == (taken_back.phase, taken_back.error)
        assert NOW + 9 == await again.packing_failed("no space", at=NOW + 9)


@on_loop
async def test_after_closing_nothing_is_taken_any_more(world: World):
    """A43: 409 with a result, 410 without, 410 for progress; a failure is not recorded."""
    async with world.opened() as store:
        await complete(store)
        await store.lose(NODE2, "gone", at=NOW)
        await store.record_progress(E2E, replacing(1), None, at=NOW)
        await store.advance_run(Phase.POST_PROCESSING)
        before = store.snapshot()

        assert Outcome.DUPLICATE == (await store.record_result(E2E, result("bb"))).outcome
        assert Outcome.CLOSED == (await store.record_result(NODE2, result("bb"))).outcome
        assert Marked.CLOSED == await store.mark_failed(E2E, failed_try())
        for update in (replacing(2), appending(2)):
            assert ProgressTaken.CLOSED == await store.record_progress(E2E, update, None, at=NOW)
        assert before == store.snapshot()


@on_loop
async def test_an_append_on_its_way_when_the_run_closes_is_in_or_refused(world: World):
    """Given together, the one given first is decided first."""
    async with world.opened() as store:
        await complete(store)
        _, taken = await asyncio.gather(
            store.advance_run(Phase.POST_PROCESSING),
            store.record_progress(E2E, appending(2), None, at=NOW),
        )
        assert ProgressTaken.CLOSED == taken
        assert {} == store.snapshot().progress


# -- progress ------------------------------------------------------------------------------------


@on_loop
async def test_a_replacing_update_is_seen_at_once(world: World):
    """A20: without giving the loop a chance to do anything else."""
    async with world.opened() as store:
        call = store.record_progress(E2E, replacing(7), UpdateId("a", 1), at=NOW)
        with pytest.raises(StopIteration) as answer:
            call.send(None)
        assert ProgressTaken.APPLIED == answer.value.value
        assert Sent(replacing(7), NOW, UpdateId("a", 1)) == store.snapshot().progress[E2E]


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


def totals(store: Store, key: Key = E2E) -> tuple[int, int]:
    """Total and completed, as shown."""
    progress = store.snapshot().progress[key].progress
    return progress.total, progress.completed


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


# -- snapshots, revisions, subscribers -----------------------------------------------------------


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


async def renew(store: Store) -> None:
    """Time alone has changed something."""
    store.renew()


async def beat(store: Store, mono: float, key: Key = E2E) -> None:
    """A heartbeat."""
    store.record_heartbeat(key, mono, beat=True)


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
