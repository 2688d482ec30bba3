"""What keeps workers from reaching us, as the logs of our containers say that were never heard.

Few are read at a time, on threads of their own: a kubelet that hangs keeps up nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from reporter.errors import KubeError
from reporter.jobs.reporter_log import unreached
from reporter.kube.api import KubeApi
from reporter.launch.seen import SeenPod
from reporter.run.plan import Key

AT_ONCE = 2
AGAIN = 10.0  # seconds between two looks at one
_LONGEST = 5.0  # seconds for one
_TAIL = {"tailLines": "200"}
_BYTES = 2**18  # of one


class Obstacles:
    """It belongs to the event loop. `changed` is called when a log was read."""

    def __init__(self, api: KubeApi, namespace: str, changed: Callable[[], None]) -> None:
        self._api, self._namespace, self._changed = api, namespace, changed
        self._threads = ThreadPoolExecutor(AT_ONCE, "obstacles")
        self._tasks: set[asyncio.Task[None]] = set()
        self._not_before: dict[Key, float] = {}
        self.known: dict[Key, str] = {}
        """Of those that were not heard, as far as it was read."""

    def look(self, unheard: Mapping[Key, SeenPod], now: float) -> None:
        """Begin to read the logs of those of these that wait the longest."""
        due = [key for key in unheard if self._not_before.get(key, now) <= now]
        due.sort(key=lambda key: self._not_before.get(key, 0.0))
        for key in due[: AT_ONCE - len(self._tasks)]:
            self._not_before[key] = now + AGAIN
            task = asyncio.create_task(self._look(key, unheard[key]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Let go of what is being read."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _look(self, key: Key, pod: SeenPod) -> None:
        loop = asyncio.get_running_loop()
        with suppress(KubeError):  # only words are missing
            self.known[key] = await loop.run_in_executor(self._threads, self._read, pod)
        loop.call_soon(self._changed)  # once its place is free

    def _read(self, pod: SeenPod) -> str:
        place = self._namespace, pod.name, pod.uploader
        log = self._api.read_log(*place, _TAIL, most=_BYTES, timeout=_LONGEST)
        return unreached(b"".join(log).decode(errors="replace"))
