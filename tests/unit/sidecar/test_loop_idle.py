"""What the loop does after a final verdict, on a clock of the test's own."""

import json
from typing import Any

import pytest

from reporter.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    KubeError,
    NotFound,
    Unavailable,
)
from reporter.sidecar.publish import LoopOutcome
from tests.unit.sidecar.loop_world import Object, World, stamp, supersede


def succeeded(form: str = "native", **options: Any) -> World:
    """A success is on the Job."""
    world = World(form, **options)
    world.at(5.0, world.result)
    assert LoopOutcome.FINAL == world.run()
    return world


def ends_badly() -> World:
    """Then the adapter fails, and SIGTERM comes with its end."""
    world = succeeded()
    world.at(50.0, lambda: world.end(1, "Error"), world.sigterm)
    return world


@pytest.mark.parametrize(
    ("form", "deleted", "longest"),
    [("classic", False, 0.15), ("native", True, 0.15), ("native", False, 28.0)],
)
def test_idle_ends_with_sigterm(form: str, deleted: bool, longest: float) -> None:
    """After a last look for what contradicts the verdict, where one can still be shown."""
    world = succeeded(form)
    if deleted:
        world.at(99.0, world.delete)
    world.at(100.0, world.sigterm)
    world.loop.idle(lambda _: False)

    assert 100.0 <= world.now <= 100.0 + longest + 0.1


def test_an_end_that_a_busy_node_shows_late_is_noted() -> None:
    """In the native form SIGTERM says that the adapter has ended: there is time to learn how."""
    world = succeeded()
    world.at(50.0, world.sigterm)
    world.at(60.0, lambda: world.end(137, "OOMKilled"))
    world.loop.idle(lambda _: False)

    assert "OOMKilled" == after(world)["reason"]
    assert world.now < 60.2


def test_idle_notes_a_contradiction_once() -> None:
    """An annotation-only write, however often the end is seen."""
    world = succeeded()
    before = len(world.requests)
    world.at(50.0, lambda: world.end(1, "Error"))
    world.at(100.0, world.sigterm)
    world.loop.idle(lambda _: False)

    assert [(50.0, "GET"), (50.0, "PATCH")] == world.requests[before:]
    assert 1 == after(world)["exitCode"]


def test_a_contradiction_right_after_the_verdict_is_noted_at_once() -> None:
    world = succeeded()
    world.at(5.2, lambda: world.end(1, "Error"))
    world.at(5.3, world.sigterm)
    world.loop.idle(lambda _: after(world) != {})

    assert 5.2 == world.now


def test_a_contradiction_that_something_takes_out_again_is_sent_once() -> None:
    world = succeeded()
    assert world.job is not None
    kept = dict(world.job["metadata"]["annotations"])
    world.webhook = lambda job: job["metadata"].update(annotations=dict(kept))
    before = len(world.requests)
    world.at(50.0, lambda: world.end(1, "Error"))
    world.at(100.0, world.sigterm)
    world.loop.idle(lambda _: False)

    assert [(50.0, "GET"), (50.0, "PATCH")] == world.requests[before:]


def after(world: World, member: str = "after") -> Object:
    """What was added to the annotation."""
    assert world.job is not None
    note = json.loads(world.job["metadata"]["annotations"]["status-reporter.io/Available"])
    found: Object = note.get(member, {})
    return found


@pytest.mark.parametrize("error", [Conflict("409"), Unavailable("503")], ids=str)
@pytest.mark.parametrize("request_of", ["GET", "PATCH"])
def test_a_contradiction_survives_a_failed_request(error: KubeError, request_of: str) -> None:
    """Somebody wrote in between, or the API stumbled: read again and try again."""
    world = ends_badly()
    world.fail_next(request_of, error)
    world.loop.idle(lambda _: False)

    assert 1 == after(world)["exitCode"]
    assert [error] == [failure for _, failure in world.failures]
    assert world.now < 51.0


def test_a_contradiction_is_tried_until_the_write_budget_ends() -> None:
    """An API that takes no patch does not hold the Pod longer than that."""
    world = ends_badly()
    world.errors_of["PATCH"] = [Unavailable("503")] * 1000
    world.loop.idle(lambda _: False)

    assert {} == after(world)
    assert 77.9 <= world.now <= 78.5


@pytest.mark.parametrize(
    "error", [NotFound("404"), Gone("422"), Forbidden("403"), InvalidRequest("422")]
)
def test_a_contradiction_that_cannot_be_added_is_let_go(error: KubeError) -> None:
    """The verdict stands; nothing is tried twice and nobody waits."""
    world = ends_badly()
    world.fail_next("PATCH", error)
    world.loop.idle(lambda _: False)

    assert {} == after(world)
    assert world.now < 50.5
    assert [(50.0, "GET"), (50.0, "PATCH")] == world.requests[-2:]


def test_a_contradiction_is_added_after_a_restart_of_the_reporter() -> None:
    """The verdict that stands was given by an earlier process of the same attempt."""
    world = succeeded()
    before = json.loads(json.dumps(world.condition))
    world.restart()
    assert LoopOutcome.FINAL == world.run()
    world.at(50.0, lambda: world.end(1, "Error"), world.sigterm)
    world.loop.idle(lambda _: False)

    assert 1 == after(world)["exitCode"]
    assert before == world.condition


def test_a_result_after_the_timeout_is_noted_and_announced_once() -> None:
    """The verdict stays; a restarted reporter finds the note."""
    world = World(wait=60.0)
    assert LoopOutcome.FINAL == world.run()
    before = len(world.requests)
    world.at(90.0, world.result)
    world.at(91.0, lambda: world.result(reason="AllBetter"))
    world.at(100.0, world.sigterm)
    world.loop.idle(lambda _: False)
    world.restart()
    assert LoopOutcome.FINAL == world.run()
    world.at(101.0, world.sigterm)
    world.loop.idle(lambda _: False)

    added = ("PATCH", "POST")
    assert [(90.0, "PATCH"), (90.0, "POST")] == [
        each for each in world.requests[before:] if each[1] in added
    ]
    assert {
        "observedAt": stamp(90),
        "status": "True",
        "reason": "AllGood",
        "message": "fine",
    } == after(world, "late")
    assert "AdapterTimeout" == world.condition["reason"]
    first, second = world.events
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert (
        "Warning",
        "LateResult",
        "Result received after the verdict AdapterTimeout: True AllGood: fine",
    ) == (second["type"], second["reason"], second["note"])


def test_a_result_after_the_timeout_whose_note_had_no_answer_is_announced() -> None:
    """The patch was carried out: the next read shows it."""
    world = World(wait=60.0)
    assert LoopOutcome.FINAL == world.run()
    world.at(90.0, world.result, world.lose_answer)
    world.at(100.0, world.sigterm)
    world.loop.idle(lambda _: False)

    assert 1 == [method for at, method in world.requests if at >= 90.0].count("PATCH")
    assert ["AdapterTimeout", "LateResult"] == [event["reason"] for event in world.events]


def test_nothing_is_added_to_the_verdict_of_a_newer_attempt() -> None:
    """Its own adapter is what contradicts it."""
    world = ends_badly()
    world.at(49.0, lambda: supersede(world))
    world.loop.idle(lambda _: False)

    assert {} == after(world)
    assert (50.0, "PATCH") not in world.requests


def test_idle_sleeps() -> None:
    """The poll interval is all that wakes it."""
    world = succeeded(poll_interval=10.0)
    before = len(world.passes)
    world.at(1005.0, world.end, world.sigterm)
    world.loop.idle(lambda _: False)

    assert len(world.passes) - before <= 125


def test_a_quiet_job_of_ten_minutes_makes_few_passes_and_five_requests() -> None:
    """The poll interval is the safety net; requests come with changes only."""
    world = World("classic", wait=10_000.0)
    world.at(600.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert 5 == len(world.requests)
    assert len(world.passes) <= 320
