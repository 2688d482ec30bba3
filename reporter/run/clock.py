"""The clock of a run, which nobody sets."""

from __future__ import annotations

from collections.abc import Callable


class RunClock:
    """Unix time when the run began, and from there on seconds that pass, over restarts too.

    `clock` is monotonic, `wall` Unix time. A step of the wall clock moves nothing: all times of a
    run but those of the API server, of certificates and of URLs are by this clock.
    """

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self.clock, self.wall = clock, wall
        self._ahead = wall() - clock()

    def __call__(self) -> float:
        """Return the time."""
        return self._ahead + self.clock()

    def resume(self, at: float, wall: float) -> None:
        """Go on from a process's last sign of life: `at` by this clock, `wall` by the other."""
        self._ahead = at + max(0.0, self.wall() - wall) - self.clock()

    @property
    def skew(self) -> int:
        """By how many seconds it is ahead of the wall clock: not 0 once that was set."""
        return round(self() - self.wall())
