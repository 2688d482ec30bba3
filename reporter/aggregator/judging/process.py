"""Starting the process that reads a result, and taking its answer. Blocks: for threads."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Final

from reporter.aggregator.judging.task import Judgement, Task, read_judgement
from reporter.errors import ReporterError

_PROGRAM: Final = "from reporter.aggregator.judging.child import main; main()"
_HANG: Final = 1_200.0  # seconds; the processor's time is bounded by the process itself
_TRIES: Final = 3
_TOO_MUCH: Final = "it takes too much memory or time to read"
_DEADLY: Final = f"the aggregator was killed {_TRIES} times while it was read"


class Stopped(ReporterError):
    """We are to end; the next process judges it."""


class Judge:
    """Reads results, each in a process, one at a time. May be used by several threads.

    Two at a time could take more memory than the container may have. If it is all killed
    nevertheless, `begun` ends the loop over restarts: a directory that outlives us, with a file for
    each result whose reading began and did not end, and in it a byte for each time.
    """

    def __init__(self, begun: Path | None = None) -> None:
        self._begun = begun
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def judge(
        self, task: Task, body: IO[bytes], listing: IO[bytes] | None = None, *, digest: str = ""
    ) -> Judgement:
        """Read the body and say what is in it; its items are written to `listing`.

        A body whose reading fails is unknown, and so is one with whose reading we were killed some
        times; it is known by its `digest`. Raises `Stopped`, and OSError when no process can be
        started.
        """
        with self._turn:
            name = f"{digest}.{task.result_format}{'' if listing is None else '.items'}"
            noted = self._begun / name if self._begun is not None and digest else None
            if noted is not None and not _begin(noted):
                return Judgement(note=_DEADLY, complete=False)
            try:
                return self._read(task, body, listing)
            finally:
                if noted is not None:
                    with contextlib.suppress(OSError):
                        noted.unlink(missing_ok=True)

    def _read(self, task: Task, body: IO[bytes], listing: IO[bytes] | None) -> Judgement:
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


def _begin(noted: Path) -> bool:
    """Note that a result is about to be read; false if that was begun too often."""
    # On a full disk nothing can be noted, and it is read all the same.
    with contextlib.suppress(OSError), noted.open("ab", buffering=0) as file:
        if file.tell() >= _TRIES:
            return False
        file.write(b".")
    return True
