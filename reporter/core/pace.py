"""When to write: what is held back for a moment, and when to try again after a failure.

Times are readings of the caller's clock, in seconds. What is written is not known here.
"""

from collections.abc import Callable

from reporter.core.case import Observation
from reporter.core.condition import TEXT_PAUSE
from reporter.core.retry import next_delay
from reporter.errors import Conflict, InvalidRequest, KubeError

FIRST_PATIENCE = 2.0  # a container usually starts this soon after ours: one write instead of two
REPEAT_PAUSE = 1.0  # between two writes of one revisable row: a conflict costs the controller 1 s


class Pace:
    """The pace of one attempt's writes, begun at `now`; the next try may be made at `next_try`.

    `rng` gives numbers in [0, 1).
    """

    def __init__(self, now: float, rng: Callable[[], float]) -> None:
        self._rng = rng
        self._began = self.next_try = now
        self._written_at = float("-inf")
        self._failures = 0
        self._hurried = False

    def due(self, o: Observation) -> bool:
        """Return whether the next try may be made now."""
        if o.now >= self.next_try:
            return True
        # SIGTERM has come: there is no time to sit out an old back-off.
        hurry = o.stopping_since is not None and not self._hurried
        self._hurried = self._hurried or hurry
        return hurry

    def starting(self, o: Observation) -> bool:
        """Return whether the adapter may still be about to start."""
        return o.now < self._began + FIRST_PATIENCE

    def since_write(self, o: Observation) -> float:
        """Return the seconds since the last write; infinity before the first."""
        return o.now - self._written_at

    def moments(self) -> list[float]:
        """Return when what is held back now may be written."""
        pauses = (self._written_at + REPEAT_PAUSE, self._written_at + TEXT_PAUSE)
        return [self._began + FIRST_PATIENCE, *pauses]

    def written(self, now: float) -> None:
        """Note that a write was accepted."""
        self._failures = 0
        self.next_try = self._written_at = now

    def put_off(self, now: float, error: KubeError, left: float | None) -> None:
        """Back off after a failure; `left` are the seconds until the end, None before SIGTERM."""
        self._failures += 1
        longest = 5.0 if left is None else 0.5
        delay = next_delay(
            self._failures,
            self._rng,
            retry_after=error.retry_after,
            remaining=left,
            first=0.02 if isinstance(error, Conflict) else 0.1,
            longest=longest,
        )
        # What the server refuses as wrong is not tried again soon.
        slow = longest if isinstance(error, InvalidRequest) else 0.0
        self.next_try = now + max(delay or 0.0, slow)
