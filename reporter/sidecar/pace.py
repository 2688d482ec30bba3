"""When to write: what is held back, when to try again after a failure, and how much time is left.

Times are in seconds, readings of the caller's clock. The writes themselves are not known here.
"""

from collections.abc import Callable
from dataclasses import replace

from reporter.common.retry import next_delay
from reporter.errors import Conflict, Forbidden, InvalidRequest, KubeError
from reporter.verdict.case import LEAST_BUDGET, Case, Observation, Policy
from reporter.verdict.condition import TEXT_PAUSE

Clock = Callable[[], float]

FIRST_PATIENCE = 2.0  # a container usually starts this soon after ours: one write instead of two
PAUSE = 1.0  # between two revisable writes: a conflict costs the Job controller 1 s
REQUEST_TIMEOUT = 5.0
"""Seconds for a request: the API server answers in far less, and a pass is blocked meanwhile."""
LEAST_TIMEOUT = 0.2
"""Seconds for a request at the very end: with less none would have a chance."""
IDLE_TIMEOUT = 0.5
"""Seconds for a request after SIGTERM when all is written: nothing is lost by an early end."""


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
        longest = 60.0 if refused else 5.0
        if left is not None:  # thousands may end at once: often only towards the end
            longest = min(5.0, max(0.5, left / 8))
        delay = next_delay(
            self._failures,
            self._rng,
            retry_after=min(PAUSE, longest) if refused else error.retry_after,
            remaining=left,
            first=PAUSE if refused else 0.02 if isinstance(error, Conflict) else 0.1,
            longest=longest,
        )
        self.next_try = now + (delay or 0.0)


class TimeLeft:
    """The time of one attempt: `now` monotonic, `wall` since the epoch.

    No end is known before SIGTERM, which came when `stopped` says; then it follows from `last`, the
    newest observation. `idle` says that nothing is left to write.
    """

    def __init__(
        self, stopped: Callable[[], float | None], policy: Policy, now: Clock, wall: Clock
    ) -> None:
        self._stopped, self._policy = stopped, policy
        self.now, self.wall = now, wall
        self.last: Observation | None = None
        self.idle = False

    def _stopping(self) -> Case | None:
        """Return what is known now that SIGTERM has come; nothing before it."""
        stopped = self._stopped()
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
