"""When a delivery is tried again: what an answer means, how long to wait, how much time is left."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reporter.common.retry import next_delay
from reporter.link.messages import Outcome

FIRST_STEP, LONGEST_STEP = 1.0, 15.0
UNREACHABLE_SECONDS = 600.0
"""Without any answer of 500 or above a delivery is tried so long: a Pod may be moving."""
EXCUSED_SECONDS = 1860.0
"""Tries without an answer may have waited their turn: so much of their time does not count."""
UNTRUSTED_TRIES = 3
LEAST_TRY = 1.0
"""A try that has less time than this before the caller's end is not worth beginning."""
LEAVE_SECONDS = 2.0
"""Seconds of the grace period in which the process ends."""
SLICE_SECONDS = 0.25
"""How often a wait after a stop looks whether its end has moved: what the last try may lose."""
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 507})

Event = Callable[[str, dict[str, Any]], None]


def outcome_of(status: int) -> Outcome | None:
    """Return what the status of an answer means for a delivery; None: try again.

    Only 200 is a success: an aggregator answers 200 when the bytes are safe, so a 201 or 204 came
    from something else. A redirect is final for the same reason.
    """
    if status in _AGAIN:
        return None
    return {200: Outcome.ACCEPTED, 409: Outcome.DUPLICATE}.get(status, Outcome.REFUSED)


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of a delivery so far. Times are of one clock, in seconds."""

    started: float
    attempts: int = 0
    untrusted: int = 0
    refused_at: float | None = None
    """The first answer of 500 or above: it opened the aggregator's retry window."""
    excused: float = 0.0
    """The seconds of tries without an answer by which these times were moved."""

    def answered(self, status: int, now: float) -> "Tries":
        """Return them with one more try, answered with this status."""
        refused = now if status >= 500 and self.refused_at is None else self.refused_at
        return replace(self, attempts=self.attempts + 1, refused_at=refused)

    def unanswered(self, seconds: float) -> "Tries":
        """Return them with one more try that had no answer after so many seconds."""
        excuse = min(seconds, EXCUSED_SECONDS - self.excused)
        return replace(
            self,
            attempts=self.attempts + 1,
            started=self.started + excuse,
            refused_at=None if self.refused_at is None else self.refused_at + excuse,
            excused=self.excused + excuse,
        )

    def turned_away(self, now: float) -> "Tries":
        """Return them with one more try, for which a busy aggregator had no room.

        That is not a failure, and what was before it does not count any more.
        """
        return Tries(now, self.attempts + 1, self.untrusted)

    def mistrusted(self) -> "Tries":
        """Return them with one more handshake whose certificate is not trusted."""
        return replace(self, attempts=self.attempts + 1, untrusted=self.untrusted + 1)

    def last_start(self, window: float) -> float:
        """When the last try may begin."""
        end = self.started + UNREACHABLE_SECONDS
        return end if self.refused_at is None else min(end, self.refused_at + window)

    def delay(
        self,
        now: float,
        rng: Callable[[], float],
        *,
        window: float,
        retry_after: float | None = None,
        left: float = math.inf,
    ) -> float | None:
        """Return the seconds to wait before the next try; nothing means give up.

        `window` is how long the aggregator waits for a retry after its first refusal,
        `retry_after` its wish, `left` the seconds until the caller's own end.
        """
        return next_delay(
            self.attempts,
            rng,
            retry_after=retry_after,
            remaining=min(self.last_start(window) - now, left - LEAST_TRY),
            first=FIRST_STEP,
            longest=LONGEST_STEP,
        )


class Stop(Protocol):
    """A `threading.Event`, or something like it."""

    def is_set(self) -> bool:
        """Return whether to end."""

    def wait(self, timeout: float) -> bool:
        """Sleep for so many seconds, or until there is a reason to end."""


class Patience:
    """How much time there is, and waits that end with it. All deliveries of a client share it.

    After a stop that is `grace` seconds, less what it takes to leave. `ends` tells the end instead,
    by the clock, whether or not there was a stop; what it tells may change at any time.
    """

    def __init__(
        self,
        grace: float,
        *,
        clock: Callable[[], float],
        stop: Stop | None,
        sleep: Callable[[float], object],
        ends: Callable[[], float] | None = None,
    ) -> None:
        self.clock, self._stop, self._sleep = clock, stop or threading.Event(), sleep
        self._grace, self._ends = grace, ends or self._end_of_grace
        self._stopped_at: float | None = None
        self._over = False

    def end(self) -> None:
        """Leave no time for anything more."""
        self._over = True

    def pause(self, seconds: float) -> None:
        """Wait. A stop during the wait ends it; a stop before it does not, but may shorten it."""
        if not self._stop.is_set():
            self._stop.wait(seconds)
            return
        until = self.clock() + seconds
        while (rest := min(until - self.clock(), self.left() - LEAST_TRY)) > 0:
            if self._sleep(min(rest, SLICE_SECONDS)):
                return

    def left(self) -> float:
        """Return the seconds left until the end of all deliveries; infinite before a stop."""
        return 0.0 if self._over else self._ends() - self.clock()

    def _end_of_grace(self) -> float:
        if not self._stop.is_set():
            return math.inf
        # Two threads may see the stop first; they see it at the same time.
        self._stopped_at = self._stopped_at or self.clock()
        return self._stopped_at + self._grace - LEAVE_SECONDS
