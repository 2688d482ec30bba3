"""Running gatherers: each in a directory of its own, one after the other, within limits.

One that reaches a limit is killed with its process group and has failed; what it has written stays
as it is, unless it is more than all together may write.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from reporter.collect.limits import GathererLimits, Output, measure
from reporter.collect.record import COMPLETE, FAILED, NOT_APPLICABLE, PARTIAL, GathererRecord

RECORD: Final = "gather.json"
STDOUT: Final = "stdout.txt"
_MEANINGS: Final = {0: COMPLETE, 1: PARTIAL, 2: NOT_APPLICABLE}
_STDERR: Final = 4096  # bytes that are kept
_LOOK: Final = 0.1  # seconds between two looks at the output
_SHARE: Final = 10  # looks take at most one part in so many of the time
_PATIENCE: Final = 2.0  # seconds; a process stuck in the kernel cannot be waited for


class Stop(Protocol):
    """Whether to end."""

    def is_set(self) -> bool:
        """Return whether to end."""


@dataclass(frozen=True, slots=True)
class Gatherer:
    """A program that gathers: the name of its output and its command line."""

    name: str
    command: tuple[str, ...]


def gatherers(directory: Path, host: Path) -> list[Gatherer]:
    """Return the gatherers in a directory, in the order of their names. Raises OSError.

    `10-disks` writes `disks`; the second of a name keeps its number. Hidden files do not count.
    Nothing that lies on the host is one.
    """
    found: dict[str, Gatherer] = {}
    for path in sorted(directory.iterdir()):
        if path.name.startswith(".") or _lies_on(host, path):
            continue
        number, dash, rest = path.name.partition("-")
        name = rest if dash and number.isdigit() and rest and rest not in found else path.name
        found[name] = Gatherer(name, (str(path.absolute()),))
    return list(found.values())


def run_all(
    programs: Sequence[Gatherer],
    out: Path,
    environ: Mapping[str, str],
    host: Path,
    stop: Stop,
    *,
    limits: GathererLimits | None = None,
) -> Iterator[GathererRecord]:
    """Run gatherers, and yield a record after each; after `stop` no further one is started.

    Raises OSError when `out` cannot be written to.
    """
    limits = limits or GathererLimits()
    for program in programs:
        if stop.is_set():
            return
        place = out / program.name
        place.mkdir(exist_ok=True)
        told = {
            **environ,
            "GATHER_OUT": str(place),
            "GATHER_HOST_ROOT": str(host),
            "GATHER_DEADLINE": str(int(time.time() + limits.seconds)),
        }
        before = measure(out)
        most = limits.beside(before)
        run = _Run(program, out, told, stop, seconds=limits.seconds, most=most)
        record = run.run(largest_file=max(0, most.bytes - before.bytes))
        yield _written(_counted(record, out, before, most, limits.total), place)


class _Run:
    """One run of one gatherer, which may bring what is in `out` to `most`."""

    def __init__(
        self,
        program: Gatherer,
        out: Path,
        environ: Mapping[str, str],
        stop: Stop,
        *,
        seconds: float,
        most: Output,
    ) -> None:
        self._program, self._out, self._environ = program, out, environ
        self._stop, self._most = stop, most
        self._began = time.monotonic()
        self._end = self._began + seconds

    def run(self, *, largest_file: int) -> GathererRecord:
        """Start it, wait for its end, and end what it has left in its group."""
        place = self._out / self._program.name
        with tempfile.TemporaryFile(dir=self._out) as stderr:
            try:
                with (place / STDOUT).open("xb") as stdout, _files_up_to(largest_file):
                    process = subprocess.Popen(  # noqa: S603
                        self._program.command,
                        stdin=subprocess.DEVNULL,
                        stdout=stdout,
                        stderr=stderr,
                        env=self._environ,
                        cwd=place,
                        process_group=0,
                    )
            except OSError as error:
                why = f"cannot be started: {os.strerror(error.errno or 0)}"
                record = GathererRecord(self._program.name, FAILED, error=why)
            else:
                try:
                    why = self._watch(process)
                finally:
                    code = _finish(process)
                record = self._record(why, code)
            with suppress(OSError):
                if not (place / STDOUT).stat().st_size:
                    (place / STDOUT).unlink()
            said = os.pread(stderr.fileno(), _STDERR, 0).decode(errors="replace")
            return replace(record, seconds=time.monotonic() - self._began, stderr=said)

    def _watch(self, process: "subprocess.Popen[bytes]") -> str:
        """Wait for its end; return the limit that it is over, or `stop`."""
        next_look = self._began + _LOOK
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, min(_LOOK, self._end - time.monotonic())))
                return ""
            now = time.monotonic()
            if self._stop.is_set():
                return "stop"
            if now >= self._end:
                return "seconds"
            if now >= next_look:
                if over := measure(self._out, self._most).over(self._most):
                    return over
                took = time.monotonic() - now
                next_look = now + max(_LOOK, _SHARE * took)

    def _record(self, why: str, code: int | None) -> GathererRecord:
        name = self._program.name
        if code is None or why:
            error = "cannot be killed" if code is None else ""
            limit, stopped = ("", True) if why == "stop" else (why, False)
            return GathererRecord(name, FAILED, limit=limit, stopped=stopped, error=error)
        if code < 0:
            limit = "bytes" if code == -signal.SIGXFSZ else ""
            return GathererRecord(name, FAILED, signal=-code, limit=limit)
        return GathererRecord(name, _MEANINGS.get(code, FAILED), exit=code)


def _finish(process: "subprocess.Popen[bytes]") -> int | None:
    """End it with its group; return its exit code.

    Or None if it does not end: on a disk or a mount that does not answer nothing can kill it.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        return process.wait(_PATIENCE)
    return None


@contextmanager
def _files_up_to(size: int) -> Iterator[None]:
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


def _counted(
    record: GathererRecord, out: Path, before: Output, most: Output, total: Output
) -> GathererRecord:
    """Say what it has left. That goes if it is more than all of them may write."""
    found = measure(out, readable=True)
    if limit := found.over(most):  # perhaps only since the last look
        record = replace(record, status=FAILED, limit=record.limit or limit)
    if found.over(total):
        shutil.rmtree(out / record.name, ignore_errors=True)
        record = replace(record, error="output removed: the limit of all gatherers is reached")
        found = measure(out)
    size, files = max(0, found.bytes - before.bytes), max(0, found.files - before.files)
    return replace(record, bytes=size, files=files)


def _written(record: GathererRecord, place: Path) -> GathererRecord:
    try:
        place.mkdir(exist_ok=True)  # it may have removed its directory
        text = json.dumps(record.document(), ensure_ascii=False, indent=1)
        (place / RECORD).write_bytes(text.encode("utf-8", "replace") + b"\n")
    except OSError as error:
        record = replace(record, status=FAILED, error=f"{RECORD} not written: {error.strerror}")
    return record


def _lies_on(host: Path, path: Path) -> bool:
    root = host.resolve()
    return root != Path("/") and root in path.resolve().parents
