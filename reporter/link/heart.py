"""Heartbeats: they tell the aggregator that this worker is alive, from its start until its upload.

Nothing waits for a heartbeat and none is sent again: the next one follows soon. `Background` is the
base of other threads of a worker too.
"""

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from reporter.errors import ReporterError
from reporter.link.client import AggregatorClient
from reporter.link.delivery import Event

INTERVAL_SECONDS = 15.0
"""Until the aggregator has said how often it wants to be told."""
SPREAD = 0.1
FINAL = (404, 410)
"""Answers after which no other can come: a peer that knows no beats, a closed run."""
_EVENTS = {0: "heartbeat_unanswered", **dict.fromkeys(FINAL, "heartbeats_end")}


class Background(ABC):
    """Works on a thread of its own, from `start` to `close`."""

    def __init__(self, name: str, over: threading.Event | None = None) -> None:
        self._over = over or threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._over.set()

    def close(self) -> None:
        """Stop, and wait for what is under way."""
        self.stop()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Work, and wait on `_over` in the pauses."""


class Heart(Background):
    """Sends heartbeats.

    The first comes after a random part of `interval` seconds, every other an interval +- 10 % after
    the one before, so that the workers of a run do not send theirs at the same time. The interval
    is the one in the aggregator's last answer: it knows how many workers there are, and when it
    considers one lost. `on_event` is called with a word and its facts; `over` is waited on during
    the pauses:

    - `heartbeat_unanswered`: the first of a series after an answer (`trouble`);
    - `heartbeat_refused`: the first of a series of that answer (`status`);
    - `heartbeats_end`: the peer knows no heartbeats, or its run is closed (`status`).
    """

    def __init__(
        self,
        client: AggregatorClient,
        *,
        interval: float = INTERVAL_SECONDS,
        on_event: Event = lambda _event, _facts: None,
        rng: Callable[[], float] = random.random,
        over: threading.Event | None = None,
    ) -> None:
        super().__init__("heart", over)
        self._client, self._interval = client, interval
        self._on_event, self._rng = on_event, rng
        self._last = 0  # until an answer the client says what keeps it from us

    def _run(self) -> None:
        pause = self._rng() * self._interval
        while not self._over.wait(pause):
            if not self._beat():
                return
            pause = self._interval * (1 + SPREAD * (2 * self._rng() - 1))

    def _beat(self) -> bool:
        """Send one heartbeat and return whether to go on."""
        facts: dict[str, Any]
        try:
            answer = self._client.heartbeat()
            status, facts = answer.status, {"status": answer.status}
            if status == 200 and answer.interval is not None:
                self._interval = answer.interval
        except ReporterError as error:
            status, facts = 0, {"trouble": str(error)}
        # One line is enough until it changes: the upload will say more.
        if status not in (200, self._last):
            self._on_event(_EVENTS.get(status, "heartbeat_refused"), facts)
        self._last = status
        return status not in FINAL
