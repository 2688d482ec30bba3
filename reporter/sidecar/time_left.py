"""How much time is left: no end is known before SIGTERM, and then the kubelet sets one."""

from collections.abc import Callable
from dataclasses import replace

from reporter.common.lifecycle import Stop
from reporter.verdict.case import LEAST_BUDGET, Case, Observation, Policy

REQUEST_TIMEOUT = 5.0
"""Seconds for a request: the API server answers in far less, and a pass is blocked meanwhile."""
LEAST_TIMEOUT = 0.2
"""Seconds for a request at the very end: with less none would have a chance."""
IDLE_TIMEOUT = 0.5
"""Seconds for a request after SIGTERM when all is written: nothing is lost by an early end."""


class TimeLeft:
    """The time of one attempt: `now` monotonic, `wall` since the epoch, all in seconds.

    `last` is the newest observation, from which the end follows; `idle` says that nothing is left
    to write.
    """

    def __init__(
        self, stop: Stop, policy: Policy, now: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self._stop, self._policy = stop, policy
        self.now, self.wall = now, wall
        self.last: Observation | None = None
        self.idle = False

    def _stopping(self) -> Case | None:
        """Return what is known now that SIGTERM has come; nothing before it."""
        stopped = self._stop.requested_at
        if stopped is None or self.last is None:
            return None
        return Case(replace(self.last, stopping_since=stopped), self._policy)

    @property
    def write_end(self) -> float:
        """Until when a write that is under way at SIGTERM may go on; -inf before it.

        The rest is enough for another one.
        """
        case = self._stopping()
        return case.stop_deadline - LEAST_BUDGET if case else float("-inf")

    def left(self, keep: float = 0.0) -> float | None:
        """Return the seconds until the next end that is ahead after SIGTERM; nothing before it.

        The kubelet may end this process at the first; where the Pod was never seen, writing goes on
        until the second. `keep`: an end comes so many seconds before the first, too.
        """
        case = self._stopping()
        if case is None:
            return None
        first, now = case.stop_deadline, self.now()
        return next((end for end in (first - keep, first) if end > now), case.write_until) - now

    def ends_within(self, seconds: float) -> bool:
        """Return whether the kubelet may end this process so soon."""
        case = self._stopping()
        return case is not None and self.now() >= case.stop_deadline - seconds

    def for_request(self) -> float:
        """Return how long a request may take: after SIGTERM there has to be time for another."""
        left = self.left()
        if left is None:
            return REQUEST_TIMEOUT
        longest = IDLE_TIMEOUT if self.idle else REQUEST_TIMEOUT
        return min(longest, max(LEAST_TIMEOUT, left / 2))
