"""A clock that only waiting moves, and a stop event that lives by it."""

import math
from collections.abc import Callable


class FakeTime:
    """Clock, stop event and sleep in one; `waits` lists what was waited for.

    `at` runs something once the clock has come so far. `stop_at` sets the stop event then.
    """

    def __init__(self, start: float = 1000.0) -> None:
        self.now = self.start = start
        self.waits: list[float] = []
        self.stop_at = math.inf
        self._plans: list[tuple[float, Callable[[], object]]] = []

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.now - self.start

    def clock(self) -> float:
        """Monotonic seconds."""
        return self.now

    def at(self, elapsed: float, do: Callable[[], object]) -> None:
        """Do something when so many seconds have passed."""
        self._plans.append((elapsed, do))

    def is_set(self) -> bool:
        """The stop event."""
        return self.elapsed >= self.stop_at

    def wait(self, timeout: float) -> bool:
        """Wait on the stop event."""
        self._pass(min(timeout, max(0.0, self.stop_at - self.elapsed)))
        return self.is_set()

    def sleep(self, seconds: float) -> None:
        """Wait for no event."""
        self._pass(seconds)

    def _pass(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        due = [plan for plan in self._plans if plan[0] <= self.elapsed]
        self._plans = [plan for plan in self._plans if plan not in due]
        for _, do in due:
            do()
