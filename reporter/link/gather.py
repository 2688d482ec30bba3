"""From the plugin's done file to a delivered result: poll, let it settle, look again, send once.

The loop sleeps on the stop event. The rules for the done file are in `done_file.py`, how a result
is sent in `client.py`.
"""

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from reporter.link import done_file
from reporter.link.answers import Delivery, Outcome
from reporter.link.client import AggregatorClient
from reporter.link.config import WorkerConfig
from reporter.link.delivery import LEAVE_SECONDS, Stop
from reporter.link.done_file import NoResult, Target
from reporter.link.environment import DELAY_SECONDS
from reporter.link.source import GZIP, ResultSource, SourceError

POLL_SECONDS = 1.0
HURRY_SECONDS = 0.2
"""Between two looks at first, and once the process was asked to end."""
_LATER = 0.1
"""The share of the time so far by which a plugin may become slower, as long as it is below 1 s."""
SETTLED_SECONDS = 1.0
"""For which the done file and its result stay the same before they are taken for complete."""
LAST_WORD_SECONDS = 5.0
"""Seconds of the grace period for reporting that there were no results."""
ARCHIVE = "results.tar.gz"


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

    After `stop` a done file still counts until shortly before the end of the grace period. `failed`
    is asked at every look whether a result can no longer come. Then an aggregator that knows error
    reports is sent one; the outcome is `GAVE_UP`, whatever became of the report, and `text` is the
    reason. Raises `TrustError`.
    """
    return _Gathering(config, client, stop, failed=failed, clock=clock, sleep=sleep).run()


class _Gathering:
    def __init__(
        self,
        config: WorkerConfig,
        client: AggregatorClient,
        stop: Stop,
        *,
        failed: Callable[[], GatherFailure | None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._config, self._client, self._stop = config, client, stop
        self._failed, self._clock, self._sleep = failed, clock, sleep
        self._stopped_at: float | None = None
        self._began = clock()

    def run(self) -> Delivery:
        while True:
            if self._stop.is_set():
                self._sleep(HURRY_SECONDS)
            else:
                so_far = self._clock() - self._began
                self._stop.wait(min(POLL_SECONDS, max(HURRY_SECONDS, _LATER * so_far)))
            if done_file.seen(self._config.results_dir):
                if not self._stop.is_set():
                    self._wait_delay()
                # Gone by now: whoever else waits for it has taken it.
                if delivery := self._deliver():
                    return delivery
            elif failure := self._failed():
                return self._report(failure)
            elif self._left() <= LAST_WORD_SECONDS:
                return self._report(GatherFailure("terminated before results", "terminated"))

    def _wait_delay(self) -> None:
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
            with done_file.opened(self._config.results_dir) as target:
                if target is None or target.directory:
                    return None
                found = os.fstat(target.descriptor)
        except (NoResult, OSError):
            return None
        return target.path, found.st_ino, found.st_size, found.st_mtime_ns

    def _left(self) -> float:
        """Return the seconds left of the grace period; infinity before a signal."""
        if not self._stop.is_set():
            return math.inf
        if self._stopped_at is None:
            self._stopped_at = self._clock()
        return self._stopped_at + self._config.grace_seconds - self._clock()

    def _budget(self) -> float | None:
        """Return how long a delivery may take; after a signal the process has to end in time."""
        left = self._left()
        return None if left == math.inf else left - LEAVE_SECONDS

    def _deliver(self) -> Delivery | None:
        name = ARCHIVE
        try:
            with done_file.opened(self._config.results_dir) as target:
                if target is None:
                    return None
                if not target.directory:
                    name = target.name
                # Packed before the budget is asked for: it takes its time, too.
                with self._content(target) as file:
                    return self._client.put_result(
                        ResultSource(
                            name,
                            lambda: os.fdopen(os.dup(file.fileno()), "rb"),
                            GZIP if target.directory else None,
                        ),
                        budget=self._budget(),
                    )
        except NoResult as error:
            # The delay, which it had to be written in, was skipped.
            hurried = LAST_WORD_SECONDS < self._left() < math.inf
            if error.cause == done_file.EMPTY and hurried:
                return None
            return self._report(GatherFailure(str(error), error.cause, unreadable=error.unreadable))
        except (SourceError, OSError) as error:
            text = f"the result cannot be read: {error}"
            return self._report(GatherFailure(text, "unreadable_result", unreadable=name))

    def _content(self, target: Target) -> BinaryIO:
        if not target.directory:
            return os.fdopen(os.dup(target.descriptor), "rb")
        # With it come gzip and tarfile, which a worker of single files does without.
        from reporter.link import tree_archive

        results = Path(os.path.realpath(self._config.results_dir))
        done = results / done_file.NAME
        # A directory that the plugin has made may be writable for its user alone.
        return tree_archive.packed(target.descriptor, target.path, [done], near=results)

    def _report(self, failure: GatherFailure) -> Delivery:
        """Report that there is no result, if the aggregator knows error reports."""
        try:
            partial = ResultSource(ARCHIVE, lambda: self._remains(failure), GZIP)
            sent = self._say(failure, partial if failure.partial else None)
        except SourceError:
            # Words without evidence are better than silence.
            sent = self._say(failure, None)
        return replace(sent, outcome=Outcome.GAVE_UP, text=failure.text)

    def _remains(self, failure: GatherFailure) -> BinaryIO:
        """Pack the output so far, with the words beside it."""
        from reporter.link import tree_archive

        results = self._config.results_dir.absolute()
        words = json.dumps({"error": failure.text, "cause": failure.cause}).encode()
        directory = os.open(results, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return tree_archive.packed(
                directory,
                results,
                [results / done_file.NAME],
                # In a directory of their own: the plugin may have an error.json too.
                prefix="output/",
                beside={"error.json": words},
            )
        finally:
            os.close(directory)

    def _say(self, failure: GatherFailure, partial: ResultSource | None) -> Delivery:
        return self._client.report_error(
            failure.text,
            failure.cause,
            partial,
            unreadable=failure.unreadable,
            budget=self._budget(),
        )
