"""A clock that only waiting moves, and a stop event that lives by it."""

import math
from collections.abc import Callable

FOR_EVER = 10_000.0


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
        self._plans.sort(key=lambda plan: plan[0])

    def stop(self) -> None:
        """Do what a SIGTERM does."""
        self.stop_at = self.elapsed

    def is_set(self) -> bool:
        """The stop event."""
        return self.elapsed >= self.stop_at

    def wait(self, timeout: float) -> bool:
        """Wait on the stop event."""
        self._pass(min(timeout, max(0.0, self.stop_at - self.elapsed)), self.is_set)
        return self.is_set()

    def sleep(self, seconds: float) -> None:
        """Wait for no event."""
        self._pass(seconds, lambda: False)

    def _pass(self, seconds: float, over: Callable[[], bool]) -> None:
        self.waits.append(seconds)
        end = self.now + seconds
        assert end - self.start < FOR_EVER
        while not over() and self._plans and self._plans[0][0] <= end - self.start:
            when, do = self._plans.pop(0)
            self.now = max(self.now, self.start + when)
            do()
        if not over():
            self.now = end
