"""The agent as a worker of its aggregator: heartbeats, progress, and one archive at the end."""

import threading
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Self

from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.common.log import link_event
from reporter.errors import ReporterError
from reporter.link import (
    AggregatorClient,
    Delivery,
    Heart,
    Outcome,
    Progress,
    ResultSource,
    SourceError,
    TrustError,
    WorkerConfig,
)


class TaskFailure(NamedTuple):
    """Why the output is not a result: words for people, a token for programs.

    The files in the directory are delivered along with it.
    """

    text: str
    cause: str


class Link:
    """Says that the agent is alive, how far it is, and what it has, while it is entered."""

    def __init__(self, config: WorkerConfig, stop: Stop) -> None:
        self._config = config
        self._client = AggregatorClient(config, stop=stop, on_event=link_event)
        self._heart = Heart(self._client, interval=config.heartbeat_seconds, on_event=link_event)
        self._news: SimpleQueue[Progress] = SimpleQueue()

    def __enter__(self) -> Self:
        if self._config.heartbeat_seconds:
            self._heart.start()
        # A delivery waits, and a task must not.
        threading.Thread(target=self._send_progress, name="progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Nobody waits for what these threads are at: they end with the process.
        self._heart.stop()
        self._client.close()

    def tell(self, text: str, completed: int, total: int) -> None:
        """Send this as the plugin's progress; what was not sent before it is skipped.

        Never waits, never raises.
        """
        self._news.put(Progress(msg=text, total=total, completed=completed))

    def deliver(self, directory: Path, failure: TaskFailure | None) -> bool:
        """Send the directory as one archive; return whether the aggregator has a result.

        With a failure it goes along with a report of it.
        """
        archive = ResultSource.from_directory(directory)
        try:
            if failure is None:
                delivery = self._client.put_result(archive)
            else:
                delivery = self._report(archive, failure)
        except (SourceError, TrustError, OSError) as error:
            delivery = Delivery(Outcome.REFUSED, text=str(error))
        facts = {"outcome": delivery.outcome, **delivery.facts}
        if failure is not None:
            log.get().error("Collecting failed, no result to deliver", reason=failure.text, **facts)
        elif delivery.delivered:
            log.get().info("Result delivered", **facts)
        else:
            log.get().error("No result delivered", reason=delivery.text, **facts)
        return failure is None and delivery.delivered

    def _report(self, archive: ResultSource, failure: TaskFailure) -> Delivery:
        try:
            return self._client.report_error(failure.text, failure.cause, archive)
        except SourceError:
            # Words without evidence are better than silence.
            return self._client.report_error(failure.text, failure.cause)

    def _send_progress(self) -> None:
        while True:
            progress = self._news.get()
            if self._news.empty():  # no newer one waits
                try:
                    self._client.post_progress(progress)
                except ReporterError as error:
                    log.get().warning("Progress not delivered", trouble=str(error))
