"""One run under control: workers that fall silent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reporter.run.entry import State
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import LauncherState, PodState, Step
from reporter.run.upload import UploadOutcome
from tests.integration.aggregator.control.world import E2E, NODE1, World, play


class TestHeartbeats:
    """When silence means something."""

    def test_ages(self, world):
        """A52: 17 s are nothing, 45 s are stale, 120 s are too many; a beat makes it young."""

        async def story():
            await world.start()
            world.beat(NODE1)
            await world.pass_time(17)
            shown = world.shown(NODE1)
            assert ("running", False, 17) == (
                shown["status"],
                shown["stale"],
                shown["last-heartbeat"],
            )
            await world.pass_time(28)
            shown = world.shown(NODE1)
            assert ("running", True) == (shown["status"], shown["stale"])
            world.beat(NODE1)
            await world.pass_time(119)
            assert (State.RUNNING, None) == world.state(NODE1)
            await world.pass_time(6)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(NODE1)
            assert UploadOutcome.ACCEPTED is await world.result(NODE1)

        play(story())

    def test_worker_that_never_beat(self, world):
        """A52: Sonobuoy's workers are silent between updates and are not judged."""

        async def story():
            await world.start()
            world.store.record_heartbeat(NODE1, world.mono, beat=False)
            await world.pass_time(3_000, step=5)

            assert (State.RUNNING, None) == world.state(NODE1)
            assert (State.RUNNING, None) == world.state(E2E)

        play(story())

    def test_never(self):
        """HEARTBEAT_TIMEOUT_SECONDS=0."""

        async def story():
            world = await World(timeout=0.0).start()
            world.beat(NODE1)
            await world.pass_time(3_000, step=5)

            assert (State.RUNNING, None) == world.state(NODE1)

        play(story())

    def test_worker_that_is_known_not_to_reach_us(self):
        """What its log says is the cause, where the launcher has not given it up before."""
        key = Key("ours", "global")
        pod = PodState("p", "n", "Running", "AggregatorUnreachable", "cannot resolve r", 0.0, 0)

        async def story():
            world = await World(Plan("r", (Plugin("ours", heartbeats=True),), 3_600)).start()
            world.store.show_launch({key: pod}, LauncherState(Step.WATCHING))
            await world.pass_time(125)
            text = world.shown(key)["error"]["text"]
            assert text.endswith(": no heartbeat for 120 s: cannot resolve r")

        play(story())

    def test_worker_that_is_known_to_beat(self):
        """One that is never heard is lost 120 s after its launch: trouble shows early."""
        plan = Plan("r", (Plugin("ours", heartbeats=True), Plugin("theirs")), 3_600)

        async def story():
            world = await World(plan).start()
            await world.pass_time(119)
            assert (State.RUNNING, None) == world.state(Key("ours", "global"))
            await world.pass_time(6)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(Key("ours", "global"))
            assert (State.RUNNING, None) == world.state(Key("theirs", "global"))

        play(story())

    def test_images_are_pulled(self):
        """Launched by us, it is to be heard from when its container has begun, each by itself."""
        plan = Plan("r", (Plugin("ours", ("a", "b"), heartbeats=True),), 3_600)
        first, second = plan.keys

        async def story():
            world = World(plan)
            world.launcher = SimpleNamespace(logs_taken=False)
            await world.start()
            await world.store.note_launches(plan.keys, at=world.wall)
            await world.pass_time(500)
            await world.store.start_entries({first: world.wall})
            await world.pass_time(119)
            assert (State.RUNNING, None) == world.state(first)
            await world.pass_time(6)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(first)
            assert (State.RUNNING, None) == world.state(second)

        play(story())

    @pytest.mark.parametrize("known", [False, True])
    def test_aggregator_was_paused(self, known):
        """A53: nobody grows older while we do not look."""
        plan = Plan("r", (Plugin("a", heartbeats=known),), 360_000)
        key = Key("a", "global")

        async def story():
            world = await World(plan).start()
            await world.pass_time(20)
            world.beat(key)
            await world.pass_time(30)
            world.move(600)
            await world.control.tick()
            assert (State.RUNNING, None) == world.state(key)
            assert 40 >= world.shown(key)["last-heartbeat"]
            await world.pass_time(80)
            assert (State.RUNNING, None) == world.state(key)
            await world.pass_time(15)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(key)

        play(story())

    def test_paused_before_the_first_beat(self):
        """A53: a pause does not count against a worker that is still awaited either."""
        plan = Plan("r", (Plugin("a", heartbeats=True),), 360_000)
        key = Key("a", "global")

        async def story():
            world = await World(plan).start()
            await world.pass_time(60)
            world.move(600)
            await world.pass_time(50)
            assert (State.RUNNING, None) == world.state(key)
            await world.pass_time(20)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(key)

        play(story())

    @pytest.mark.parametrize("known", [False, True])
    def test_aggregator_was_away(self, known):
        """A53: after a restart all ages start anew."""
        plan = Plan("r", (Plugin("a", heartbeats=known),), 360_000)
        key = Key("a", "global")

        async def story():
            world = await World(plan).start()
            world.beat(key)
            await world.pass_time(10)
            await world.restart(after=600)
            await world.pass_time(119)
            assert (State.RUNNING, None) == world.state(key)
            await world.pass_time(6)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(key)

        # What was heard before is written once a second, at the latest when the store is closed.
        play(story())

    def test_aggregator_was_long_in_starting(self):
        """A53: what a start takes, with workers refused, makes nobody older either."""
        plan = Plan("r", (Plugin("a"),), 360_000)
        key = Key("a", "global")

        async def story():
            world = await World(plan).start()
            world.beat(key)
            await world.pass_time(10)
            await world.restart(recovering=600)
            assert 0 == world.shown(key)["last-heartbeat"]
            await world.pass_time(119)
            assert (State.RUNNING, None) == world.state(key)
            await world.pass_time(6)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(key)

        play(story())

    def test_workers_found_no_place(self, world):
        """Seconds in which the listener was full are nobody's silence; others are."""

        async def story():
            await world.start()
            world.beat(E2E)
            for _ in range(100):
                world.workers.full_seconds += 10
                await world.pass_time(10)
                assert world.shown(E2E)["stale"] is False
            assert (State.RUNNING, None) == world.state(E2E)
            await world.pass_time(130)
            assert (State.TIMED_OUT, Cause.HEARTBEAT) == world.state(E2E)

        play(story())

    @pytest.mark.parametrize("beating", [False, True])
    def test_who_reads_by_the_revision(self, world, beating):
        """It grows when a worker has been silent for three intervals, and when it is back."""

        async def story():
            await world.start()
            world.store.record_heartbeat(NODE1, world.mono, beat=beating)
            await world.pass_time(1)
            before = world.store.snapshot().revision
            await world.pass_time(40)
            assert before == world.store.snapshot().revision
            await world.pass_time(10)
            assert beating is world.shown(NODE1)["stale"]
            assert before + 1 == world.store.snapshot().revision
            await world.pass_time(30)
            assert before + 1 == world.store.snapshot().revision
            world.store.record_heartbeat(NODE1, world.mono, beat=beating)
            await world.pass_time(5)
            assert before + 2 == world.store.snapshot().revision

        play(story())
