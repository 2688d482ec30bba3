"""When an attempt may write: what is held back, and how long a failure puts the next try off."""

import pytest

from reporter.core.case import Observation
from reporter.core.condition import TEXT_PAUSE
from reporter.core.facts import PodUnknown
from reporter.core.memory import Memory
from reporter.core.pace import FIRST_PATIENCE, REPEAT_PAUSE, Pace
from reporter.core.payloads import FileAbsent
from reporter.errors import Conflict, InvalidRequest, KubeError, Unavailable

START = 100.0


def at(now: float, stopping_since: float | None = None) -> Observation:
    return Observation(
        now=now,
        pod=PodUnknown(),
        file=FileAbsent(),
        memory=Memory(waiting_since=START, waiting_since_at=0.0),
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


def test_after_a_write_the_next_moments_are_those_of_the_two_pauses() -> None:
    pace = Pace(START, longest)
    pace.put_off(START, Unavailable("no"), None)
    pace.written(START + 7)

    assert pace.due(at(START + 7))
    assert 3.0 == pace.since_write(at(START + 10))
    assert [START + FIRST_PATIENCE, START + 7 + REPEAT_PAUSE, START + 7 + TEXT_PAUSE] == (
        pace.moments()
    )


@pytest.mark.parametrize(
    ("error", "left", "seconds"),
    [
        (Unavailable("no"), None, 0.1),
        (Unavailable("no", retry_after=4.0), None, 4.0),
        (Unavailable("no", retry_after=4.0), 1.5, 1.5),
        (Unavailable("no"), 0.0, 0.0),
        (Conflict("meanwhile"), None, 0.02),
        (InvalidRequest("wrong"), None, 5.0),
        (InvalidRequest("wrong"), 10.0, 0.5),
    ],
)
def test_a_failure_puts_the_next_try_off(
    error: KubeError, left: float | None, seconds: float
) -> None:
    """A conflict hardly, what is wrong for long; never beyond the time that is left."""
    pace = Pace(START, longest)
    pace.put_off(START, error, left)

    assert START + seconds == pytest.approx(pace.next_try)
    assert not seconds or not pace.due(at(START + seconds - 0.01))
    assert pace.due(at(START + seconds + 0.01))


def test_each_failure_in_a_row_doubles_the_delay() -> None:
    pace = Pace(START, longest)
    delays = []
    for _ in range(8):
        pace.put_off(START, Unavailable("no"), None)
        delays.append(round(pace.next_try - START, 3))

    assert [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0] == delays


def test_sigterm_cuts_one_back_off_short_and_no_second() -> None:
    pace = Pace(START, longest)
    pace.put_off(START, InvalidRequest("wrong"), None)

    assert not pace.due(at(START + 1))
    assert pace.due(at(START + 1, stopping_since=START + 1))
    pace.put_off(START + 1, InvalidRequest("wrong"), 10.0)
    assert not pace.due(at(START + 1.1, stopping_since=START + 1))
