"""When a worker says that it is alive, and when it no longer does."""

import threading
from typing import Any

import pytest

from reporter.link.connection import NoAnswer
from reporter.link.heart import Heart
from reporter.link.messages import Beat

BOUND = 30.0


class Pauses(threading.Event):
    """Records the pauses instead of waiting; over after so many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.waited = most, [0.0]
        self.waited.clear()

    def wait(self, timeout: float | None = None) -> bool:
        if self.is_set() or len(self.waited) == self.most:
            return True
        self.waited.append(timeout or 0.0)
        return False


class Aggregator:
    """Answers from a list, the last one again and again."""

    def __init__(self, *answers: Beat | Exception) -> None:
        self._answers = list(answers) or [Beat(200)]
        self.beats = 0

    def heartbeat(self) -> Beat:
        self.beats += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def beat(aggregator: Aggregator, pauses: Pauses, *rolls: float) -> list[tuple[str, dict[str, Any]]]:
    """Let it beat until the pauses are over; return what it said."""
    told: list[tuple[str, dict[str, Any]]] = []
    left = list(rolls) or [0.5]
    heart = Heart(
        aggregator,
        on_event=lambda event, facts: told.append((event, facts)),
        rng=lambda: left.pop(0) if len(left) > 1 else left[0],
        over=pauses,
    )
    heart.start()
    # It ends by itself; `close` alone could come before its first beat.
    heart._thread.join(BOUND)
    heart.close()
    return told


@pytest.mark.parametrize(
    ("rolls", "expected"),
    [
        ((0.5,), [7.5, 15.0, 15.0, 15.0]),
        ((0.0,), [0.0, 13.5, 13.5, 13.5]),
        ((0.25, 0.0, 1.0, 0.5), [3.75, 13.5, 16.5, 15.0]),
    ],
)
def test_about_fifteen_seconds_apart(rolls: tuple[float, ...], expected: list[float]) -> None:
    """W20: the first after a random part of that, so that a run's workers do not beat as one."""
    aggregator, pauses = Aggregator(), Pauses(4)

    beat(aggregator, pauses, *rolls)

    assert pytest.approx(expected) == pauses.waited
    assert 4 == aggregator.beats


def test_the_aggregators_interval_is_followed() -> None:
    """A full run asks for fewer; a worker that beats as it likes may be taken for lost."""
    answers = [Beat(200, 5.0), NoAnswer("refused"), Beat(503, 60.0), Beat(200), Beat(200, 25.0)]
    pauses = Pauses(7)

    beat(Aggregator(*answers), pauses)

    assert pytest.approx([7.5, 5.0, 5.0, 5.0, 5.0, 25.0, 25.0]) == pauses.waited


@pytest.mark.parametrize("status", [404, 410])
def test_no_more_where_none_are_wanted(status: int) -> None:
    """W20: one 404 is enough; a closed run does not open again."""
    aggregator = Aggregator(Beat(status))

    told = beat(aggregator, Pauses(10))

    assert 1 == aggregator.beats
    assert [("heartbeats_end", {"status": status})] == told


@pytest.mark.parametrize("status", [403, 500, 503])
def test_any_other_answer_is_said_and_ends_nothing(status: int) -> None:
    """W20: somebody can put it right in time, so the next one is sent too."""
    aggregator = Aggregator(Beat(status))

    told = beat(aggregator, Pauses(10))

    assert 10 == aggregator.beats
    assert [("heartbeat_refused", {"status": status})] == told


def test_no_answer_is_said_once_until_it_works_again() -> None:
    """W20: an aggregator that is away for a night must not fill the log.

    Before the first answer the client says why there is none.
    """
    away = NoAnswer("refused")
    aggregator = Aggregator(away, away, away, Beat(200), away, away, Beat(200))

    told = beat(aggregator, Pauses(8))

    assert ["heartbeat_unanswered"] == [event for event, _ in told]
    assert 8 == aggregator.beats


def test_new_trouble_is_said_too() -> None:
    """W20: one line for each kind in a row, whatever it was before."""
    away = NoAnswer("refused")
    aggregator = Aggregator(away, Beat(503), Beat(503), Beat(403), away, Beat(200), Beat(403))

    told = beat(aggregator, Pauses(7))

    assert [503, 403, None, 403] == [facts.get("status") for _, facts in told]


def test_an_end_does_not_wait_for_the_next_beat() -> None:
    """W20: the result is delivered, and the worker has nothing left to say."""
    heart = Heart(Aggregator(), interval=3600.0)
    heart.start()
    heart.close()
