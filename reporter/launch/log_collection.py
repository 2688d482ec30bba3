"""Whose logs have been taken: each is tried once, a few Pods at a time, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from reporter.common import log
from reporter.launch.logs import AT_ONCE, Logs
from reporter.launch.seen import SeenPod
from reporter.run.plan import Key


class LogsTaken:
    """It belongs to the event loop; `changed` is called when those of an entry were tried."""

    def __init__(self, logs: Logs, changed: Callable[[], None]) -> None:
        self._logs, self._changed = logs, changed
        self._threads = ThreadPoolExecutor(AT_ONCE, "logs")
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self.taken: set[Key] = set()
        """Whose were tried."""

    def take(self, key: Key, pod: SeenPod) -> None:
        """Begin to take them, unless that has begun."""
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._take(key, pod))

    def stop(self) -> None:
        """End what is being read; the next process takes it again."""
        for task in self._tasks.values():
            task.cancel()
        self._logs.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _take(self, key: Key, pod: SeenPod) -> None:
        """Try once; what could not be taken keeps nothing from being removed."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._logs.take, pod.name, pod.containers)
        except Exception as error:  # whatever it is: no log is worth the end of a run
            log.get().warning("Logs could not be saved", pod=pod.name, error=repr(error))
        self.taken.add(key)
        self._changed()
