"""The logs of plugins' Pods, taken before their Jobs go: of each container the end.

They lie where the tarball takes them from, and a Pod's are there whole or not at all: a restart
takes those again that it does not find.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from reporter.common import log
from reporter.errors import InvalidRequest, KubeError, NotFound
from reporter.kube.api import KubeApi
from reporter.kube.stream import LogStream
from reporter.launch.seen import SeenPod
from reporter.run.plan import Key

AT_ONCE = 8
CONTAINER_BYTES = 5 * 2**20  # that are kept of each
RUN_BYTES = 2**30  # of all together
TRIES = 3
PAUSE = 1.0  # seconds between two of them
# Seconds for which one is read: a container that writes without end would keep up the logs of
# others. Those of two such containers are taken even at the end of a run.
LONGEST = 20.0

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class Logs:
    """Takes logs to `folder`, by way of `staging` on the same file system. Threads may share it.

    None is kept for which `check_room` raises OSError, given its size: it would use the disk's
    reserve.
    """

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        folder: Path,
        staging: Path,
        *,
        check_room: Callable[[int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._namespace, self._clock = api, namespace, clock
        self._home, self._staging, self._check_room = folder / namespace, staging, check_room
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._open: set[LogStream] = set()
        self._room = RUN_BYTES - sum(file.stat().st_size for file in folder.rglob("*.txt"))

    def taken(self, pod: str) -> bool:
        """Say whether the logs of that Pod are there."""
        return (self._home / pod / "logs").is_dir()

    def take(self, pod: str, containers: Iterable[str]) -> None:
        """Take the logs of a Pod, as far as they can be read; blocks. Raises OSError."""
        if self.taken(pod) or not _NAME.fullmatch(pod):
            return
        new = self._staging / f"logs-{pod}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        try:
            for container in containers:
                if _NAME.fullmatch(container):
                    self._take(pod, container, new / f"{container}.txt")
            if self._stopped.is_set():
                return
            (self._home / pod).mkdir(mode=0o700, parents=True, exist_ok=True)
            new.rename(self._home / pod / "logs")
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def stop(self) -> None:
        """End what is being read; it is taken again by the next process."""
        self._stopped.set()
        for stream in tuple(self._open):
            stream.close()

    def _take(self, pod: str, container: str, file: Path) -> None:
        tail: deque[bytes] = deque()
        for attempt in range(1, TRIES + 1):
            try:
                tail = self._tail(pod, container)
                break
            except (NotFound, InvalidRequest):
                return  # the Pod has gone, or the container never ran
            except KubeError as error:
                if attempt == TRIES:
                    log.get().warning(
                        "A log could not be read", pod=pod, container=container, error=error
                    )
                    return
                self._stopped.wait(PAUSE)
        size = sum(map(len, tail))
        with self._lock:  # while it is written, too: each sees the room that the others leave
            try:
                if size > self._room:
                    raise OSError("the logs of the run are too large")
                self._check_room(size)
            except OSError as error:
                why = error.strerror or str(error)
                log.get().warning("Log skipped", pod=pod, container=container, error=why)
                return
            self._room -= size
            with file.open("wb") as out:
                out.writelines(tail)

    def _tail(self, pod: str, container: str) -> deque[bytes]:
        """Read a log and return its end. The API knows no number of bytes there, only of lines."""
        pieces: deque[bytes] = deque()
        size, end = 0, self._clock() + LONGEST
        stream = self._api.stream_log(self._namespace, pod, container)
        with self._reading(stream):
            for piece in stream:
                pieces.append(piece)
                size += len(piece)
                while size - len(pieces[0]) >= CONTAINER_BYTES:
                    size -= len(pieces.popleft())
                if self._clock() >= end:
                    said = "Log truncated: reading it took too long"
                    log.get().warning(said, pod=pod, container=container)
                    break
        if size > CONTAINER_BYTES:
            pieces[0] = pieces[0][size - CONTAINER_BYTES :]
        return pieces

    @contextmanager
    def _reading(self, stream: LogStream) -> Iterator[None]:
        self._open.add(stream)
        if self._stopped.is_set():
            stream.close()
        try:
            yield
        finally:
            self._open.discard(stream)
            stream.close()


class LogCollection:
    """Whose logs have been taken: each is tried once, a few Pods at a time, off the event loop.

    `changed` is called when those of an entry were tried.
    """

    def __init__(self, logs: Logs, changed: Callable[[], None]) -> None:
        self._logs, self._changed = logs, changed
        self._threads = ThreadPoolExecutor(AT_ONCE, "logs")
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self.tried: set[Key] = set()
        """Whose were tried."""

    def take(self, key: Key, pod: SeenPod) -> None:
        """Begin to take them, unless that has begun."""
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._take(key, pod))

    def stop(self) -> None:
        """End what is being read; the next process takes it again, unless the run is over."""
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
        self.tried.add(key)
        self._changed()
