"""When the loop announces a verdict with an Event, on a clock of the test's own."""

import pytest

from reporter.errors import Conflict, Forbidden, KubeError, Unavailable
from reporter.sidecar.publish import LoopOutcome
from reporter.verdict.condition import Statement
from tests.unit.sidecar.loop_world import World, supersede


def announced(world: World) -> list[tuple[str, str]]:
    """Type and reason of the Events."""
    return [(event["type"], event["reason"]) for event in world.events]


def test_a_final_verdict_is_announced_after_its_patch() -> None:
    """Once; what may still change is not announced."""
    world = World("classic")
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert [("Normal", "AllGood")] == announced(world)
    assert ["GET", "PATCH", "GET", "PATCH", "POST"] == [method for _, method in world.requests]


def test_a_verdict_that_may_still_change_is_not_announced() -> None:
    """Under OnFailure a result is written at once and announced when the adapter has ended."""
    world = World("classic", restart_policy="OnFailure")
    world.at(5.0, lambda: world.result(success=False, reason="DiskFull"))
    world.at(50.0, lambda: world.end(0))

    assert world.run(40.0) is None
    assert [] == announced(world)
    assert LoopOutcome.FINAL == world.run()
    assert [("Warning", "DiskFull")] == announced(world)


def test_a_restarted_reporter_does_not_announce_what_stands() -> None:
    """Whose patch was accepted has announced it, or had no time to."""
    world = World()
    world.at(5.0, world.result)
    assert LoopOutcome.FINAL == world.run()
    world.events.clear()
    world.restart()

    assert LoopOutcome.FINAL == world.run()
    assert [] == announced(world)


def test_a_newer_attempts_verdict_is_not_announced() -> None:
    """An older attempt writes nothing more, no Event either."""
    world = World("classic")
    world.at(5.0, lambda: supersede(world), world.result)

    assert LoopOutcome.SUPERSEDED == world.run()
    assert [] == announced(world)


@pytest.mark.parametrize("error", [Conflict("409"), Forbidden("403"), Unavailable("503")])
def test_an_event_that_is_refused_is_not_tried_again(error: KubeError) -> None:
    """The verdict stands; one that is there already (409) is as good."""
    world = World("classic")
    world.at(5.0, lambda: world.fail_next("POST", error), world.result)

    assert LoopOutcome.FINAL == world.run()
    assert 1 == [method for _, method in world.requests].count("POST")
    told = [] if isinstance(error, Conflict) else [error]
    assert told == [failure for _, failure in world.failures]


def test_an_event_that_hangs_costs_a_second_at_most() -> None:
    """Nobody waits longer for what is not the verdict."""
    world = World("classic")

    def hang() -> None:
        world.answer_takes = 100.0

    told = world.published

    def published(statement: Statement, seconds: float) -> None:
        told(statement, seconds)
        if statement.final:
            hang()

    world.published = published  # type: ignore[method-assign]
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert [1.0] == world.event_patience
    assert 6.0 == world.now


@pytest.mark.parametrize(
    ("grace", "end_shown_after", "requests_take", "expected"),
    [(30, 0.0, 0.0, [1.0]), (2, 0.0, 0.0, [1.0]), (2, 0.0, 0.3, [0.9]), (2, 0.4, 0.35, [])],
    ids=["28 s left", "1.5 s left", "0.9 s left", "0.4 s left"],
)
def test_after_sigterm_the_write_budget_bounds_the_event(
    grace: int, end_shown_after: float, requests_take: float, expected: list[float]
) -> None:
    """A failed adapter and SIGTERM; a read and a patch take their part of the time."""
    world = World()
    world.pod["spec"]["terminationGracePeriodSeconds"] = grace
    world.at(5.0, lambda: setattr(world, "answer_takes", requests_take))
    world.at(10.0, world.sigterm)
    world.at(10.0 + end_shown_after, lambda: world.end(1, "Error"))

    assert LoopOutcome.FINAL == world.run()
    assert expected == [round(patience, 3) for patience in world.event_patience]
