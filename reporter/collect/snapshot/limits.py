"""How much may still be written, how long it may still take, and how a request is tried again."""

import threading
import time
from collections.abc import Callable
from random import random
from typing import TypeVar

from reporter.common.retry import next_delay
from reporter.errors import Expired, TooLarge, Unauthorized, Unavailable

T = TypeVar("T")

TRIES = 6


class SnapshotEnded(Exception):
    """The snapshot is to end here; the text says why."""


class Room:
    """The bytes and files that may still be written. Threads share it."""

    def __init__(self, size: int, files: int) -> None:
        self._lock, self._size, self._files = threading.Lock(), size, files

    def take(self, size: int, *, files: int = 0) -> str:
        """Take it; return nothing, or what there is too much of, and take nothing then."""
        with self._lock:
            if size > self._size:
                return "size limit reached"
            if files > self._files:
                return "file limit reached"
            self._size -= size
            self._files -= files
            return ""

    def give_back(self, size: int, *, files: int = 0) -> None:
        """Return what was taken for something that is not kept."""
        with self._lock:
            self._size += size
            self._files += files


class Course:
    """Until when the snapshot goes on, and tries again. Threads share it.

    `stopped` says whether the process is to end; `deadline` is monotonic.
    """

    def __init__(
        self,
        stopped: Callable[[], bool],
        deadline: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random,
    ) -> None:
        self._stopped, self._deadline, self._clock, self._rng = stopped, deadline, clock, rng
        self._ended = threading.Event()

    def why_ended(self) -> str:
        """Say why nothing more is to be done; nothing while it goes on."""
        if self._stopped():
            return "terminated"
        if self._clock() >= self._deadline:
            return "out of time"
        return ""

    def go_on(self) -> None:
        """Raise `SnapshotEnded` if nothing more is to be done."""
        if why := self.why_ended():
            raise SnapshotEnded(why)

    def end(self) -> None:
        """Wake those who wait to try again."""
        self._ended.set()

    def tried(self, request: Callable[[], T]) -> T:
        """Make a request, again where that may help. Raises what it raises, and `SnapshotEnded`."""
        attempt = 0
        while True:
            self.go_on()
            attempt += 1
            try:
                return request()
            except (Expired, TooLarge):
                raise
            except (Unavailable, Unauthorized) as error:
                self.go_on()
                left = self._deadline - self._clock()
                delay = next_delay(
                    attempt, self._rng, retry_after=error.retry_after, remaining=left
                )
                if attempt == TRIES or delay is None:
                    raise
                self._wait(delay)

    def _wait(self, seconds: float) -> None:
        # A signal handler wakes nobody here.
        end = self._clock() + seconds
        while (left := end - self._clock()) > 0 and not self.why_ended():
            if self._ended.wait(min(left, 0.2)):
                return
