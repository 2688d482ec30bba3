"""Starting the process that reads a result, and taking its answer. Blocks: for threads."""

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO, Final

from reporter.aggregator.judging.task import Judgement, Task, read_judgement
from reporter.errors import ReporterError

_PROGRAM: Final = "from reporter.aggregator.judging.child import main; main()"
_HANG: Final = 1_200.0  # seconds; the processor's time is bounded by the process itself
_TOO_MUCH: Final = "it takes too much memory or time to read"


class Stopped(ReporterError):
    """We are to end; the next process judges it."""


class Judge:
    """Reads results, each in a process. May be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def judge(self, task: Task, body: IO[bytes], listing: IO[bytes] | None = None) -> Judgement:
        """Read the body and say what is in it; its items are written to `listing`.

        A body whose reading fails is unknown. Raises `Stopped`, and OSError when no process can be
        started.
        """
        write_to = "" if listing is None else str(listing.fileno())
        with self._started(task, body, write_to) as process:
            assert process.stdout is not None
            try:
                answer, _ = process.communicate(timeout=_HANG)
            except subprocess.TimeoutExpired:
                process.kill()
                answer, _ = process.communicate()
        with self._lock:
            if self._stopped:
                raise Stopped("stopped while a result was judged")
        found = read_judgement(answer) if process.returncode == 0 else None
        return found or Judgement(note=_TOO_MUCH, complete=False)

    @contextlib.contextmanager
    def _started(self, task: Task, body: IO[bytes], write_to: str):  # type: ignore[no-untyped-def]
        with self._lock:
            if self._stopped:
                raise Stopped("stopped before a result was judged")
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _PROGRAM, task.text(), write_to],
                stdin=body,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[int(write_to)] if write_to else [],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            self._running.add(process)
        try:
            yield process
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        """End what is being read, and read nothing more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()
