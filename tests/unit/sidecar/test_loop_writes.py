"""What counts as written, and how often and how long it is tried, on a clock of the test's own."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from reporter.errors import Unavailable
from reporter.sidecar.publish import LoopOutcome
from tests.unit.sidecar.loop_world import Object, World, rows

NOTE = "status-reporter.io/Available"


def patches(world: World) -> list[float]:
    return [at for at, method in world.requests if method == "PATCH"]


def without_note(job: Object) -> None:
    job["metadata"]["annotations"].pop(NOTE, None)


def without_condition(job: Object) -> None:
    job["status"]["conditions"] = []


def with_another(field: str) -> Callable[[Object], object]:
    def change(job: Object) -> None:
        for condition in job["status"].get("conditions", []):
            condition[field] = {"status": "Unknown", "message": "cut"}.get(field, "Other")

    return change


with_a_shorter_message = with_another("message")


# What counts as written


@pytest.mark.parametrize("form", ["native", "classic"])
def test_a_final_verdict_whose_annotation_is_removed_is_written_and_announced_once(form) -> None:
    world = World(form, report_running=False)
    world.webhook = without_note
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    world.at(600.0, world.end, world.sigterm)
    world.loop.idle(lambda _: False)

    assert [5.0] == patches(world)
    assert ("True", "AllGood") == (world.condition["status"], world.condition["reason"])
    assert ["AllGood"] == [event["reason"] for event in world.events]
    assert 1 == len(world.failures)
    assert "annotation" in str(world.failures[0][1])
    # The exit code and the metrics depend on its row.
    assert world.sink.standing is not None
    assert world.sink.standing.note is not None
    assert ("R", True) == (world.sink.standing.note.row, world.sink.standing.note.final)


def test_a_final_verdict_whose_message_is_changed_is_written() -> None:
    """Status and reason are enough."""
    world = World("classic", report_running=False)
    world.webhook = with_a_shorter_message
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert [(5.0, "R", True)] == world.history
    assert ([5.0], "cut") == (patches(world), world.condition["message"])


@pytest.mark.parametrize(
    "change", [without_condition, with_another("status"), with_another("reason")]
)
def test_an_answer_that_lacks_the_condition_is_no_written_verdict(
    change: Callable[[Object], object],
) -> None:
    world = World(report_running=False)
    world.webhook = change
    world.at(5.0, world.result)
    world.at(65.0, lambda: setattr(world, "webhook", lambda _: None))

    assert LoopOutcome.FINAL == world.run()
    assert [("R", True)] == rows(world)
    assert world.now > 65.0
    assert ["AllGood"] == [event["reason"] for event in world.events]
    assert "AllGood" == world.withheld_at[0][1].reason


@pytest.mark.parametrize("change", [without_note, without_condition, with_a_shorter_message])
def test_a_revisable_report_that_is_changed_on_its_way_is_sent_again_ever_more_seldom(
    change: Callable[[Object], object],
) -> None:
    """After a second at the earliest, in the end once a minute."""
    world = World(wait=10_000.0)
    world.webhook = change

    assert world.run(1_000) is None
    pauses = [later - earlier for earlier, later in itertools.pairwise(patches(world))]
    assert 1.0 <= pauses[0] <= 1.5
    assert all(1.0 <= pause for pause in pauses)
    assert 55.0 <= pauses[-1] <= 65.0
    assert len(pauses) < 25


# How often


def test_an_adapter_that_alternates_valid_and_broken_files_causes_one_write_a_second() -> None:
    """While it may run again, both are revisable."""
    world = World("classic", restart_policy="OnFailure")
    for step in range(250):
        world.at(5 + step / 50, world.result)
        world.at(5.01 + step / 50, world.garbage)

    assert world.run(30) is None
    tries = [at for at in patches(world) if at >= 5.0]
    assert 5 <= len(tries) <= 7
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(tries))


def test_a_file_that_is_whole_again_when_the_job_was_read_causes_one_read_a_second() -> None:
    """There is nothing to write then, and the next try waits as after a write."""
    world = World("classic", restart_policy="OnFailure")
    read = world.get

    def completed_meanwhile(*names: str, **more: Any) -> Object:
        world.result()
        return read(*names, **more)

    world.get = completed_meanwhile  # type: ignore[method-assign,assignment]
    for step in range(250):
        world.at(5 + step / 50, world.garbage)

    assert world.run(30) is None
    assert [("R", False)] == rows(world)
    tries = [at for at, method in world.requests if method == "GET" and at >= 5.0]
    assert 5 <= len(tries) <= 7
    assert all(later - earlier >= 1.0 for earlier, later in itertools.pairwise(tries))


# How long


def test_a_write_that_takes_longer_is_given_longer() -> None:
    """5 s, then 10, then 35: an admission webhook that hangs may take 10, a change 34."""
    world = World()
    world.patch_takes = 34.0
    world.at(500.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    first, second, third = patches(world)[:3]
    assert 5.0 <= second - first <= 5.5
    assert 10.0 <= third - second <= 10.5
    assert ("A", False) == rows(world)[0]
    assert world.published_at[0][0] == pytest.approx(third + 34.0)


def test_a_write_that_fails_at_once_is_no_reason_for_a_longer_one() -> None:
    world = World()
    world.errors_of["PATCH"] = [Unavailable("reset")] * 2
    world.at(0.2, lambda: setattr(world, "patch_takes", 34.0))

    assert world.run(100) is None
    third, fourth = patches(world)[2:4]
    assert 5.0 <= fourth - third <= 6.0


@pytest.mark.parametrize(("grace", "takes"), [(30, 10.0), (15, 6.0)])
def test_a_slow_write_after_sigterm_is_bounded_by_the_grace_period(
    grace: int, takes: float
) -> None:
    world = World("classic")
    world.pod["spec"]["terminationGracePeriodSeconds"] = grace
    world.at(10.0, lambda: setattr(world, "patch_takes", takes), world.result, world.sigterm)

    assert LoopOutcome.FINAL == world.run()
    assert world.now <= 10.0 + grace - 2.0


def test_a_write_that_never_ends_leaves_the_time_to_tell_others() -> None:
    """They hear of the verdict before the grace period ends."""
    world = World("classic")
    world.at(10.0, lambda: setattr(world, "patch_takes", 1e6), world.result, world.sigterm)

    assert LoopOutcome.GAVE_UP == world.run()
    assert world.now <= 38.0 + 0.2
    assert world.withheld_at[0][0] <= 33.1


def test_a_write_under_way_at_sigterm_may_go_on_until_shortly_before_the_end() -> None:
    """1.5 s are left for a new try; nothing is known before the first look."""
    world = World("classic")
    assert float("-inf") == world.loop.time.write_end
    world.run(5)
    assert float("-inf") == world.loop.time.write_end
    world.at(10.0, world.sigterm)
    world.run(11)

    assert 10.0 + 28.0 - 1.5 == world.loop.time.write_end
