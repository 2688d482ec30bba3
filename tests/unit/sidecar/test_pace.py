"""When an attempt may write: what is held back, and how long a failure puts the next try off."""

import pytest

from reporter.errors import Conflict, Denied, Forbidden, InvalidRequest, KubeError, Unavailable
from reporter.sidecar.pace import FIRST_PATIENCE, PAUSE, Pace
from reporter.verdict.case import Observation
from reporter.verdict.condition import TEXT_PAUSE
from reporter.verdict.facts import FileAbsent, PodUnknown
from reporter.verdict.history import History

START = 100.0


def at(now: float, stopping_since: float | None = None) -> Observation:
    return Observation(
        now=now,
        pod=PodUnknown(),
        file=FileAbsent(),
        history=History(waiting_since=START, waiting_since_at=0.0),
        job=None,
        stopping_since=stopping_since,
    )


def longest() -> float:
    """Of every jitter the whole."""
    return 1.0


def test_the_first_try_may_be_made_at_once_and_the_adapter_may_still_be_about_to_start() -> None:
    pace = Pace(START, longest)

    assert pace.due(at(START))
    assert pace.starting(at(START + FIRST_PATIENCE - 0.1))
    assert not pace.starting(at(START + FIRST_PATIENCE))
    assert float("inf") == pace.since_write(at(START))


def test_after_a_write_only_what_is_revisable_waits() -> None:
    pace = Pace(START, longest)
    pace.put_off(START, Unavailable("no"), None)
    pace.written(START + 7)

    assert START + 7 + PAUSE == pace.next_try
    assert not pace.due(at(START + 7.9))
    assert pace.due(at(START + 7.9), final=True)
    assert pace.due(at(START + 8))
    assert 3.0 == pace.since_write(at(START + 10))
    assert [START + FIRST_PATIENCE, START + 7 + TEXT_PAUSE] == pace.moments()


@pytest.mark.parametrize(("left", "delay"), [(500.0, 5.0), (32.0, 4.0), (8.0, 1.0), (1.0, 0.5)])
def test_after_sigterm_tries_come_closer_towards_the_end(left: float, delay: float) -> None:
    pace = Pace(START, longest)
    for _ in range(8):
        pace.put_off(START, Unavailable("no"), left)

    assert START + delay == pace.next_try


def test_after_a_try_that_found_nothing_to_write_only_what_is_revisable_waits() -> None:
    pace = Pace(START, longest)
    pace.put_off(START, Unavailable("no"), None)
    pace.unneeded(START + 7)

    assert not pace.due(at(START + 7.9))
    assert pace.due(at(START + 7.9), final=True)
    assert pace.due(at(START + 7.9, stopping_since=START))
    assert pace.due(at(START + 8))


def test_a_try_that_found_nothing_to_write_does_not_shorten_the_back_off_of_what_is_refused() -> (
    None
):
    pace = Pace(START, longest)
    for _ in range(4):
        pace.put_off(START, Forbidden("no Role"), None)
        pace.unneeded(START)
    pace.put_off(START, Forbidden("no Role"), None)

    assert START + 16 == pace.next_try


def test_after_a_write_nothing_waits_while_stopping() -> None:
    pace = Pace(START, longest)
    for second in range(3):
        now = START + second / 10
        assert pace.due(at(now, stopping_since=START))
        pace.written(now)


@pytest.mark.parametrize(
    ("error", "left", "seconds"),
    [
        (Unavailable("no"), None, 0.1),
        (Unavailable("no", retry_after=4.0), None, 6.0),
        (Unavailable("no", retry_after=3600.0), None, 45.0),
        (Unavailable("no", retry_after=4.0), 1.5, 1.5),
        (Unavailable("no"), 0.0, 0.0),
        (Conflict("meanwhile"), None, 0.02),
        (InvalidRequest("wrong"), None, 1.5),
        (Forbidden("no Role"), None, 1.5),
        (Denied("webhook"), None, 1.5),
        (InvalidRequest("wrong"), 8.0, 1.5),
    ],
)
def test_a_failure_puts_the_next_try_off(
    error: KubeError, left: float | None, seconds: float
) -> None:
    """A conflict hardly, what is refused for long; never beyond the time that is left."""
    pace = Pace(START, longest)
    pace.put_off(START, error, left)

    assert START + seconds == pytest.approx(pace.next_try)
    assert not seconds or not pace.due(at(START + seconds - 0.01))
    assert pace.due(at(START + seconds + 0.01))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unavailable("no"), [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]),
        (Forbidden("no"), [1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
    ],
)
def test_each_failure_in_a_row_doubles_the_delay(error: KubeError, expected: list[float]) -> None:
    pace = Pace(START, longest)
    delays = []
    for _ in range(8):
        pace.put_off(START, error, None)
        delays.append(round(pace.next_try - START, 3))

    assert expected == delays


@pytest.mark.parametrize("by", [{"final": True}, {"stopping_since": START + 1}])
def test_a_final_verdict_and_sigterm_cut_one_back_off_short_and_no_second(by: dict) -> None:
    pace = Pace(START, longest)
    for _ in range(8):
        pace.put_off(START, InvalidRequest("wrong"), None)
    stopping = by.get("stopping_since")

    def due(now: float) -> bool:
        pace.hurry(at(now, stopping), final="final" in by)
        return pace.due(at(now, stopping), final="final" in by)

    assert not pace.due(at(START + 1))
    assert due(START + 1)
    pace.put_off(START + 1, InvalidRequest("wrong"), 10.0 if stopping else None)
    assert not due(START + 1.1)
    assert pace.next_try <= START + 2.5
