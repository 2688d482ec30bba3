"""What the loop does after SIGTERM and a deletion, on a clock of the test's own."""

import itertools

import pytest

from reporter.sidecar.publish import LoopOutcome
from tests.unit.sidecar.loop_world import World, rows, running, stamp, terminated


def test_a_natural_end_is_polled_for() -> None:
    """Every 50 ms, where no watch tells."""
    world = World(watched=False)
    world.at(10.0, world.sigterm)
    world.at(10.4, lambda: world.end(1))

    assert LoopOutcome.FINAL == world.run()
    at, row, final = world.history[-1]
    assert ("X", True) == (row, final)
    assert 10.4 <= at <= 10.46


@pytest.mark.parametrize(("watched", "pause"), [(True, 0.5), (False, 0.05)])
def test_the_pod_is_asked_for_at_a_steady_pace_after_sigterm(watched: bool, pause: float) -> None:
    """Half a second where a watch seems healthy, 50 ms without; never at each pass."""
    world = World(watched=watched)
    world.at(10.0, world.sigterm)
    world.run(12.0)
    asked = [at for at in world.pod_asked if at >= 10.0]
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]

    assert 1.5 / pause <= len(asked) <= 2.5 / pause
    assert all(pause - 0.001 <= each <= 2 * pause for each in pauses[:-1]), pauses


def test_after_an_outage_that_lasted_beyond_sigterm_the_pod_is_asked_for_calmly() -> None:
    """Every half second, though no watch tells: thousands may have waited for the API."""
    world = World(watched=False)
    world.at(9.0, world.away)
    world.at(10.0, world.sigterm)
    world.at(12.0, lambda: world.away(False))
    world.at(20.2, lambda: world.end(1))

    assert LoopOutcome.FINAL == world.run()
    at, row, final = world.history[-1]
    assert ("X", True) == (row, final)
    assert 20.2 <= at <= 20.8
    asked = [at for at in world.pod_asked if at >= 13.0]
    assert len(asked) >= 10
    assert all(later - earlier >= 0.49 for earlier, later in itertools.pairwise(asked[:-1]))


@pytest.mark.parametrize(("form", "until"), [("native", 38.0), ("classic", 12.0)])
def test_sigterm_alone_is_revisable_after_two_seconds(form: str, until: float) -> None:
    """The native form looks on until 2 s before the kill, and asks no more than once a second."""
    world = World(form)
    world.at(10.0, world.sigterm)

    assert LoopOutcome.STOPPED == world.run()
    assert (12.0, "N", False) == world.history[-1]
    assert until == pytest.approx(world.now, abs=0.1)
    assert len([at for at in world.pod_asked if at > 12.1]) <= until - 12


def test_an_end_that_is_shown_late_replaces_the_interruption() -> None:
    """The kubelet could not report it at once, and reports it again before it kills."""
    world = World(watched=False)
    world.at(10.0, world.sigterm)
    world.at(20.5, lambda: world.end(1))

    assert LoopOutcome.FINAL == world.run()
    assert [("A", False), ("N", False), ("X", True)] == rows(world)
    assert 20.5 <= world.now <= 21.5


def test_requests_that_hang_do_not_cost_more_than_there_is() -> None:
    """Each gets what is left, not five seconds."""
    world = World("classic")
    world.pod["spec"]["terminationGracePeriodSeconds"] = 5
    world.at(10.0, lambda: setattr(world, "answer_takes", 100.0), world.sigterm, world.result)

    assert LoopOutcome.GAVE_UP == world.run()
    assert world.now <= 13.0 + 0.4


@pytest.mark.parametrize("form", ["native", "classic"])
@pytest.mark.parametrize("result", [True, False])
def test_a_sigterm_before_there_was_a_handler(form: str, result: bool) -> None:
    """Process 1 never hears of it: the deletion is seen all the same, and so is a late result."""
    world = World(form)
    world.delete(30)
    if result:
        world.at(27.0, world.result)

    assert (LoopOutcome.FINAL if result else None) == world.run(30)
    assert [(0.0, "N", False), (27.0, "R", True)][: 1 + result] == world.history


def test_a_deletion_in_the_classic_form_hears_the_adapter_out() -> None:
    """Both were stopped at once: it is settled shortly before the grace period ends."""
    world = World("classic")
    world.at(10.0, lambda: world.delete(30), world.sigterm)

    assert LoopOutcome.FINAL == world.run()
    expected = [(0.0, "A", False), (10.0, "N", False), (37.0, "N", True)]
    assert expected == world.history


def test_a_job_that_may_be_ending_for_its_restarts_is_not_written_to() -> None:
    """A conflict with what the Job controller writes after the deletion would cost its end."""
    world = World("classic", restart_policy="OnFailure")
    failed = terminated(7, started_at=stamp(3), finished_at=stamp(5))

    def says_why() -> None:
        assert world.job is not None
        why = {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}
        world.job["status"].setdefault("conditions", []).append(why)
        world.job["metadata"]["resourceVersion"] = "77"

    world.at(5.0, lambda: world.adapter(running(stamp(5)), failed, restarts=3))
    world.at(10.0, lambda: world.delete(30), world.sigterm)
    world.at(10.2, lambda: world.adapter(terminated(7, finished_at=stamp(10)), failed, 3))
    world.at(11.0, says_why)

    assert LoopOutcome.FINAL == world.run()
    assert [(0.0, "A", False), (11.5, "X", True)] == world.history


def test_a_deletion_that_only_the_look_before_a_write_shows_holds_it_back_too() -> None:
    """The watch is half open, and the wait time ends."""
    world = World(restart_policy="OnFailure", wait=50.0)
    world.at(49.0, lambda: setattr(world, "half_open", True), lambda: world.delete(30))

    world.run(60)

    assert [(0.0, "A", False), (51.5, "N", False)] == world.history


def test_the_job_is_read_again_before_a_deletion_is_settled() -> None:
    """It was suspended meanwhile, and says so."""
    world = World()

    def suspend() -> None:
        assert world.job is not None
        world.job["spec"]["suspend"] = True
        world.job["metadata"]["resourceVersion"] = "77"

    world.at(10.0, lambda: world.delete(30))
    world.at(11.0, suspend)
    world.at(12.0, world.sigterm)

    assert LoopOutcome.FINAL == world.run()
    assert world.condition["message"].startswith("Job was suspended")
