"""The pace of the reaper's requests, which is also its sign of life, and numbers in its options."""

from argparse import ArgumentParser
from collections.abc import Iterable

import pytest

from reporter.common.lifecycle import Stop, Wake
from reporter.reap.command import Pace, ReapStopped, arguments


class Clock(Wake):
    """A clock that the sleep until a turn moves on."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def wait(self, timeout: float | None, extra_fds: Iterable[int] = ()) -> set[int] | None:
        """Let the time pass."""
        assert timeout is not None
        self.now += timeout
        return set(extra_fds)


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    """Four requests a second by that clock."""
    return Pace(4.0, Stop(clock), clock)


def test_requests_keep_their_distance(clock: Clock, pace: Pace) -> None:
    """Also after a long pause: nothing is caught up."""
    begun = []
    for _ in range(3):
        pace()
        begun.append(clock.now)
    clock.now += 60
    for _ in range(2):
        pace()
        begun.append(clock.now)

    assert [100.0, 100.25, 100.5, 160.5, 160.75] == begun


def test_a_request_that_never_ends_is_silence(clock: Clock, pace: Pace) -> None:
    """The next one is due for longer than we wait for; a pass of any length is none."""
    for _ in range(100):
        pace()
        clock.now += 170
        assert not pace.silent(180)

    clock.now += 11
    assert pace.silent(180)
    pace()
    assert not pace.silent(180)


def test_nothing_is_asked_after_a_stop() -> None:
    """The turn that was waited for does not come either."""
    stop = Stop()
    pace = Pace(1.0, stop)
    pace()
    stop.request()
    with pytest.raises(ReapStopped):
        pace()


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [
        ("--qps", ["0.01", "1000"], ["0.009", "1000.1", "nan", "x"]),
        ("--metrics-port", ["0", "65535"], ["65536", "-1", "1e3", "000080", "٣"]),
    ],
)
def test_numbers_have_bounds(option: str, good: list[str], bad: list[str]) -> None:
    """What is outside is a usage error."""
    parser = ArgumentParser()
    arguments(parser)
    for each in good:
        assert float(each) in vars(parser.parse_args([option, each])).values()
    for each in bad:
        with pytest.raises(SystemExit):
            parser.parse_args([option, each])
