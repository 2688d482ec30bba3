"""When to try again: what an answer means, how long to wait, when to stop. Pure functions."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from reporter.common.retry import next_delay

FIRST_STEP, LONGEST_STEP = 1.0, 15.0
UNREACHABLE_SECONDS = 600.0
"""Without any answer of 500 or above a delivery is tried so long: a Pod may be moving."""
UNTRUSTED_TRIES = 3
LEAST_TRY = 1.0
"""A try that has less time than this before the caller's end is not worth beginning."""


class Meaning(Enum):
    """What a status means for a delivery."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    RETRY = "retry"
    FINAL = "final"


_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 507})


def meaning(status: int) -> Meaning:
    """Return what the status of an answer means for a delivery.

    Only 200 is a success: an aggregator answers 200 when the bytes are safe, so a 201 or 204 came
    from something else. A redirect is final for the same reason.
    """
    match status:
        case 200:
            return Meaning.ACCEPTED
        case 409:
            return Meaning.DUPLICATE
        case _:
            return Meaning.RETRY if status in _AGAIN else Meaning.FINAL


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of a delivery so far. Times are of one clock, in seconds."""

    started: float
    attempts: int = 0
    untrusted: int = 0
    refused_at: float | None = None
    """The first answer of 500 or above: it opened the aggregator's retry window."""

    def failed(self, status: int | None, now: float) -> "Tries":
        """Return them with one more try, answered with this status or not at all."""
        refused = now if status is not None and status >= 500 else None
        first = refused if self.refused_at is None else self.refused_at
        return replace(self, attempts=self.attempts + 1, refused_at=first)

    def excused(self, seconds: float) -> "Tries":
        """Return them without so many seconds: a busy aggregator is not a failure."""
        refused = None if self.refused_at is None else self.refused_at + seconds
        return replace(self, started=self.started + seconds, refused_at=refused)

    def mistrusted(self) -> "Tries":
        """Return them with one more handshake whose certificate is not trusted."""
        return replace(self, attempts=self.attempts + 1, untrusted=self.untrusted + 1)

    @property
    def hopeless(self) -> bool:
        """Whether the aggregator has failed to prove itself too often."""
        return self.untrusted >= UNTRUSTED_TRIES

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
        remaining = min(self.last_start(window) - now, left - LEAST_TRY)
        return next_delay(
            self.attempts,
            rng,
            retry_after=retry_after,
            remaining=remaining,
            first=FIRST_STEP,
            longest=LONGEST_STEP,
        )
