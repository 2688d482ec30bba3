"""One gatherer: started, watched until its end or a limit, and ended with all that it started."""

import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from reporter.gather.limits import exceeded
from reporter.gather.record import COMPLETE, FAILED, NOT_APPLICABLE, PARTIAL, GathererRecord
from reporter.gather.shelf import STDOUT, Site
from reporter.runtime.orphans import end_orphans

_MEANINGS: Final = {0: COMPLETE, 1: PARTIAL, 2: NOT_APPLICABLE}
_STDERR: Final = 4096  # bytes that are kept
_LOOK: Final = 0.1  # seconds between two looks at the output
_SHARE: Final = 10  # looks take at most one part in so many of the time
_PATIENCE: Final = 2.0  # seconds; a process stuck in the kernel cannot be waited for
_FRAME: Final = 2  # directories that are ours: the one to work in, and the output's in it


class Stop(Protocol):
    """Whether to end."""

    def is_set(self) -> bool:
        """Return whether to end."""


@dataclass(frozen=True, slots=True)
class Gatherer:
    """A program that gathers: the name of its output and its command line."""

    name: str
    command: tuple[str, ...]


class Run:
    """One run of one gatherer."""

    def __init__(
        self,
        program: Gatherer,
        place: Path,
        site: Site,
        environ: Mapping[str, str],
        stop: Stop,
        *,
        before_exec: Callable[[], None] | None = None,
    ) -> None:
        self._program, self._place, self._environ = program, place, environ
        self._before_exec = before_exec
        self._site, self._stop, self._limits = site, stop, site.limits
        self._measure = replace(site.limits, files=site.limits.files + _FRAME)
        self._began = time.monotonic()
        self._end = self._began + site.limits.seconds
        self._stderr = b""

    def run(self) -> GathererRecord:
        """Start it, wait for its end, and end what it has left behind."""
        try:
            with (self._place / STDOUT).open("xb") as stdout, _largest_file(self._limits.bytes):
                process = subprocess.Popen(  # noqa: S603
                    self._program.command,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    env=self._environ,
                    cwd=self._place,
                    process_group=0,
                    preexec_fn=self._before_exec,  # noqa: PLW1509 - only where no thread runs
                )
        except OSError as error:
            return self._record(FAILED, error=f"cannot be started: {os.strerror(error.errno or 0)}")
        try:
            why = self._watch(process)
        finally:
            code = self._finish(process)
        if code is None:
            return self._record(FAILED, stopped=why == "stop", error="cannot be killed")
        if why == "stop":
            return self._record(FAILED, stopped=True)
        if why:
            return self._record(FAILED, limit=why)
        if code == -signal.SIGXFSZ:
            return self._record(FAILED, signal=-code, limit="bytes")
        if code < 0:
            return self._record(FAILED, signal=-code)
        return self._record(_MEANINGS.get(code, FAILED), exit=code)

    def _watch(self, process: "subprocess.Popen[bytes]") -> str:
        """Wait for its end; return the limit that it is over, or `stop`."""
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        poll = select.poll()
        poll.register(process.stderr, select.POLLIN)
        next_look = self._began + _LOOK
        open_still = True
        while True:
            pause = max(0.0, min(_LOOK, self._end - time.monotonic()))
            if open_still:
                if poll.poll(pause * 1000):
                    open_still = self._listen(process)
            else:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(pause)
            if process.poll() is not None:
                self._listen(process)
                return ""
            now = time.monotonic()
            if self._stop.is_set():
                return "stop"
            if now >= self._end:
                return "seconds"
            if now >= next_look:
                if over := exceeded(self._site.out, self._measure, self._site.ours):
                    return over
                took = time.monotonic() - now
                next_look = now + max(_LOOK, _SHARE * took)

    def _listen(self, process: "subprocess.Popen[bytes]") -> bool:
        """Take what it says on standard error; return whether more may come."""
        assert process.stderr is not None
        for _ in range(16):
            piece = process.stderr.raw.read(65536)  # type: ignore[attr-defined]
            if piece is None:
                return True
            if not piece:
                return False
            self._stderr += piece[: _STDERR - len(self._stderr)]
        return True

    def _finish(self, process: "subprocess.Popen[bytes]") -> int | None:
        """End it and all that it started, wherever that went; return its exit code.

        Or None if it does not end: on a disk or a mount that does not answer nothing can kill it.
        """
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        code = None
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_PATIENCE)
        end_orphans()
        if process.stderr is not None:
            process.stderr.close()
        return code

    def _record(self, status: str, **more: Any) -> GathererRecord:
        return GathererRecord(
            self._program.name,
            status,
            seconds=time.monotonic() - self._began,
            stderr=self._stderr.decode(errors="replace"),
            **more,
        )


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """Let processes that are started meanwhile write no larger files; one write can fill a disk.

    One byte more tells a file that was cut off from one that just fits.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    lower = size + 1 if soft == resource.RLIM_INFINITY else min(size + 1, soft)
    resource.setrlimit(resource.RLIMIT_FSIZE, (lower, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
