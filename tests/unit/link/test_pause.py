"""The waits between the tries of a delivery once it has to hurry, with a scripted clock."""

import math
import threading

import pytest

from reporter.link.delivery import LEAST_TRY, Patience

MOVED = 5.0  # when the end becomes another one
WISH = 30.0  # of an aggregator


class World:
    """Seconds that pass while somebody sleeps, an end that moves, and a stop for good."""

    def __init__(self, before: float, after: float, closed: float = math.inf) -> None:
        self.now, self._closed = 0.0, closed
        self._before, self._after = before, after

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> bool:
        """Sleep as a wait for an event does that is set when `closed`."""
        end = self.now + seconds
        self.now = max(self.now, min(end, self._closed))
        return end >= self._closed

    def ends(self) -> float:
        return self._before if self.now < MOVED else self._after

    def patience(self) -> Patience:
        """A patience that lives in it."""
        hurry = threading.Event()
        hurry.set()
        return Patience(0.0, clock=self.clock, stop=hurry, sleep=self.sleep, ends=self.ends)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (math.inf, math.inf, WISH),
        (20.0, 20.0, 20.0 - LEAST_TRY),
        (math.inf, 12.0, 12.0 - LEAST_TRY),
        (20.0, 12.0, 12.0 - LEAST_TRY),
        (20.0, 25.0, 25.0 - LEAST_TRY),
        (20.0, MOVED + LEAST_TRY, MOVED),
        (20.0, MOVED - 1.0, MOVED),
        (0.5, 0.5, 0.0),
    ],
    ids=["none", "far", "known late", "nearer", "farther", "last try now", "over", "no time"],
)
def test_wait_that_an_end_cuts_whenever_it_is_known(
    before: float, after: float, expected: float
) -> None:
    """The last try has its time, also where a deletion with a shorter grace is seen meanwhile."""
    world = World(before, after)
    patience = world.patience()

    patience.pause(WISH)

    assert expected == world.now


def test_wait_of_somebody_who_is_closed() -> None:
    """The wait is over at once, before the end of all deliveries is told."""
    world = World(math.inf, math.inf, closed=7.1)
    patience = world.patience()

    patience.pause(WISH)

    assert 7.1 == world.now
