"""One run under control: tarballs that fail, a full store."""

from __future__ import annotations

from reporter.aggregator.tarball.package import BodiesLost, Interrupted
from reporter.ledger import StoreFull
from reporter.run.entry import State
from reporter.run.record import Cause
from reporter.run.state import Phase, final, run_status
from tests.integration.aggregator.control.world import E2E, FAILED, NODE1, NODE2, PLAN, TAR, play


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

    def test_a_stored_result_is_damaged(self, world):
        """Found while packing: its entry is lost, and the next tick packs the rest."""

        async def story():
            await world.start()
            world.files.broken["package"] = BodiesLost("damaged", [NODE1])
            for key in PLAN.keys:
                await world.result(key)
            await world.control.tick()
            assert (State.FAILED, Cause.LOST) == world.state(NODE1)
            assert (State.COMPLETE, None) == world.state(NODE2)
            assert Phase.POST_PROCESSING is world.store.phase
            del world.files.broken["package"]
            await world.control.tick()
            assert (TAR, None) == (world.store.snapshot().tar, world.store.snapshot().error)

        told = [event["message"] for event in play(story())]
        assert "Result lost" in told
        assert ["lost_results"] == world.counted

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
        """What could not be written down is written as soon as there is room, with its time."""

        async def story():
            await world.start()
            for key in PLAN.keys:
                await world.result(key)
            await world.store.advance_run(Phase.POST_PROCESSING)
            world.files.broken["package"] = FAILED
            world.full = StoreFull("full")
            await world.pass_time(200)
            assert world.store.snapshot().error is None
            tried = len(world.counted)
            world.full = None
            await world.pass_time(1)
            assert "failed" == run_status(world.store.snapshot())
            assert tried == len(world.counted)

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
        told = [e for e in events if e["message"] == "Store write failed"]
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
