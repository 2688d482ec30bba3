"""Running gatherers: each for itself, one after the other, within limits.

A gatherer works in a directory of its own. When it has ended, with all that it started, its output
is brought within the limits and put where the next one does not come across it; all get their final
names at the end.
"""

import json
import os
import resource
import select
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from reporter.gather.limits import Limits, exceeded, remove, settle
from reporter.gather.record import COMPLETE, FAILED, NOT_APPLICABLE, PARTIAL, Record
from reporter.runtime.orphans import adopt, end_orphans

RECORD: Final = "gather.json"
STDOUT: Final = "stdout.txt"
_MEANINGS: Final = {0: COMPLETE, 1: PARTIAL, 2: NOT_APPLICABLE}
_NAMED: Final = 20
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


@dataclass(frozen=True, slots=True)
class _Site:
    """Where the output goes, the shelf in it, and the names in it that no gatherer has made."""

    out: Path
    shelf: Path
    ours: frozenset[str]
    limits: Limits


def run_all(
    programs: Sequence[Gatherer],
    out: Path,
    environ: Mapping[str, str],
    host: Path,
    stop: Stop,
    *,
    limits: Limits | None = None,
) -> Iterator[Record]:
    """Run gatherers, and yield a record after each; after `stop` no further one is started.

    The output has its names when the iterator has ended. Nothing else may be a child of this
    process: all of them are ended. Raises OSError when `out` cannot be written to.
    """
    adopt()
    limits = limits or Limits()
    shelf = Path(tempfile.mkdtemp(prefix=".gathered-", dir=out))
    done: list[str] = []
    try:
        site = _Site(out, shelf, frozenset(each.name for each in out.iterdir()), limits)
        for program in programs:
            if stop.is_set():
                return
            work = Path(tempfile.mkdtemp(prefix=".gathering-", dir=out))
            place = work / program.name
            place.mkdir()
            told = {
                **environ,
                "GATHER_OUT": str(place),
                "GATHER_HOST_ROOT": str(host),
                "GATHER_DEADLINE": str(int(time.time() + limits.seconds)),
            }
            # All have the same user. Closed, the others' output is at least not hit by accident.
            shelf.chmod(0)
            record = _Run(program, place, site, told, stop).run()
            _reopen(shelf)
            done.append(program.name)
            yield _keep(record, work, site)
    finally:
        _put_in_place(done, shelf, out)


def _keep(record: Record, work: Path, site: _Site) -> Record:
    """Put the output on the shelf, with the record in it; whatever the gatherer has done to it."""
    try:
        if not _reopen(work):
            record = replace(record, status=FAILED, error="output lost: its directory was removed")
        beside = [each for each in work.iterdir() if each.name != record.name]
        beside += [each for each in site.out.iterdir() if each.name not in {*site.ours, work.name}]
        names = sorted(each.name[:255] for each in beside)
        record = replace(record, outside=tuple(names[:_NAMED]))
        for each in beside:
            _clear(each)
        record = _settled(record, work / record.name, site.limits)
        (work / record.name).rename(site.shelf / record.name)
        remove(work)
    except OSError as error:
        record = replace(record, status=FAILED, error=f"output lost: {error.strerror}")
        with suppress(OSError):
            (site.shelf / record.name).mkdir(exist_ok=True)
            record = _written(record, site.shelf / record.name)
    return record


def _reopen(directory: Path) -> bool:
    """Let a directory of ours be one again that can be entered; return whether it was there."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(directory.lstat().st_mode):
            directory.chmod(0o700)
            return True
        directory.unlink()
    directory.mkdir(0o700)
    return False


def _put_in_place(names: Sequence[str], shelf: Path, out: Path) -> None:
    """Give the outputs their names. Raises OSError, but not before all have been tried."""
    lost: OSError | None = None
    _reopen(shelf)
    for name in names:
        try:
            (shelf / name).rename(out / name)
        except OSError as error:
            lost = lost or error
    remove(shelf)
    if lost is not None:
        raise lost


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink(missing_ok=True)


def _settled(record: Record, place: Path, limits: Limits) -> Record:
    """Bring the output within the limits, and write the record into it."""
    with suppress(OSError):
        # As far as it goes: what cannot be kept must not cost what can.
        if not place.is_dir() or place.is_symlink():
            place.unlink(missing_ok=True)
            place.mkdir()
        place.chmod(0o700)
        with suppress(FileNotFoundError):
            if not (place / STDOUT).stat().st_size:
                (place / STDOUT).unlink()
        try:
            record = replace(record, left=settle(place, limits))
        except OSError as error:
            remove(place)
            place.mkdir()
            record = replace(record, status=FAILED, error=f"output lost: {error.strerror}")
    cut_off = record.left.truncated and record.status == COMPLETE
    if cut_off or (record.limit and record.left.files):
        record = replace(record, status=PARTIAL)
    return _written(record, place)


def _written(record: Record, place: Path) -> Record:
    try:
        _clear(place / RECORD)
        document = json.dumps(record.document(), ensure_ascii=False, indent=1)
        (place / RECORD).write_bytes(document.encode("utf-8", "replace") + b"\n")
    except OSError as error:
        record = replace(record, error=f"{RECORD} not written: {error.strerror}")
    return record


class _Run:
    """One run of one gatherer."""

    def __init__(
        self,
        program: Gatherer,
        place: Path,
        site: _Site,
        environ: Mapping[str, str],
        stop: Stop,
    ) -> None:
        self._program, self._place, self._environ = program, place, environ
        self._site, self._stop, self._limits = site, stop, site.limits
        self._measure = replace(site.limits, files=site.limits.files + _FRAME)
        self._began = time.monotonic()
        self._end = self._began + site.limits.seconds
        self._stderr = b""

    def run(self) -> Record:
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

    def _record(self, status: str, **more: Any) -> Record:
        return Record(
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


def _lies_on(host: Path, path: Path) -> bool:
    root = host.resolve()
    return root != Path("/") and root in path.resolve().parents
