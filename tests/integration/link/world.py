"""A results directory and an aggregator's client in a time that only passes when somebody waits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reporter.link.config import WorkerConfig
from reporter.link.gather import GatherFailure, gather
from reporter.link.messages import Delivery, Outcome
from reporter.link.source import ResultSource
from tests.integration.link.fake_time import FakeTime
from tests.integration.link.scripted import settings


@dataclass
class Put:
    """A result or an error report that the aggregator was sent, and when."""

    at: float
    name: str = ""
    content_type: str = ""
    body: bytes = b""
    error: tuple[str, str] | None = None
    unreadable: str = ""


class World(FakeTime):
    """What `gather` sees: the stop event, the clock, the client; `puts` is what came of it."""

    def __init__(self, results: Path) -> None:
        super().__init__(0.0)
        self.results = results
        self.puts: list[Put] = []
        self.outcome = Outcome.ACCEPTED
        self.failure: GatherFailure | None = None

    def done(self, text: object) -> None:
        """Write the done file."""
        (self.results / "done").write_text(str(text))

    def config(self, **changes: object) -> WorkerConfig:
        return settings("https://127.0.0.1:1", **{"results_dir": self.results, **changes})

    def gather(self, **changes: object) -> Delivery:
        """Run the loop to its end."""
        return gather(
            self.config(**changes),
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            failed=lambda: self.failure,
            clock=self.clock,
            sleep=self.sleep,
        )

    # The client

    def left(self) -> float:
        return self.stop_at + 58.0 - self.now

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
