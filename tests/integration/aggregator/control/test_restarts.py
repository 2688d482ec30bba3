"""One run under control, over restarts of the aggregator."""

from __future__ import annotations

import pytest

from reporter.run.entry import State
from reporter.run.progress import Progress
from reporter.run.record import Cause
from reporter.run.state import Phase
from tests.integration.aggregator.control.world import E2E, NODE1, NODE2, PLAN, TAR, play


class TestRestarts:
    """A new process on the same disk, in every phase."""

    def test_inside_the_retry_window(self, world):
        """C11: the window stays; workers were refused meanwhile, so it has at least 30 s more."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.result(NODE2)
            await world.attempt(E2E)
            await world.restart(after=119)
            assert world.store.entry(E2E).retrying
            await world.pass_time(29)
            assert Phase.RUNNING is world.store.phase
            await world.pass_time(1)
            assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)
            assert Phase.CLOSED is world.store.phase

        play(story())

    @pytest.mark.parametrize("how", ["start", "pause"])
    def test_workers_could_not_connect_for_long(self, world, how):
        """C11: the 30 s begin when they can: after a slow start, a pause."""

        async def story():
            await world.start()
            await world.attempt(E2E)
            match how:
                case "start":
                    await world.restart(recovering=600)
                case "pause":
                    world.move(600)
                    await world.control.tick()
            await world.pass_time(29)
            assert world.store.entry(E2E).retrying
            await world.pass_time(1)
            assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)

        play(story())

    def test_window_is_not_moved_by_it(self, world):
        """C11: a window that has longer to go keeps its end."""

        async def story():
            await world.start()
            await world.attempt(E2E)
            await world.restart(after=10)
            await world.pass_time(109)
            assert world.store.entry(E2E).retrying
            await world.pass_time(1)
            assert not world.store.entry(E2E).retrying

        play(story())

    def test_before_the_tarball(self, world):
        """C12: killed in post-processing, it goes on there."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            await world.store.advance_run(Phase.POST_PROCESSING)
            await world.restart()

            assert TAR == world.store.snapshot().tar
            assert Phase.CLOSED is world.store.phase
            assert 1 == world.files.packaged

        play(story())

    def test_after_the_end(self, world):
        """C12: the row is there: nothing is measured again, only what is left over goes."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            await world.control.tick()
            await world.restart()

            assert (0, 1) == (world.files.packaged, world.files.cleared)
            assert TAR == world.store.snapshot().tar
            assert world.control.closed_at == world.mono

        play(story())

    def test_everything_is_there(self, world):
        """Results, errors, progress and what was superseded."""

        async def story():
            await world.start()
            await world.pass_time(3_600, step=10)
            await world.result(E2E)
            await world.store.record_progress(E2E, Progress("m", 5, 5), None, at=world.wall)
            before = world.store.snapshot()
            await world.restart()
            after = world.store.snapshot()

            assert before.entries == after.entries
            assert before.progress == after.progress
            assert before.revision < after.revision

        play(story())
