"""What the store promises of results, errors and phases."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from reporter.ledger import ProgressTaken, Received, RunNotReady, Windows
from reporter.run.entry import Marked, State
from reporter.run.plan import Key
from reporter.run.record import Cause, Rank
from reporter.run.state import LauncherState, Phase, PodState, Step
from reporter.run.tar_upload import TarUpload, UploadState
from reporter.run.upload import UploadOutcome
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
    facts,
    failed_try,
    gave_up,
    on_loop,
    replacing,
    report,
    result,
)

NOBODY = Key("nope", "global")

# -- results and errors --------------------------------------------------------------------------


@on_loop
async def test_the_first_result_is_held_and_the_second_refused(world: World):
    """A1, A2: the answer names what is held."""
    async with world.opened() as store:
        assert Received(UploadOutcome.ACCEPTED, result("aa")) == await store.record_result(
            E2E, result("aa")
        )
        assert Received(UploadOutcome.DUPLICATE, result("aa")) == await store.record_result(
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

        assert 1 == sum(answer.outcome is UploadOutcome.ACCEPTED for answer in answers)
        assert {store.entry(E2E).record} == {answer.held for answer in answers}


@on_loop
async def test_a_late_result_replaces_an_error_and_keeps_it_beside(world: World):
    """A31: accepted once, then held."""
    async with world.opened() as store:
        assert Marked.RECORDED == await store.mark_failed(E2E, gave_up(cause=Cause.DEADLINE))
        assert State.TIMED_OUT == store.entry(E2E).state
        assert UploadOutcome.ACCEPTED == (await store.record_result(E2E, result())).outcome
        assert UploadOutcome.DUPLICATE == (await store.record_result(E2E, result("bb"))).outcome
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
            UploadOutcome.ACCEPTED,
            UploadOutcome.DUPLICATE,
            UploadOutcome.ACCEPTED,
            UploadOutcome.DUPLICATE,
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
        await store.note_plugin_launch("nope", at=NOW)
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
async def test_while_nothing_is_due_the_disk_is_not_asked(world: World):
    """A sweep comes every second."""
    commits: list[int] = []
    async with world.opened(on_commit=lambda _, number: commits.append(number)) as store:
        assert 0 == await store.give_up_due(NOW + 999)
        await store.note_plugin_launch("e2e", at=NOW)
        await store.note_plugin_launch("sysd", at=NOW)
        assert 0 == await store.give_up_due(NOW + 49)
        assert [1, 1] == commits
        assert [2, 1] == [await store.give_up_due(NOW + at) for at in (50, 100)]


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
        assert UploadOutcome.ACCEPTED == (await store.record_result(E2E, result("bb"))).outcome


@on_loop
async def test_the_first_launch_sets_the_deadline_from_the_plan(world: World):
    """A restarted aggregator says it again; that gives no new time."""
    async with world.opened() as store:
        for at in (NOW, NOW + 40):
            await store.note_plugin_launch("e2e", at=at)
            await store.note_plugin_launch("sysd", at=at)

        assert [(NOW, NOW + 100), (NOW, NOW + 50), (NOW, NOW + 50)] == [
            (entry.launched_at, entry.deadline) for entry in store.snapshot().entries.values()
        ]


@on_loop
async def test_a_clock_that_begins_with_the_container(world: World):
    """Nothing runs out before; what a restarted launcher says again changes nothing."""
    async with world.opened() as store:
        assert not store.launching
        await store.begin_launching()
        await store.note_launches([NODE1, NODE2], at=NOW)
        await store.note_launches([], at=NOW)
        await store.start_entries({NODE1: NOW + 7})
        await store.start_entries({})
    async with world.opened() as store:
        assert store.launching
        await store.begin_launching()
        await store.note_launches([NODE1], at=NOW + 99)
        await store.start_entries({NODE1: NOW + 99})

        assert [
            (None, None, None),
            (NOW, NOW + 7, NOW + 57),
            (NOW, None, None),
        ] == [
            (entry.launched_at, entry.started_at, entry.deadline)
            for entry in store.snapshot().entries.values()
        ]


@on_loop
async def test_what_the_launcher_shows(world: World):
    """At once, with a new revision when it differs and none when it is the same; never kept."""
    pod = PodState("p-1", "node1", "Pending", "ImagePullBackOff", "no such image", NOW, 0)
    launcher = LauncherState(Step.WATCHING)
    async with world.opened(pace=3600.0) as store:
        before = store.snapshot()
        store.show_launch({NODE1: pod}, launcher)
        shown = store.snapshot()
        assert ({NODE1: pod}, launcher, True) == (shown.pods, shown.launcher, shown.ahead)
        assert await store.probe()
        told = store.snapshot()
        assert (False, [NODE1]) == (told.ahead, list(store.changes(before.revision)))
        store.show_launch({NODE1: pod}, LauncherState(Step.WATCHING))
        assert told is store.snapshot()
        store.show_launch({NODE1: pod}, LauncherState(Step.LAUNCHING))
        assert await store.probe()
        assert store.snapshot().revision > told.revision
        assert {} == store.changes(told.revision)
        store.show_launch({}, launcher)
        store.show_launch({NODE2: pod}, launcher)
        assert await store.probe()
        assert {NODE1, NODE2} == store.changes(told.revision).keys()
    async with world.opened() as store:
        assert ({}, None) == (store.snapshot().pods, store.snapshot().launcher)


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
        assert UploadOutcome.ACCEPTED == accepted.outcome
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
        assert NOW == await store.packing_failed("no space\ud800", at=NOW)
        assert "no space\ufffd" == store.snapshot().error
    async with world.opened() as again:
        assert "no space\ufffd" == again.snapshot().error
        assert NOW == await again.packing_failed("read-only", at=NOW + 60)
        assert "read-only" == again.snapshot().error
        closed = await again.advance_run(Phase.CLOSED, tar=TAR)
        assert (None, TAR) == (closed.error, closed.tar)
        await again.packing_failed("late", at=NOW + 99)
        assert not await again.package_again()
        assert closed == again.snapshot()


@on_loop
async def test_the_first_download_of_the_tarball_is_remembered(world: World):
    """Over restarts too; readers see a new revision, a second download changes nothing."""
    async with world.opened() as store:
        await complete(store)
        await store.advance_run(Phase.POST_PROCESSING)
        closed = await store.advance_run(Phase.CLOSED, tar=TAR)
        assert closed.retrieved_at is None
        await store.retrieved(at=NOW + 1)
        fetched = store.snapshot()
        assert (NOW + 1, True) == (fetched.retrieved_at, fetched.revision > closed.revision)
        await store.retrieved(at=NOW + 2)
        assert fetched == store.snapshot()
    async with world.opened() as again:
        await again.retrieved(at=NOW + 3)
        assert NOW + 1 == again.snapshot().retrieved_at


@on_loop
async def test_how_the_upload_of_the_tarball_stands(world: World):
    """With the tarball, over restarts too; what is over stays so, until the run is packed again."""
    waiting = TarUpload("host", UploadState.WAITING, NOW)
    begun = TarUpload("host", UploadState.UPLOADING, NOW, "503", NOW)
    failed = TarUpload("host", UploadState.FAILED, NOW, "403", NOW)
    async with world.opened() as store:
        await store.note_upload(waiting)
        assert (waiting, None) == (store.snapshot().upload, store.snapshot().tar)
        await complete(store)
        await store.advance_run(Phase.POST_PROCESSING)
        await store.packing_failed("no space", at=NOW)
        await store.note_upload(failed)
        await store.advance_run(Phase.CLOSED, error="no space")
        assert await store.package_again()
        assert waiting == store.snapshot().upload
        before = store.snapshot().revision
        await store.note_upload(begun, TAR)
        assert store.snapshot().revision > before
    async with world.opened() as again:
        found = again.snapshot()
        assert (begun, TAR, Phase.POST_PROCESSING) == (found.upload, found.tar, found.phase)
        await again.note_upload(failed, replace(TAR, size=13))
        await again.note_upload(begun)
        assert (failed, TAR) == (again.snapshot().upload, again.snapshot().tar)


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

        assert UploadOutcome.DUPLICATE == (await store.record_result(E2E, result("bb"))).outcome
        assert UploadOutcome.CLOSED == (await store.record_result(NODE2, result("bb"))).outcome
        assert Marked.CLOSED == await store.mark_failed(E2E, failed_try())
        for update in (replacing(2), appending(2)):
            assert ProgressTaken.CLOSED == await store.record_progress(E2E, update, None, at=NOW)
        assert facts(before) == facts(store.snapshot())


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


@on_loop
async def test_a_time_that_is_no_finite_number(world: World):
    """What was acknowledged can be read again."""
    async with world.opened() as store:
        await store.record_result(E2E, result(at=math.inf))
    async with world.opened() as again:
        assert result(at=math.inf) == again.entry(E2E).record


@on_loop
async def test_texts_that_no_database_takes(world: World):
    """They come from outside: what is kept is what is shown, and nobody else's write fails."""
    record = replace(result(), filename="a\ud800", notes=("\udfffb",), counts={"\ud800": 1})
    async with world.opened() as store:
        received, *_ = await asyncio.gather(
            store.record_result(E2E, record),
            store.mark_failed(NODE1, failed_try(text="a\x00b")),
            store.record_progress(NODE2, replacing(1, failures=("\x00", "\ud800")), None, at=NOW),
        )
        before = store.snapshot()
    async with world.opened() as again:
        assert facts(before) == facts(again.snapshot())
    kept = before.entries[E2E].record
    assert kept == received.held
    assert ("a\ufffd", ("\ufffdb",), {"\ufffd": 1}) == (kept.filename, kept.notes, kept.counts)
    assert "a\ufffdb" == before.entries[NODE1].window.text
    assert ("\ufffd", "\ufffd") == before.progress[NODE2].progress.failures
