"""Answers to heartbeats."""

import json
from collections.abc import Callable

from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.ledger import Store
from reporter.run.plan import Key
from reporter.run.state import Phase

FEATURES = "heartbeat, outcome, digest, progress-id"


class Heartbeats:
    """Notes that a worker lives. `clock` is the monotonic clock that ages are measured with."""

    def __init__(self, store: Store, interval: int, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        document = {"interval_seconds": interval, "status": "running"}
        self._alive = Answer(
            200,
            json.dumps(document, separators=(",", ":")).encode(),
            (*answers.JSON, ("Cache-Control", "no-store"), ("Aggregator-Features", FEATURES)),
        )

    def get(self, key: Key, subject: str) -> Answer:
        """Take one heartbeat."""
        if self._store.phase is not Phase.RUNNING:
            return answers.text(410, f"run is closed; {subject} not accepted")
        self._store.record_heartbeat(key, self._clock(), beat=True)
        return self._alive
