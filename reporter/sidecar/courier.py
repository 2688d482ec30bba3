"""An aggregator as a place for reports: the adapter's progress, and at the end its result.

Nothing in here is waited for: a thread of its own carries what it is handed, and the caller says
how long it stays for the last delivery. The condition on the Job was written before.
"""

import random
import threading
import time
from collections.abc import Callable

from reporter.common.retry import next_delay
from reporter.errors import ReporterError
from reporter.link import AggregatorClient, Delivery
from reporter.link import Progress as Update
from reporter.verdict.facts import Progress

UPDATE_PAUSE = 2.0  # seconds between two updates; a newer one replaces what waits
LONGEST_PAUSE = 15.0
PROGRESS_FINAL = (403, 404, 410)
"""Answers after which no update can be of use: not ours, no such path, a closed run."""

Deliver = Callable[[], Delivery]
"""Makes the one delivery. May raise."""


class Courier:
    """Carries progress, and one delivery at the end; `start` it and `close` it.

    On the courier's thread `on_update` hears the status of each answer to progress (0 without one),
    and `on_delivery` of the end: the delivery (nothing where it could not even be tried), and what
    there is to say. `wake` is called once `done` is set.
    """

    def __init__(
        self,
        client: AggregatorClient,
        *,
        on_update: Callable[[int], None],
        on_delivery: Callable[[Delivery | None, str], None],
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._client, self._wake = client, wake
        self._on_update, self._on_delivery = on_update, on_delivery
        self._clock, self._rng = clock, rng
        self._changed = threading.Condition()
        self._newest: Progress | None = None
        self._wanted = True
        self._final: Deliver | None = None
        self._closed = False
        self._next_update = clock()
        self._failures, self._hung = 0, False
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self.done = threading.Event()  # the delivery is made, or given up

    @property
    def busy(self) -> bool:
        """Whether the delivery is on its way."""
        return self._final is not None and not self.done.is_set()

    def start(self) -> None:
        """Carry from now on."""
        self._thread.start()

    def progress(self, progress: Progress) -> None:
        """Take the newest progress; it replaces one that still waits."""
        with self._changed:
            self._newest = progress if self._wanted else None
            self._changed.notify()

    def conclude(self, deliver: Deliver) -> None:
        """Take the delivery; only the first one counts."""
        with self._changed:
            self._final = self._final or deliver
            self._changed.notify()

    def close(self) -> None:
        """Carry nothing more, and wait for what is on its way; its end is told to nobody."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closed and self._final is None and not self._due():
                    self._changed.wait(self._pause())
                if self._closed:
                    return
                newest, deliver = self._newest, self._final
                self._newest = None
            if newest is not None:
                # The delivery's time is short: no update that hung is tried again before it.
                if deliver is not None and self._hung:
                    self._newest = newest
                else:
                    self._update(newest)
            if deliver is not None:
                self._deliver(deliver)
                return

    def _due(self) -> bool:
        return self._newest is not None and self._clock() >= self._next_update

    def _pause(self) -> float | None:
        return None if self._newest is None else max(0.0, self._next_update - self._clock())

    def _update(self, progress: Progress) -> None:
        began = self._clock()
        try:
            status = self._client.post_progress(_update_of(progress)).status
        except Exception:  # of whatever kind: the delivery needs this thread
            status = 0
        self._hung = self._clock() - began >= UPDATE_PAUSE
        self._on_update(status)
        self._wanted = self._wanted and status not in PROGRESS_FINAL
        pause = UPDATE_PAUSE
        if status in {0, 429} or status >= 500:
            self._failures += 1
            delay = next_delay(self._failures, self._rng, first=UPDATE_PAUSE, longest=LONGEST_PAUSE)
            pause += delay or 0.0
            with self._changed:
                self._newest = self._newest or progress
        else:
            self._failures = 0
        self._next_update = self._clock() + pause

    def _deliver(self, deliver: Deliver) -> None:
        delivery, text = None, ""
        try:
            delivery = deliver()
            text = delivery.text
        except (ReporterError, OSError) as error:
            text = str(error)
        except Exception as error:
            # Who waits for this thread must not wait for one that has died.
            text = f"{type(error).__name__}: {error}"
        if not self._closed:
            self._on_delivery(delivery, text)
        self.done.set()
        self._wake()
        if delivery is not None and delivery.delivered and self._newest is not None:
            # The aggregator was away when this came, and is back. Nobody waits for it.
            self._update(self._newest)


def _update_of(progress: Progress) -> Update:
    return Update(
        msg=progress.msg,
        total=progress.total or 0,
        completed=progress.completed or 0,
        failures=progress.failures,
        errors=progress.errors,
    )
