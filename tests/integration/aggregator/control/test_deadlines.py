"""One run under control: deadlines of plugins, moved by outages."""

from __future__ import annotations

import asyncio

import pytest

from reporter.aggregator.tarball.package import PackageFailed
from reporter.run.entry import State
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import Phase
from reporter.run.upload import UploadOutcome
from tests.integration.aggregator.control.world import E2E, NODE1, NODE2, PLAN, World, play


class TestDeadlines:
    """The time of a plugin."""

    def test_over(self, world):
        """Every open entry of the plugin times out, with the words that readers look for."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.pass_time(3_599, step=10)
            assert (State.RUNNING, None) == world.state(NODE2)
            await world.pass_time(1)

            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(NODE2)
            assert (State.COMPLETE, None) == world.state(NODE1)
            text = world.shown(NODE2)["error"]["text"]
            assert text.startswith("Plugin timeout while waiting for results")

        play(story())

    @pytest.mark.parametrize("how", ["restart", "start", "pause"])
    def test_moved_by_an_outage(self, world, how):
        """Workers have the time in which they could not reach us, and no more than that."""

        async def story():
            await world.start()
            await world.pass_time(1_000, step=10)
            match how:
                case "restart":
                    await world.restart(after=600)
                case "start":
                    await world.restart(after=200, recovering=400)
                case "pause":
                    world.move(600)
                    await world.control.tick()
            await world.pass_time(2_590, step=10)
            assert (State.RUNNING, None) == world.state(E2E)
            await world.pass_time(10 + 5)  # signs of life are 5 s apart
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)

        play(story())

    @pytest.mark.parametrize("then", ["go on", "restart"])
    @pytest.mark.parametrize("hours", [-2, 2])
    def test_the_wall_clock_is_set(self, world, hours, then):
        """Nobody has more time for it, or less."""

        async def story():
            await world.start()
            await world.pass_time(1_000, step=10)
            world.wall += hours * 3_600
            await world.pass_time(1_000, step=10)
            if then == "restart":
                await world.restart()
            await world.pass_time(1_590, step=10)
            assert (State.RUNNING, None) == world.state(E2E)
            await world.pass_time(10 + 5)  # signs of life are 5 s apart
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)

        play(story())

    @pytest.mark.parametrize("hours", [-2, 0.5])
    def test_the_wall_clock_is_set_while_the_aggregator_is_away(self, world, hours):
        """It goes on from the seconds that were left; what the clock gained counts as away."""

        async def story():
            await world.start()
            await world.pass_time(1_000, step=10)
            await world.restart(after=hours * 3_600)
            await world.pass_time(2_590, step=10)
            assert (State.RUNNING, None) == world.state(E2E)
            await world.pass_time(10 + 5)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)

        play(story())

    def test_the_wall_clock_is_set_while_the_tarball_cannot_be_made(self, world):
        """It is tried for as long as before, also by the next process."""

        async def story():
            await world.start(broken=PackageFailed("no room"))
            for key in PLAN.keys:
                await world.result(key)
            await world.pass_time(60)
            world.wall += 2 * 3_600
            signs = asyncio.create_task(world.control.stay_alive())
            await asyncio.sleep(0)
            signs.cancel()
            await world.restart(broken=PackageFailed("no room"))
            await world.pass_time(60)
            assert Phase.POST_PROCESSING is world.store.phase

        play(story())

    def test_over_while_nobody_could_connect(self, world):
        """One upload comes 29 s after the return, another late in the hold."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.pass_time(3_590, step=10)
            await world.restart(after=40)
            await world.pass_time(29)
            assert UploadOutcome.ACCEPTED is await world.result(E2E)
            assert (State.RUNNING, None) == world.state(NODE2)
            await world.pass_time(20)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(NODE2)
            assert Phase.RUNNING is world.store.phase
            assert UploadOutcome.ACCEPTED is await world.result(NODE2)
            await world.control.tick()
            assert Phase.CLOSED is world.store.phase
            assert (False, True) == tuple(world.shown(key)["late"] for key in (E2E, NODE2))

        play(story())

    @pytest.mark.parametrize("how", ["restart", "pause"])
    def test_away_after_it(self, world, how):
        """A worker between two tries can come in the hold: that counts from our return."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.result(NODE2)
            await world.pass_time(3_600, step=10)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)
            if how == "restart":
                await world.restart(after=60)
            else:
                world.move(60)
                await world.control.tick()
            await world.pass_time(19)
            assert Phase.RUNNING is world.store.phase
            assert UploadOutcome.ACCEPTED is await world.result(E2E)
            await world.control.tick()
            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_passed_inside_a_retry_window(self, world):
        """The window decides: its worker was told to try again."""

        async def story():
            await world.start()
            await world.pass_time(3_590, step=10)
            await world.attempt(E2E)
            await world.pass_time(115, step=5)
            assert (State.RUNNING, None) == world.state(E2E)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(NODE1)
            await world.pass_time(5)
            assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)

        play(story())

    def test_result_after_it(self, world):
        """A31: a late result replaces our guess, once."""

        async def story():
            await world.start()
            await world.pass_time(3_600, step=10)
            assert "timed_out" == world.shown(E2E)["status"]

            assert UploadOutcome.ACCEPTED is await world.result(E2E)
            assert ("complete", True) == (world.shown(E2E)["status"], world.shown(E2E)["late"])
            assert Cause.DEADLINE is world.store.entry(E2E).superseded.cause
            assert UploadOutcome.DUPLICATE is await world.result(E2E)

        play(story())

    def test_groups_begin_one_after_the_other(self):
        """A plugin's time runs from when those before it are through."""
        plan = Plan("r", (Plugin("late", order=2), Plugin("first"), Plugin("with-it")), 100)

        async def story():
            world = await World(plan).start()
            late, first, beside = (
                Key("late", "global"),
                *(Key(name, "global") for name in ("first", "with-it")),
            )
            assert world.store.entry(first).deadline == world.wall + 100
            assert world.store.entry(late).deadline is None
            await world.result(first)
            await world.pass_time(50)
            assert world.store.entry(late).deadline is None
            await world.result(beside)
            await world.control.tick()
            assert world.store.entry(late).deadline == world.wall + 100

        play(story())
