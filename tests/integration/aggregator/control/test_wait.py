"""One run under control: how long it waits for what is missing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reporter.run.entry import Marked, State
from reporter.run.plan import Plan
from reporter.run.progress import Progress
from reporter.run.record import Cause, Failure, Rank, Record, ResultVerdict, stopped
from reporter.run.state import Phase, run_status
from reporter.run.upload import UploadOutcome
from tests.integration.aggregator.control.world import E2E, NODE1, NODE2, PLAN, TAR, World, play


class TestWait:
    """When the run closes."""

    def test_all_results(self, world):
        """A28: with the last result the run closes, is packaged and complete, in one tick."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                assert Phase.RUNNING is world.store.phase
                await world.result(key)
            await world.control.tick()

            snapshot = world.store.snapshot()
            assert (Phase.CLOSED, TAR, None) == (snapshot.phase, snapshot.tar, snapshot.error)
            assert "complete" == run_status(snapshot)
            assert (1, 1) == (world.files.packaged, world.files.cleared)

        events = play(story())
        assert [
            "Result stored",
            "Result stored",
            "Result stored",
            "Run closed: the set of results is final",
            "Run finished",
        ] == [event["message"] for event in events]

    def test_a_launcher_has_not_taken_all_logs(self, world):
        """The run stays open, and no clock begins of itself; it does not wait for the removal."""
        world.launcher = SimpleNamespace(logs_taken=False, through=False)

        async def story():
            await world.start()
            assert {None} == {world.store.entry(key).launched_at for key in PLAN.keys}
            for key in PLAN.keys:
                await world.result(key)
            await world.pass_time(5)
            assert Phase.RUNNING is world.store.phase
            world.launcher.logs_taken = True
            await world.control.tick()
            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_a_run_that_is_stopped(self, world):
        """It is packed without waiting; an upload that is being read is no less welcome."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.attempt(NODE2)
            world.uploads.holding = {E2E}
            for key in (E2E, NODE2):
                await world.store.mark_failed(key, stopped(world.wall))
            await world.pass_time(60)
            assert Phase.RUNNING is world.store.phase
            await world.result(E2E)
            world.uploads.holding.clear()
            await world.control.tick()
            assert Phase.CLOSED is world.store.phase
            assert [(State.COMPLETE, None), (State.FAILED, Cause.STOPPED)] == [
                world.state(key) for key in (E2E, NODE2)
            ]
            assert "failed" == run_status(world.store.snapshot())

        play(story())

    def test_the_process_is_killed_after_a_stop(self, world):
        """The next one packs the run, and waits for nobody."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.store.mark_failed(key, stopped(world.wall))
            await world.restart()
            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_a_result_that_is_still_being_judged(self, world):
        """The run stays open until the verdict is there: it belongs to what the run says."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key, "" if key == E2E else "passed")
            await world.pass_time(30)
            assert Phase.RUNNING is world.store.phase
            said = ResultVerdict("failed", "TestsFailed", "1 of 2", {"passed": 1, "failed": 1})
            assert await world.store.judge(E2E, "cd" * 32, said)
            await world.control.tick()
            assert Phase.CLOSED is world.store.phase

        told = [event for event in play(story()) if event["message"] == "Result judged"]
        assert [("e2e/global", "failed", {"passed": 1, "failed": 1})] == [
            (event["key"], event["verdict"], event["tests"]) for event in told
        ]

    def test_nothing_happens_twice(self, world):
        """Ticks after the end find nothing to do."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            await world.pass_time(30)

            assert (1, 1) == (world.files.packaged, world.files.cleared)

        play(story())

    def test_upload_failed_and_nobody_retries(self):
        """A29: the run ends with the window, without being held open any longer."""

        async def story():
            world = await World(window=1.0).start()
            await world.result(NODE1)
            await world.result(NODE2)
            await world.attempt(E2E)
            await world.pass_time(0.75, step=0.25)
            assert Phase.RUNNING is world.store.phase
            assert world.store.entry(E2E).retrying
            await world.pass_time(0.5)

            assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)
            assert Phase.CLOSED is world.store.phase
            assert "failed" == run_status(world.store.snapshot())

        play(story())

    def test_failing_again_and_again(self, world):
        """A48: each failure moves the end of the window, but not beyond 600 s from the first."""

        async def story():
            await world.start()
            for _ in range(6):
                await world.attempt(E2E)
                await world.pass_time(99.5, step=10)
                assert world.store.entry(E2E).retrying
                await world.pass_time(0.5)

            assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)

        play(story())

    @pytest.mark.parametrize(
        ("cause", "seconds"),
        [
            (Cause.DEADLINE, 20),
            (Cause.HEARTBEAT, 20),
            (Cause.LOST, 20),
            (Cause.POD_FAILED, 0),
            (Cause.START_FAILED, 0),
        ],
    )
    def test_error_of_ours_is_held_open(self, world, cause, seconds):
        """A worker may be between two tries, 15 s apart; but not where there is none any more."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.result(NODE2)
            failure = Failure("final", world.wall, "evicted", cause)
            await world.store.mark_all_failed({E2E: failure})
            await world.pass_time(seconds - 1)
            assert Phase.RUNNING is world.store.phase
            await world.pass_time(1)
            await world.control.tick()
            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_worker_error_is_not_held_open(self, world):
        """The worker itself said so: there is nothing to wait for."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.result(NODE2)
            record = Record(Rank.WORKER, world.wall, digest="ef" * 32, cause=Cause.WORKER_ERROR)
            await world.store.record_result(E2E, record)
            await world.control.tick()

            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_empty_plan(self):
        """A54: nothing is expected, so the run is complete at once."""

        async def story():
            world = await World(Plan("run-1", ())).start()

            assert "complete" == run_status(world.store.snapshot())
            assert TAR == world.store.snapshot().tar

        play(story())

    def test_upload_being_read_at_the_deadline(self, world):
        """A57: the entry times out, the late result is taken, and only then the run closes."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.result(NODE2)
            world.uploads.holding.add(E2E)
            await world.pass_time(3_700, step=10)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)
            assert Phase.RUNNING is world.store.phase

            assert UploadOutcome.ACCEPTED is await world.result(E2E)
            world.uploads.holding.clear()
            await world.control.tick()
            assert (State.COMPLETE, None) == world.state(E2E)
            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_upload_that_waits_at_the_end_of_its_retry_window(self, world):
        """Its next try is here and waits for us; once it leaves, the window is over."""

        async def story():
            await world.start()
            await world.attempt(E2E)
            world.uploads.excused.add(E2E)
            await world.pass_time(1_000, step=10)
            assert (State.RUNNING, None) == world.state(E2E)
            world.uploads.excused.clear()
            await world.control.tick()
            assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)

        play(story())

    def test_upload_in_the_queue_at_its_deadline(self, world):
        """It had come in time, and its deadline stays open while it waits."""

        async def story():
            await world.start()
            world.uploads.queued.add(E2E)
            await world.pass_time(5_000, step=10)
            assert (State.RUNNING, None) == world.state(E2E)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(NODE1)
            world.uploads.queued.clear()
            await world.control.tick()
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)

        play(story())

    def test_second_upload_beside_a_result(self, world):
        """A slow twin of an upload that has already won does not keep the run open."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            world.uploads.holding.add(E2E)
            await world.control.tick()

            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_after_closing(self, world):
        """A43: what is held stays held, what comes new comes too late."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.result(NODE2)
            await world.attempt(E2E)
            await world.pass_time(121)
            assert Phase.CLOSED is world.store.phase

            assert UploadOutcome.DUPLICATE is await world.result(NODE1)
            assert UploadOutcome.CLOSED is await world.result(E2E)
            taken = await world.store.record_progress(E2E, Progress("m"), None, at=world.wall)
            assert "closed" == taken.value
            assert Marked.CLOSED is await world.attempt(E2E)

        play(story())
