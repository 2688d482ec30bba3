"""From the plugin's done file to a delivered result: poll, let it settle, look again, send once.

The loop sleeps on the stop event. The rules for the done file are in `done_file.py`, how a result
is sent in `client.py`.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reporter.link import done_file
from reporter.link.client import AggregatorClient
from reporter.link.config import DELAY_SECONDS, WorkerConfig
from reporter.link.delivery import Stop
from reporter.link.done_file import NoResult, Target
from reporter.link.messages import Delivery, Outcome
from reporter.link.source import ResultSource, SourceError

POLL_SECONDS = 1.0
HURRY_SECONDS = 0.2
"""Between two looks at first, and once the process was asked to end."""
_LATER = 0.1
"""The share of the time so far by which a plugin may become slower, as long as it is below 1 s."""
SETTLED_SECONDS = 1.0
"""For which the done file and its result stay the same before they count as complete."""
LAST_WORD_SECONDS = 3.0
"""Seconds of what the client has left for reporting that there were no results."""


@dataclass(frozen=True, slots=True)
class GatherFailure:
    """Why there will be no result: words for people, a token for programs.

    `partial` sends the content of the results directory along. `unreadable` is the name of a result
    that is there and cannot be read.
    """

    text: str
    cause: str
    partial: bool = False
    unreadable: str = ""


def gather(
    config: WorkerConfig,
    client: AggregatorClient,
    stop: Stop,
    *,
    failed: Callable[[], GatherFailure | None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Delivery:
    """Wait for the plugin's done file and deliver what it names, once.

    `stop` is the one that the client has. After it a done file still counts until shortly before
    the end of the grace period. `failed` is asked at every look whether a result can no longer
    come. Then an aggregator that knows error reports is sent one; the outcome is `GAVE_UP`,
    whatever became of the report, and `text` is the reason. Raises `TrustError`.
    """
    began = clock()
    gathering = _Gathering(config, client, stop, clock)
    while True:
        if stop.is_set():
            sleep(HURRY_SECONDS)
        else:
            stop.wait(min(POLL_SECONDS, max(HURRY_SECONDS, _LATER * (clock() - began))))
        left = client.left()  # which counts from when it is first asked after the stop
        if done_file.seen(config.results_dir):
            if not stop.is_set():
                gathering.wait_until_written()
            # Gone by now: whoever else waits for it has it.
            if delivery := gathering.deliver():
                return delivery
        elif failure := failed():
            return gathering.report(failure)
        elif left <= LAST_WORD_SECONDS:
            return gathering.report(GatherFailure("terminated before results", "terminated"))


class _Gathering:
    def __init__(
        self,
        config: WorkerConfig,
        client: AggregatorClient,
        stop: Stop,
        clock: Callable[[], float],
    ) -> None:
        self._config, self._client, self._stop, self._clock = config, client, stop, clock
        self._results = config.results_dir.absolute()

    def wait_until_written(self) -> None:
        """Let the plugin finish writing: the delay that was set, else until nothing changes."""
        if self._config.done_file_delay is not None:
            self._stop.wait(self._config.done_file_delay)
            return
        state, since = self._state(), self._clock()
        end = since + DELAY_SECONDS
        while not self._stop.is_set() and (now := self._clock()) < end:
            if state is not None and now >= since + SETTLED_SECONDS:
                return
            self._stop.wait(min(HURRY_SECONDS, end - now))
            if (found := self._state()) != state:
                state, since = found, self._clock()

    def _state(self) -> tuple[Path, int, int, int] | None:
        """Return what changes with the done file or its result; nothing unless both are there.

        This holds for a directory too: it shows no change of its contents.
        """
        try:
            with done_file.opened(self._results) as target:
                if target is None or target.directory:
                    return None
                found = target.opened.stat()
        except (NoResult, OSError):
            return None
        return target.path, found.st_ino, found.st_size, found.st_mtime_ns

    def deliver(self) -> Delivery | None:
        """Deliver the result, or a report that there is none; nothing without a done file."""
        name = ""
        try:
            with done_file.opened(self._results) as target:
                if target is None:
                    return None
                source = self._source(target)
                name = source.name
                return self._client.put_result(source)
        except NoResult as error:
            # The delay, which it had to be written in, was skipped.
            hurried = LAST_WORD_SECONDS < self._client.left() < math.inf
            if error.cause == done_file.EMPTY and hurried:
                return None
            return self.report(GatherFailure(str(error), error.cause, unreadable=error.unreadable))
        except (SourceError, OSError) as error:
            text = f"the result cannot be read: {error}"
            return self.report(GatherFailure(text, "unreadable_result", unreadable=name))

    def _source(self, target: Target) -> ResultSource:
        """Return what reads the descriptor that is open, wherever its path leads by now."""
        if not target.directory:
            return ResultSource.from_file(target.opened, name=target.name)
        own = target.path == Path()
        return ResultSource.from_directory(
            target.opened,
            exclude=[target.opened / done_file.NAME] if own else [],
            # A directory that the plugin has made may be writable for its user alone.
            writable=self._results,
        )

    def report(self, failure: GatherFailure) -> Delivery:
        """Report that there is no result, if the aggregator knows error reports."""
        report = None
        if failure.partial:
            # Words without evidence are better than silence.
            with suppress(SourceError, OSError), done_file.directory(self._results) as opened:
                everything = ResultSource.from_directory(opened, exclude=[opened / done_file.NAME])
                report = self._say(failure, everything)
        report = report or self._say(failure, None)
        return replace(report, outcome=Outcome.GAVE_UP, text=failure.text)

    def _say(self, failure: GatherFailure, partial: ResultSource | None) -> Delivery:
        return self._client.report_error(
            failure.text, failure.cause, partial, unreadable=failure.unreadable
        )
