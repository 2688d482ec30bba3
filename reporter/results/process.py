"""Starting the process that reads a result, and taking its answer. Blocks: for threads."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

from reporter.common import log
from reporter.errors import ReporterError
from reporter.results.child import Judgement, Task
from reporter.results.report import TOO_MUCH

_PROGRAM: Final = "from reporter.results.child import main; main()"
_TRIES: Final = 3
_PAUSE: Final = 2.0  # seconds; whoever needed the memory may have ended by then
_KILLED: Final = f"the process that read it was killed {_TRIES} times"
_DEADLY: Final = f"the aggregator was killed {_TRIES} times while it was read"
USED_UP: Final = "judging budget used up"


@dataclass(slots=True)
class Budget:
    """What reading the results of a plugin may still take.

    Seconds of the processor: by the wall clock a busy machine would decide verdicts.
    """

    seconds: float = 120.0


class JudgingStopped(ReporterError):
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
        self._lock = threading.Lock()  # of what follows
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None  # the last one

    def judge(
        self,
        task: Task,
        body: IO[bytes],
        listing: IO[bytes] | None = None,
        *,
        budget: Budget,
        digest: str = "",
    ) -> Judgement:
        """Read the body and say what is in it; its items are written to `listing`.

        Both are files without a buffer of ours; the body is read from its beginning. A body whose
        reading fails is unknown, and so is one whose reader was killed some times, or with whose
        reading we were; it is known by its `digest`. So is all that the `budget`, which pays for
        it, has no room for. Raises `JudgingStopped`, and OSError when no process can be started.
        """
        with self._turn:
            if budget.seconds <= 0:
                return Judgement(note=USED_UP, complete=False)
            name = f"{digest}.{task.result_format}{'' if listing is None else '.items'}"
            noted = self._begun / name if self._begun is not None and digest else None
            if noted is not None and not _begin(noted):
                return Judgement(note=_DEADLY, complete=False)
            try:
                return self._read(task, body, listing, budget)
            finally:
                if noted is not None:
                    with contextlib.suppress(OSError):
                        noted.unlink()

    def _read(
        self, task: Task, body: IO[bytes], listing: IO[bytes] | None, budget: Budget
    ) -> Judgement:
        """Read it, and again if somebody has killed the reader: that says nothing about it."""
        begin = 0 if listing is None else listing.tell()
        for attempt in range(_TRIES):
            if attempt:
                self._stopped.wait(_PAUSE)
                os.lseek(body.fileno(), 0, os.SEEK_SET)  # the reader's position is this one
                if listing is not None:
                    listing.seek(begin)
                    listing.truncate()
            before = _processor_seconds()
            code, answer = self._answer(task, budget.seconds, body, listing)
            if code == 0:
                head, _, shown = answer.partition(b"\n")
                try:
                    found = Judgement(**json.loads(head), not_passed=shown)
                except (ValueError, TypeError):  # no answer: its memory ended as it was written
                    return Judgement(note=TOO_MUCH, complete=False)
                # Without what the interpreter takes to start: many small results cost little.
                budget.seconds -= found.seconds
                return found
            if code == -signal.SIGXCPU:
                budget.seconds = 0.0
                return Judgement(note=USED_UP, complete=False)
            budget.seconds -= _processor_seconds() - before
            if code > 0:
                return Judgement(note=TOO_MUCH, complete=False)
            log.get().warning("The process that reads a result was killed", signal=-code)
        return Judgement(note=_KILLED, complete=False)

    def _answer(
        self, task: Task, seconds: float, body: IO[bytes], listing: IO[bytes] | None
    ) -> tuple[int, bytes]:
        """Return how a process that reads it ended, and what it wrote."""
        passed = () if listing is None else (listing.fileno(),)
        what = json.dumps((asdict(task), seconds))
        with self._lock:
            if self._stopped.is_set():
                raise JudgingStopped("stopped before a result was judged")
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _PROGRAM, what, "".join(map(str, passed))],
                stdin=body,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=passed,
                start_new_session=True,  # what ends our group's processes is not meant for it
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        with self._process as process:
            answer, _ = process.communicate()
        if self._stopped.is_set():
            raise JudgingStopped("stopped while a result was judged")
        return process.returncode, answer

    def stop(self) -> None:
        """End what is being read, and read nothing more."""
        with self._lock:
            self._stopped.set()
            if self._process is not None:
                self._process.kill()  # nothing happens to one that has ended


def _processor_seconds() -> float:
    """Return what the processes that have ended took."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _begin(noted: Path) -> bool:
    """Note that a result is about to be read; false if that was begun too often."""
    # On a full disk nothing can be noted, and it is read all the same.
    with contextlib.suppress(OSError), noted.open("ab", buffering=0) as file:
        if file.tell() >= _TRIES:
            return False
        file.write(b".")
    return True
