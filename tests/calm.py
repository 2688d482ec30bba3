"""Seconds as a calm machine would have them, for what has to be over soon."""

from __future__ import annotations

import threading
import time
from typing import Self

TICK = 0.01
WORK = 0.002
"""The part of a tick that the processor is used for."""


class Calm:
    """A clock that stands still while the machine lets those wait who have something to do.

    It counts short sleeps and short work, which take longer then. Who waits for a deadline is seen
    on any machine.
    """

    def __init__(self) -> None:
        self._ticks = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def seconds(self) -> float:
        """How much time has passed since the beginning."""
        return self._ticks * TICK

    def _run(self) -> None:
        while not self._ended.is_set():
            time.sleep(TICK - WORK)
            end = time.thread_time() + WORK
            while time.thread_time() < end:
                pass
            self._ticks += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
