"""The loop of a delivery: try, see what the answer means, wait, try again, stop.

The meaning of an answer and the time to wait are in `policy.py`; what a try does is the caller's.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from reporter.link.answers import AggregatorAnswer, Delivery, Outcome
from reporter.link.exchange import NoAnswer
from reporter.link.policy import LEAST_TRY, Meaning, Tries, meaning
from reporter.link.source import SourceChanged
from reporter.link.trust import TrustError

LEAVE_SECONDS = 2.0
"""Seconds of the grace period in which the process ends."""

SLICE_SECONDS = 0.25
"""How often a wait after a stop looks whether its end has moved: what the last try may lose."""

Left = Callable[[], float]
"""Tells the seconds left; infinite without an end."""
Event = Callable[[str, dict[str, Any]], None]


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
        self.clock, self._ends = clock, ends
        self._grace, self._stop, self._sleep = grace, stop or threading.Event(), sleep
        self._lock = threading.Lock()
        self._stopped_at: float | None = None
        self._over = False

    def end(self) -> None:
        """Leave no time for anything more."""
        self._over = True

    def pause(self, seconds: float, left: Left) -> None:
        """Wait. A stop during the wait ends it; a stop before it does not, but may shorten it."""
        if not self._stop.is_set():
            self._stop.wait(seconds)
            return
        until = self.clock() + seconds
        while (rest := min(until - self.clock(), left() - LEAST_TRY)) > 0:
            if self._sleep(min(rest, SLICE_SECONDS)):
                return

    def until(self, end: float | None) -> Left:
        """Return what gives the seconds left until `end`, or until the end of all deliveries."""

        def left() -> float:
            if self._over:
                return 0.0
            now = self.clock()
            within = math.inf if end is None else end - now
            if self._ends is not None:
                return min(within, self._ends() - now)
            if not self._stop.is_set():
                return within
            with self._lock:
                if self._stopped_at is None:
                    self._stopped_at = now
            return min(within, self._stopped_at + self._grace - LEAVE_SECONDS - now)

        return left


@dataclass(slots=True)
class Parcel:
    """What is being delivered. `put` makes one try; `digest` is of what it sends, in hex."""

    put: Callable[[Left], AggregatorAnswer]
    digest: Callable[[], str]


def deliver(
    parcel: Parcel,
    patience: Patience,
    *,
    window: float,
    budget: float | None,
    rng: Callable[[], float],
    on_event: Event,
) -> Delivery:
    """Try until the delivery is settled, or until another try cannot help.

    `window` and `budget` in seconds; the time that a busy aggregator takes counts only for
    `budget`. Raises `TrustError` once the aggregator has failed to prove itself often enough, and
    what `parcel.put` raises beside `NoAnswer`.
    """
    started = patience.clock()
    left = patience.until(None if budget is None else started + budget)
    tries = Tries(started)
    while True:
        answer, began = None, patience.clock()
        try:
            answer = parcel.put(left)
        except TrustError as error:
            tries, trouble = tries.mistrusted(), str(error)
            if tries.hopeless:
                raise
        except (NoAnswer, SourceChanged) as error:
            tries, trouble = tries.failed(None, patience.clock()), str(error)
        else:
            refusal = None if answer.busy else answer.status
            tries, trouble = tries.failed(refusal, patience.clock()), answer.line
            if delivery := _settled(answer, tries.attempts, parcel.digest(), on_event):
                return delivery
        status = answer.status if answer else 0
        busy = answer is not None and answer.busy
        if busy:
            tries = tries.excused(patience.clock() - began)
        delay = tries.delay(
            patience.clock(),
            rng,
            window=window,
            retry_after=answer.retry_after if answer else None,
            left=left(),
        )
        if delay is None:
            return Delivery(Outcome.GAVE_UP, status, tries.attempts, parcel.digest(), trouble)
        facts = {"attempt": tries.attempts, "status": status, "trouble": trouble, "delay": delay}
        on_event("retry", facts)
        began = patience.clock()
        patience.pause(delay, left)
        if busy:
            tries = tries.excused(patience.clock() - began)


def _settled(
    answer: AggregatorAnswer, attempts: int, ours: str, on_event: Event
) -> Delivery | None:
    """Return what an answer ends the delivery with, or None if it does not end it."""
    match meaning(answer.status):
        case Meaning.ACCEPTED:
            return Delivery(Outcome.ACCEPTED, answer.status, attempts, ours, "", answer.digest)
        case Meaning.DUPLICATE:
            if answer.digest and answer.digest != ours:
                on_event("another_result_held", {"ours": ours, "held": answer.digest})
            return Delivery(
                Outcome.DUPLICATE, answer.status, attempts, ours, answer.line, answer.digest
            )
        case Meaning.FINAL:
            return Delivery(Outcome.REFUSED, answer.status, attempts, ours, answer.line)
        case Meaning.RETRY:
            return None
