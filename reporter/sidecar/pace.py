"""When to write: what is held back for a moment, and when to try again after a failure.

Times are readings of the caller's clock, in seconds. The writes themselves are not known here.
"""

from collections.abc import Callable

from reporter.common.retry import next_delay
from reporter.errors import Conflict, Forbidden, InvalidRequest, KubeError
from reporter.verdict.case import Observation
from reporter.verdict.condition import TEXT_PAUSE

FIRST_PATIENCE = 2.0  # a container usually starts this soon after ours: one write instead of two
PAUSE = 1.0  # between two revisable writes: a conflict costs the Job controller 1 s


class Pace:
    """The pace of one attempt's writes, begun at `now`; the next try may be made at `next_try`.

    `rng` gives numbers in [0, 1).
    """

    def __init__(self, now: float, rng: Callable[[], float]) -> None:
        self._rng = rng
        self._began = self.next_try = now
        self._written_at = float("-inf")
        self._failures = self._urgency = 0
        self._refused = False  # by the last failure

    def hurry(self, o: Observation, *, final: bool = False) -> None:
        """End a back-off that is under way, once for each reason.

        SIGTERM does not sit out an old one, nor the first final verdict one of a minute.
        """
        urgency = 2 if o.stopping_since is not None else int(final and self._refused)
        if self._failures and urgency > self._urgency:
            self._urgency, self._failures, self.next_try = urgency, 0, o.now

    def due(self, o: Observation, *, final: bool = False) -> bool:
        """Return whether the next try may be made now."""
        urgent = final or o.stopping_since is not None
        return (urgent and not self._failures) or o.now >= self.next_try

    def starting(self, o: Observation) -> bool:
        """Return whether the adapter may still be about to start."""
        return o.now < self._began + FIRST_PATIENCE

    def since_write(self, o: Observation) -> float:
        """Return the seconds since the last write; infinity before the first."""
        return o.now - self._written_at

    def moments(self) -> list[float]:
        """Return when what is held back now may be written."""
        return [self._began + FIRST_PATIENCE, self._written_at + TEXT_PAUSE]

    def written(self, now: float, *, final: bool = False) -> None:
        """Note that a write was accepted; what is added to a final one need not wait."""
        self._failures = 0
        self._written_at, self.next_try = now, now if final else now + PAUSE

    def unneeded(self, now: float) -> None:
        """Note that a try found nothing to write: what is revisable waits as after a write."""
        if not self._refused:
            self._failures = 0
        self.next_try = now + PAUSE

    def put_off(self, now: float, error: KubeError, left: float | None) -> None:
        """Back off after a failure; `left` are the seconds until the end, None before SIGTERM."""
        self._failures += 1
        # A write may be forbidden or wrong for days, and in thousands of Pods.
        refused = self._refused = isinstance(error, Forbidden | InvalidRequest)
        longest = 0.5 if left is not None else 60.0 if refused else 5.0
        delay = next_delay(
            self._failures,
            self._rng,
            retry_after=min(PAUSE, longest) if refused else error.retry_after,
            remaining=left,
            first=PAUSE if refused else 0.02 if isinstance(error, Conflict) else 0.1,
            longest=longest,
        )
        self.next_try = now + (delay or 0.0)
