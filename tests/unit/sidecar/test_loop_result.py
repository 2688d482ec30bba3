"""When the loop writes a result, on a clock of the test's own."""

from collections.abc import Callable, Iterator

import pytest

from reporter.sidecar.inotify import BURST, DirectoryWatch
from reporter.sidecar.publish import LoopOutcome
from tests.unit.sidecar.loop_world import World, rows

# A result that becomes the verdict when the adapter has ended


def test_at_exit_a_result_is_told_and_final_with_the_end() -> None:
    """Row A says that it was received; the exit code decides."""
    world = World(at_exit=True)
    world.at(5.0, world.result).at(40.0, world.end)

    assert LoopOutcome.FINAL == world.run(100)
    assert [(0.0, "A", False), (30.0, "A", False), (40.0, "R", True)] == world.history
    told = world.published_at[1][1].report.message
    assert "Adapter container is running; result received: AllGood" == told


def test_at_exit_a_received_result_is_silent_where_row_a_is() -> None:
    """REPORT_RUNNING=false."""
    world = World(at_exit=True, report_running=False)
    world.at(5.0, world.result).at(40.0, world.end)

    assert LoopOutcome.FINAL == world.run(100)
    assert [(40.0, "R", True)] == world.history


def test_at_exit_an_end_that_the_watch_missed_is_asked_for_when_the_wait_is_over() -> None:
    """A result that counts because no end was seen rests on there being none."""
    world = World(at_exit=True, wait=60.0)
    world.at(5.0, world.result)
    world.at(50.0, lambda: setattr(world, "half_open", True), lambda: world.end(1))

    assert LoopOutcome.FINAL == world.run(200)
    assert ("X", True) == rows(world)[-1]
    assert [60.0] == world.pod_asked


# What lies there instead of a result


def test_a_good_end_without_a_result_names_what_lies_there_instead() -> None:
    """In the message, after the fixed wording, and in the evidence."""
    world = World()
    world.beside = ("result.json",)
    world.at(5.0, world.end)

    assert LoopOutcome.FINAL == world.run(20)
    hint = " (looked for /results/adapter-result.json; found result.json)"
    assert world.condition["message"].endswith("valid result file: Completed" + hint)
    file = world.published_at[-1][1].evidence["file"]
    assert ("absent", ["result.json"]) == (file["state"], file["beside"])


@pytest.mark.parametrize(("code", "reason"), [(1, "AdapterExitedWithError"), (0, "AllGood")])
def test_other_ends_name_nothing(code, reason) -> None:
    """An exit code that is not 0 explains itself."""
    world = World()
    world.beside = ("result.json",)
    world.at(5.0, *([] if code else [world.result]), lambda: world.end(code))

    assert LoopOutcome.FINAL == world.run(20)
    assert reason == world.condition["reason"]
    assert "looked for" not in world.condition["message"]


# Files beside ours


class Noise(DirectoryWatch):
    """File events: each draining takes one of the answers, which says whether it was ours."""

    def __init__(self, answers: Iterator[bool], clock: Callable[[], float]) -> None:
        super().__init__(None, 99, [], lambda _: None, clock)
        self._answers = answers

    def drain(self) -> bool:
        return next(self._answers)


def test_a_temporary_file_beside_the_result_does_not_hold_it_up() -> None:
    """It is written and renamed: the last of a few events is ours, and no time has passed."""

    def drains() -> Iterator[bool]:
        yield from (False, False, False)
        world.noisy = False
        world.result()
        yield True

    world = World("classic", events=Noise(drains(), lambda: world.now))
    world.at(9.0, lambda: setattr(world, "noisy", True))

    assert LoopOutcome.FINAL == world.run()
    assert (9.0, "R", True) == world.history[-1]


def test_a_busy_neighbour_does_not_keep_the_loop_busy() -> None:
    """Its events are taken twenty times a second at most, and bring no pass by themselves."""
    drained: list[float] = []

    def drains() -> Iterator[bool]:
        while True:
            drained.append(world.now)
            yield False

    world = World("classic", events=Noise(drains(), lambda: world.now))
    world.at(1.0, lambda: setattr(world, "noisy", True))
    world.run(21.0)

    assert 10 <= len(world.passes) <= 20
    assert 10 * BURST <= len(drained) <= 20 * (BURST + 40)
