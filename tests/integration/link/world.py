"""A results directory and an aggregator's client in a time that only passes when somebody waits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from reporter.link.config import WorkerConfig
from reporter.link.gather import GatherFailure, gather
from reporter.link.messages import Delivery, Outcome
from reporter.link.source import ResultSource
from tests.aggregators.identities import identities


@dataclass
class Put:
    """A result or an error report that the aggregator was sent, and when."""

    at: float
    name: str = ""
    content_type: str = ""
    body: bytes = b""
    error: tuple[str, str] | None = None
    unreadable: str = ""


@dataclass
class World:
    """What `gather` sees; `puts` is what came of it. Deeds happen at their time."""

    results: Path
    now: float = 0.0
    stopped_at: float = math.inf
    puts: list[Put] = field(default_factory=list)
    outcome: Outcome = Outcome.ACCEPTED
    failure: GatherFailure | None = None
    deeds: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    # What the test arranges

    def at(self, when: float, deed: Callable[[], object]) -> None:
        """Let something happen then."""
        self.deeds.append((when, deed))
        self.deeds.sort(key=lambda pair: pair[0])

    def stop(self) -> None:
        """Do what a SIGTERM does."""
        self.stopped_at = self.now

    def done(self, text: object) -> None:
        """Write the done file."""
        (self.results / "done").write_text(str(text))

    def config(self, **changes: object) -> WorkerConfig:
        who = identities()
        given: dict[str, object] = {
            "aggregator_url": "https://127.0.0.1:1",
            "plugin": "e2e",
            "ca_cert": who.ca.pem,
            "client_cert": who.client.certificate,
            "client_key": who.client.sec1,
            "results_dir": self.results,
        }
        return WorkerConfig(**{**given, **changes})  # type: ignore[arg-type]

    def gather(self, **changes: object) -> Delivery:
        """Run the loop to its end."""
        return gather(
            self.config(**changes),
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            failed=lambda: self.failure,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    # The stop event and the clock

    def is_set(self) -> bool:
        return self.now >= self.stopped_at

    def wait(self, timeout: float) -> bool:
        end = self.now + timeout
        while not self.is_set() and self._next_deed(end):
            pass
        if not self.is_set():
            self.now = end
        return self.is_set()

    def sleep(self, seconds: float) -> None:
        end = self.now + seconds
        while self._next_deed(end):
            pass
        self.now = end
        assert self.now < 10_000, "waits for ever"

    def _next_deed(self, end: float) -> bool:
        assert end < 10_000, "waits for ever"
        if not self.deeds or self.deeds[0][0] > end:
            return False
        when, deed = self.deeds.pop(0)
        self.now = max(self.now, when)
        deed()
        return True

    # The client

    def left(self) -> float:
        return self.stopped_at + 58.0 - self.now

    def put_result(self, source: ResultSource) -> Delivery:
        with source.open() as content:
            body = b"".join(content.pieces())
            put = Put(self.now, source.name, content.content_type, body)
        self.puts.append(put)
        return Delivery(self.outcome, 200, 1, content.digest)

    def report_error(
        self,
        text: str,
        cause: str,
        partial: ResultSource | None = None,
        *,
        unreadable: str = "",
    ) -> Delivery:
        put = Put(self.now, error=(text, cause), unreadable=unreadable)
        if partial:
            with partial.carrying("error.json", text.encode()).open() as content:
                put.name, put.body = partial.name, b"".join(content.pieces())
        self.puts.append(put)
        return Delivery(self.outcome, 200, 1, "")
