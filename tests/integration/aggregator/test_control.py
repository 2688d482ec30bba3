"""One run under control, with a clock that the test moves: sweeps, Wait, phases, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from reporter.aggregator.control import Control, Timing
from reporter.aggregator.store import MemoryStore, StoreFull
from reporter.aggregator.store.memory import Pages
from reporter.aggregator.store.operations import Windows
from reporter.aggregator.uploads import Interrupted, PackageFailed
from reporter.core.run.entry import Cause, Failure, Marked, Outcome, Rank, Record, State
from reporter.core.run.plan import Key, Plan, Plugin
from reporter.core.run.progress import Progress
from reporter.core.run.snapshot import Phase, Tar, final, run_status
from reporter.core.run.status import status_document
from reporter.runtime import log

E2E, NODE1, NODE2 = Key("e2e", "global"), Key("sysd", "node1"), Key("sysd", "node2")
PLAN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", nodes=("node1", "node2"))), 3_600)
FAILED = PackageFailed("the tarball cannot be made: disk full")
TAR = Tar("run-1.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 7)


class Files:
    """Stands for the files behind the rows; `broken` is raised instead of the next works."""

    def __init__(self) -> None:
        self.settled: list[Key] = []
        self.packaged = self.cleared = 0
        self.broken: dict[str, Exception] = {}

    async def settle(self, key: Key) -> None:
        self.settled.append(key)

    async def package(self, snapshot) -> Tar:
        assert Phase.POST_PROCESSING is snapshot.phase
        self._fail("package")
        self.packaged += 1
        return TAR

    async def clear(self) -> None:
        self._fail("clear")
        self.cleared += 1

    def _fail(self, what: str) -> None:
        if what in self.broken:
            raise self.broken[what]


class World:
    """A run, its control and its clocks. `restart` is a new process on the same disk."""

    def __init__(self, plan: Plan = PLAN, *, window: float = 120.0, timeout: float = 120.0) -> None:
        self.plan, self.window, self.timeout = plan, window, timeout
        self.mono, self.wall = 1_000.0, 1_800_000_000.0
        self.pages, self.reading, self.counted = Pages(), set[Key](), list[str]()
        self.excused, self.full_seconds = set[Key](), 0.0
        self.full: StoreFull | None = None

    async def start(
        self,
        *,
        recovering: float = 0.0,
        broken: Exception | None = None,
        package_again: bool = False,
    ) -> World:
        """Open the run as a fresh process does, which takes so long to get its disk in order."""
        self.files = Files()
        if broken is not None:
            self.files.broken["package"] = broken
        self.store = MemoryStore(
            self.pages,
            clock=lambda: self.mono,
            wall=lambda: self.wall,
            windows=Windows(retry=self.window),
            before_commit=self._commit,
        )
        await self.store.open_run(self.plan, now=self.wall)
        if package_again:
            assert await self.store.package_again()
        self.move(recovering)
        self.control = Control(
            self.store,
            self.files,
            plan=self.plan,
            timing=Timing(heartbeat_timeout=self.timeout),
            holding=lambda: self.reading,
            excused=lambda: self.excused,
            full=lambda: self.full_seconds,
            count=self.counted.append,
            clock=lambda: self.mono,
            wall=lambda: self.wall,
        )
        await self.control.tick()
        return self

    async def restart(self, after: float = 0.0, **options: Any) -> None:
        """Be killed, stay away for `after` seconds, start again with another monotonic clock."""
        self.wall += after
        self.mono = 5.0
        self.reading.clear()
        await self.store.close()
        await self.start(**options)

    async def pass_time(self, seconds: float, step: float = 1.0) -> None:
        """Let time go by as the process sees it, a tick each `step`."""
        end = self.mono + seconds
        while self.mono < end:
            self.move(min(step, end - self.mono))
            await self.control.tick()

    def move(self, seconds: float) -> None:
        """Let time go by while the process is stopped."""
        self.mono += seconds
        self.wall += seconds

    async def result(self, key: Key) -> Outcome:
        """Hand in a result."""
        record = Record(Rank.RESULT, self.wall, digest="cd" * 32, size=3, filename="r")
        return (await self.store.record_result(key, record)).outcome

    async def attempt(self, key: Key, text: str = "bad archive") -> Marked:
        """Have an upload fail."""
        return await self.store.mark_failed(key, Failure("attempt", self.wall, text))

    def beat(self, key: Key) -> None:
        """Have a worker send a heartbeat."""
        self.store.record_heartbeat(key, self.mono, beat=True)

    def state(self, key: Key) -> tuple[State, Cause | None]:
        """An entry's state and why."""
        entry = self.store.entry(key)
        return entry.state, entry.record.cause if entry.record else None

    def shown(self, key: Key) -> dict:
        """An entry as `/status` shows it."""
        shown = status_document(self.store.snapshot(), now=self.wall, mono=self.mono)
        return next(entry for entry in shown["plugins"] if entry["key"] == str(key))

    def _commit(self) -> None:
        if self.full is not None:
            raise self.full


def play(story: Awaitable[None]) -> list[dict]:
    """Run a test's story and return what was logged."""

    async def told() -> None:
        await story

    with log.capture() as events:
        asyncio.run(told())
    return events


@pytest.fixture
def world() -> World:
    """The usual run, not yet started."""
    return World()


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
            assert [E2E] == world.files.settled

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
            await world.control.mark_failed("e2e", "global", failure)
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
            world.reading.add(E2E)
            await world.pass_time(3_700, step=10)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)
            assert Phase.RUNNING is world.store.phase

            assert Outcome.ACCEPTED is await world.result(E2E)
            world.reading.clear()
            await world.control.tick()
            assert (State.COMPLETE, None) == world.state(E2E)
            assert Phase.CLOSED is world.store.phase

        play(story())

    def test_upload_that_waits_at_the_end_of_its_retry_window(self, world):
        """Its next try is here and waits for us; once it leaves, the window is over."""

        async def story():
            await world.start()
            await world.attempt(E2E)
            world.excused.add(E2E)
            await world.pass_time(1_000, step=10)
            assert (State.RUNNING, None) == world.state(E2E)
            world.excused.clear()
            await world.control.tick()
            assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)

        play(story())

    def test_second_upload_beside_a_result(self, world):
        """A slow twin of an upload that has already won does not keep the run open."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            world.reading.add(E2E)
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

            assert Outcome.DUPLICATE is await world.result(NODE1)
            assert Outcome.CLOSED is await world.result(E2E)
            taken = await world.store.record_progress(E2E, Progress("m"), None, at=world.wall)
            assert "closed" == taken.value
            assert Marked.CLOSED is await world.attempt(E2E)

        play(story())


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
            assert {E2E, NODE2} == set(world.files.settled)

        play(story())

    @pytest.mark.parametrize("how", ["restart", "start", "pause", "clock"])
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
                case "clock":
                    world.wall += 600
                    await world.control.tick()
            await world.pass_time(2_590, step=10)
            assert (State.RUNNING, None) == world.state(E2E)
            await world.pass_time(10 + 5)  # signs of life are 5 s apart
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)

        play(story())

    def test_over_while_nobody_could_connect(self, world):
        """One upload comes 29 s after the return, another late in the hold."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.pass_time(3_590, step=10)
            await world.restart(after=40)
            await world.pass_time(29)
            assert Outcome.ACCEPTED is await world.result(E2E)
            assert (State.RUNNING, None) == world.state(NODE2)
            await world.pass_time(20)
            assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(NODE2)
            assert Phase.RUNNING is world.store.phase
            assert Outcome.ACCEPTED is await world.result(NODE2)
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
            assert Outcome.ACCEPTED is await world.result(E2E)
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

            assert Outcome.ACCEPTED is await world.result(E2E)
            assert ("complete", True) == (world.shown(E2E)["status"], world.shown(E2E)["late"])
            assert Cause.DEADLINE is world.store.entry(E2E).superseded.cause
            assert Outcome.DUPLICATE is await world.result(E2E)

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
            assert [NODE1] == world.files.settled
            assert Outcome.ACCEPTED is await world.result(NODE1)

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

        # What was heard before is written every 5 s, at the latest when the store is closed.
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
                world.full_seconds += 10
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


class TestErrorsFromInside:
    """What launchers and watchers tell."""

    def test_key_outside_the_plan(self, world):
        """A32: logged and counted, nothing stored."""

        async def story():
            await world.start()
            before = world.store.snapshot()
            failure = Failure("final", world.wall, "gone", Cause.POD_FAILED)
            await world.control.mark_failed("sysd", "node9", failure)
            await world.control.mark_failed("nope", None, failure)

            assert before.entries == world.store.snapshot().entries
            assert ["unexpected_errors"] * 2 == world.counted
            assert [] == world.files.settled

        told = [e for e in play(story()) if "not in the plan" in e["message"]]
        assert [("sysd", "node9"), ("nope", None)] == [(e["plugin"], e["node"]) for e in told]

    def test_no_node_named(self, world):
        """F12: all open entries of the plugin fail, what has come stays."""

        async def story():
            await world.start()
            await world.result(NODE1)
            failure = Failure("final", world.wall, "no such image", Cause.START_FAILED)
            await world.control.mark_failed("sysd", None, failure)

            assert (State.COMPLETE, None) == world.state(NODE1)
            assert (State.FAILED, Cause.START_FAILED) == world.state(NODE2)
            assert (State.RUNNING, None) == world.state(E2E)
            assert [NODE2] == world.files.settled
            assert [] == world.counted

        play(story())

    def test_below_what_is_held(self, world):
        """Our guess does not touch a result, and no file is touched either."""

        async def story():
            await world.start()
            await world.result(E2E)
            failure = Failure("final", world.wall, "evicted", Cause.POD_FAILED)
            await world.control.mark_failed("e2e", "global", failure)

            assert (State.COMPLETE, None) == world.state(E2E)
            assert [] == world.files.settled

        play(story())


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

    @pytest.mark.parametrize("how", ["start", "pause", "clock"])
    def test_workers_could_not_connect_for_long(self, world, how):
        """C11: the 30 s begin when they can: after a slow start, a pause, a jump of the clock."""

        async def story():
            await world.start()
            await world.attempt(E2E)
            match how:
                case "start":
                    await world.restart(recovering=600)
                case "pause":
                    world.move(600)
                    await world.control.tick()
                case "clock":
                    world.wall += 600
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


class TestTrouble:
    """When the disk says no."""

    def test_tarball_fails_until_there_is_room(self, world):
        """F29: the run says why, all bytes are kept, and packing is tried again by itself."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            world.files.broken["package"] = FAILED
            await world.pass_time(5)

            snapshot = world.store.snapshot()
            assert ("failed", False) == (run_status(snapshot), final(snapshot))
            assert "the tarball cannot be made: disk full" == snapshot.error
            assert 0 == world.files.cleared
            del world.files.broken["package"]
            await world.pass_time(5)

            snapshot = world.store.snapshot()
            assert ("complete", True) == (run_status(snapshot), final(snapshot))
            assert (None, TAR) == (snapshot.error, snapshot.tar)
            assert 1 == world.files.cleared

        tries = [e for e in play(story()) if e["message"].startswith("Packing failed")]
        # At 0, 1 and 3 s; the try at 7 s succeeds.
        assert [1.0, 2.0, 4.0] == [event["nextTrySeconds"] for event in tries]
        assert ["package_failures"] * 3 == world.counted

    def test_tarball_fails_for_long(self, world):
        """Tries come 5 minutes apart at most; after an hour it is final, over restarts too."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            world.files.broken["package"] = FAILED
            await world.pass_time(1_800)
            await world.restart(after=1_000, broken=FAILED)
            assert not final(world.store.snapshot())
            await world.pass_time(790)
            assert not final(world.store.snapshot())
            await world.pass_time(310)

            given_up = world.store.snapshot()
            assert ("failed", True) == (run_status(given_up), final(given_up))
            assert "the tarball cannot be made: disk full" == given_up.error
            assert 0 == world.files.cleared
            await world.restart()
            await world.pass_time(600)
            after = world.store.snapshot()
            assert (given_up.entries, given_up.phase, given_up.error) == (
                after.entries,
                after.phase,
                after.error,
            )
            assert (0, 0) == (world.files.packaged, world.files.cleared)

            await world.restart(package_again=True)
            assert ("complete", TAR) == (
                run_status(world.store.snapshot()),
                world.store.snapshot().tar,
            )

        events = play(story())
        told = [e["message"] for e in events if e["message"].startswith("Packing given up")]
        assert ["Packing given up: fix the cause, then start with --package-again"] == told
        tries = [e for e in events if e["message"].startswith("Packing failed")]
        assert 300.0 == max(event["nextTrySeconds"] for event in tries)

    def test_long_away_after_a_failure(self, world):
        """The next process tries once before it gives up: the cause may be gone."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            world.files.broken["package"] = FAILED
            await world.control.tick()
            await world.restart(after=10_000)

            assert TAR == world.store.snapshot().tar

        play(story())

    def test_stopped_while_packing(self, world):
        """That is no failure: nothing is said of it, the next process packs."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            world.files.broken["package"] = Interrupted("stopped")
            await world.control.tick()
            assert (None, []) == (world.store.snapshot().error, world.counted)
            await world.restart()
            assert TAR == world.store.snapshot().tar

        play(story())

    def test_tarball_fails_with_the_store(self, world):
        """What could not be written down is written as soon as there is room."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            await world.store.advance_run(Phase.POST_PROCESSING)
            world.files.broken["package"] = FAILED
            world.full = StoreFull("full")
            await world.pass_time(3)
            assert world.store.snapshot().error is None
            world.full = None
            await world.pass_time(1)
            assert "failed" == run_status(world.store.snapshot())

        play(story())

    def test_store_is_full_for_a_while(self, world):
        """Deadlines and the end come when writing works again; it is told once a minute."""

        async def story():
            await world.start()
            await world.result(NODE1)
            await world.result(NODE2)
            await world.attempt(E2E)
            world.full = StoreFull("full")
            await world.pass_time(200)
            assert Phase.RUNNING is world.store.phase
            world.full = None
            await world.pass_time(1)
            assert Phase.CLOSED is world.store.phase

        events = play(story())
        told = [e for e in events if e["message"] == "The store refuses to write"]
        assert 2 == len(told)

    def test_left_overs_stay(self, world):
        """What cannot be removed does not spoil a complete run."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            world.files.broken["clear"] = OSError(30, "Read-only file system")
            await world.pass_time(3)

            assert "complete" == run_status(world.store.snapshot())

        play(story())
