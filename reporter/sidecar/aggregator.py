"""An aggregator as a place for reports: the adapter's progress, and at the end its result.

Nothing in here is waited for: a thread of its own carries what it is handed, and the caller says
how long it stays for the last delivery. The condition on the Job was written before.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reporter.common.retry import next_delay
from reporter.errors import ReporterError
from reporter.link import Delivery, Reply, ResultSource
from reporter.link import Progress as Update
from reporter.verdict.payloads import ADAPTER_RESULT, Progress

UPDATE_PAUSE = 2.0  # seconds between two updates; a newer one replaces what waits
LONGEST_PAUSE = 15.0
PROGRESS_FINAL = (403, 404, 410)
"""Answers after which no update can be of use: not ours, no such path, a closed run."""
JSON = "application/json"

Event = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The adapter's own word: the bytes of its result file, under its name."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ReporterVerdict:
    """A verdict of the reporter's own: message, reason, and the evidence as JSON values.

    `unknown`: the work has neither succeeded nor failed, as far as can be told.
    """

    text: str
    cause: str
    evidence: Mapping[str, Any]
    unknown: bool = False


Parcel = Result | ReporterVerdict


class Client(Protocol):
    """What this sink needs of `AggregatorClient`. Every method may raise ReporterError, OSError."""

    def put_result(self, source: ResultSource, *, result_format: str = "") -> Delivery:
        """Deliver a result."""

    def report_error(
        self,
        text: str,
        cause: str,
        *,
        evidence: Mapping[str, Any] | None = None,
        result_format: str = "",
    ) -> Delivery:
        """Deliver an error report."""

    def post_progress(self, update: Update) -> Reply:
        """Send one update, once."""


class Courier:
    """Carries progress and one parcel; `start` it and `close` it.

    `on_event` hears on the courier's thread: `progress` with `status`, `delivered` and `lost` with
    `delivery` (nothing where it could not even be tried) and `text`. `wake` is called once `done`
    is set.
    """

    def __init__(
        self,
        client: Client,
        *,
        on_event: Event,
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._client, self._on_event, self._wake = client, on_event, wake
        self._clock, self._rng = clock, rng
        self._changed = threading.Condition()
        self._newest: Progress | None = None
        self._wanted = True
        self._parcel: Parcel | None = None
        self._closed = False
        self._next_update = clock()
        self._failures, self._hung = 0, False
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        self.done = threading.Event()  # the parcel is delivered, or given up

    @property
    def busy(self) -> bool:
        """Whether a parcel is on its way."""
        return self._parcel is not None and not self.done.is_set()

    def start(self) -> None:
        """Carry from now on."""
        self._thread.start()

    def progress(self, progress: Progress) -> None:
        """Take the newest progress; it replaces one that still waits."""
        with self._changed:
            self._newest = progress if self._wanted else None
            self._changed.notify()

    def conclude(self, parcel: Parcel) -> None:
        """Take the parcel; only the first one counts."""
        with self._changed:
            self._parcel = self._parcel or parcel
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
                while not self._closed and self._parcel is None and not self._due():
                    self._changed.wait(self._pause())
                if self._closed:
                    return
                newest, parcel = self._newest, self._parcel
                self._newest = None
            if newest is not None:
                # The parcel's time is short: no update that hung is tried once more before it.
                if parcel is not None and self._hung:
                    self._newest = newest
                else:
                    self._update(newest)
            if parcel is not None:
                self._deliver(parcel)
                return

    def _due(self) -> bool:
        return self._newest is not None and self._clock() >= self._next_update

    def _pause(self) -> float | None:
        return None if self._newest is None else max(0.0, self._next_update - self._clock())

    def _update(self, progress: Progress) -> None:
        began = self._clock()
        try:
            status = self._client.post_progress(_update_of(progress)).status
        except Exception:  # of whatever kind: the parcel needs this thread
            status = 0
        self._hung = self._clock() - began >= UPDATE_PAUSE
        self._on_event("progress", {"status": status})
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

    def _deliver(self, parcel: Parcel) -> None:
        delivery, text = None, ""
        try:
            match parcel:
                case Result(name, content):
                    source = ResultSource.from_bytes(content, name, JSON)
                    delivery = self._client.put_result(source, result_format=ADAPTER_RESULT)
                case ReporterVerdict(said, cause, evidence):
                    facts: dict[str, Any] = {"evidence": evidence} if evidence else {}
                    facts["status"] = "unknown" if parcel.unknown else "failure"
                    delivery = self._client.report_error(
                        said, cause, evidence=facts, result_format=ADAPTER_RESULT
                    )
            text = delivery.text
        except (ReporterError, OSError) as error:
            text = str(error)
        except Exception as error:
            # Who waits for this thread must not wait for one that has died.
            text = f"{type(error).__name__}: {error}"
        ok = delivery is not None and delivery.delivered
        if not self._closed:
            self._on_event("delivered" if ok else "lost", {"delivery": delivery, "text": text})
        self.done.set()
        self._wake()
        if ok and self._newest is not None:
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
