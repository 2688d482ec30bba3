"""Running gatherers: each in a directory of its own, one after the other, within limits.

One that takes too long, or writes a file that is too large, is killed with its process group. The
rest is counted when it has ended: over a limit it has failed, and what it has written stays as it
is, unless it is more than all together may write.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from reporter.common.lifecycle import Stop

COMPLETE, PARTIAL, NOT_APPLICABLE, FAILED = "complete", "partial", "not_applicable", "failed"
RECORD: Final = "gather.json"
STDOUT: Final = "stdout.txt"
_STATUS: Final = {0: COMPLETE, 1: PARTIAL, 2: NOT_APPLICABLE}
_TOO_MUCH: Final = {
    "seconds": "took too long",
    "bytes": "wrote too much",
    "files": "wrote too many files",
}
_OMITTED_IF_EMPTY: Final = {"signal", "limit", "stopped", "error", "stderr"}
_STDERR: Final = 4096  # bytes that are kept
_PAUSE: Final = 0.2  # seconds until a stop is noticed
_PATIENCE: Final = 2.0  # seconds; a process stuck in the kernel cannot be waited for
_OWNER_NEEDS: Final = {stat.S_IFDIR: 0o700, stat.S_IFREG: 0o600}


class Output(NamedTuple):
    """What a directory has in it, or may have: bytes, and files and directories."""

    bytes: int
    files: int

    def over(self, most: "Output") -> str:
        """Say what it has too much of, `bytes` or `files`; empty where that is nothing."""
        return "files" if self.files > most.files else "bytes" if self.bytes > most.bytes else ""


def _limit(default: int, meaning: str) -> Any:
    return field(default=default, metadata={"help": f"{meaning} (default: %(default)s)"})


@dataclass(frozen=True, slots=True)
class GathererLimits:
    """Limits of one gatherer: seconds that it may take, bytes and files that it may write.

    The totals are those of all gatherers together. An aggregator with its default settings takes an
    archive of that size, whatever is in it.
    """

    seconds: int = _limit(60, "time limit of a gatherer, in seconds")
    bytes: int = _limit(64 * 1024 * 1024, "maximum bytes written by a gatherer")
    files: int = _limit(10_000, "maximum files written by a gatherer")
    total_bytes: int = _limit(384 * 1024 * 1024, "maximum bytes written by all gatherers")
    total_files: int = _limit(18_000, "maximum files written by all gatherers")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for limits; `chosen_limits` reads them."""
    for limit in fields(GathererLimits):
        parser.add_argument(
            f"--{limit.name.replace('_', '-')}",
            metavar="N",
            type=_positive,
            default=limit.default,
            help=limit.metadata["help"],
        )


def chosen_limits(options: argparse.Namespace) -> GathererLimits:
    """Return what the options of `add_options` say."""
    return GathererLimits(*(getattr(options, limit.name) for limit in fields(GathererLimits)))


def _positive(written: str) -> int:
    value = int(written) if written.isascii() and written.isdigit() and len(written) < 16 else 0
    if not value:
        raise argparse.ArgumentTypeError(f"not a positive number: {written[:40]!r}")
    return value


class Gatherer(NamedTuple):
    """A program that gathers: the name of its output and its command line."""

    name: str
    command: tuple[str, ...]


def gatherers(directory: Path, host: Path) -> list[Gatherer]:
    """Return the gatherers in a directory, in the order of their names. Raises OSError.

    `10-disks` writes `disks`; the second of a name keeps its number. Hidden files do not count.
    Nothing that lies on the host is one.
    """
    found: dict[str, Gatherer] = {}
    root = host.resolve()
    for path in sorted(directory.iterdir()):
        on_host = root != Path("/") and root in path.resolve().parents
        if path.name.startswith(".") or on_host:
            continue
        number, _, rest = path.name.partition("-")
        name = rest if number.isdigit() and rest and rest not in found else path.name
        found[name] = Gatherer(name, (str(path.absolute()),))
    return list(found.values())


@dataclass(slots=True)
class GathererRecord:
    """What became of one gatherer, as its `gather.json` has it.

    `status` is complete, partial, not_applicable or failed; `exit` its code, None if it did not end
    by itself. `limit` is the one that it has reached: seconds, bytes or files; `stopped` says that
    we were asked to end meanwhile.
    """

    name: str
    status: str = FAILED
    exit: int | None = None
    seconds: float = 0.0
    bytes: int = 0
    files: int = 0
    signal: int | None = None
    limit: str = ""
    stopped: bool = False
    error: str = ""
    stderr: str = ""

    @property
    def why(self) -> str:
        """Why it is not complete, in a few words; empty where it is."""
        said = []
        if self.limit:
            said.append(_TOO_MUCH[self.limit])
        elif self.signal:
            said.append(f"killed by signal {self.signal}")
        elif self.exit and self.status == FAILED:
            said.append(f"exit code {self.exit}")
        if self.stopped:
            said.append("stopped")
        if self.error:
            said.append(self.error)
        if not said and self.status != COMPLETE:
            said += self.stderr.splitlines()[:1]
        return "; ".join(said)

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        said = {"api_version": "v1", **asdict(self), "seconds": round(self.seconds, 3)}
        return {
            name: value for name, value in said.items() if value or name not in _OMITTED_IF_EMPTY
        }


def run_all(
    programs: Sequence[Gatherer],
    out: Path,
    environ: Mapping[str, str],
    host: Path,
    stop: Stop,
    *,
    limits: GathererLimits,
) -> Iterator[GathererRecord]:
    """Run gatherers, and yield a record after each; after `stop` no further one is started.

    Raises OSError when `out` cannot be written to.
    """
    for program in programs:
        if stop.requested:
            return
        place = out / program.name
        place.mkdir(exist_ok=True)
        before = measure(out)
        most = Output(
            min(before.bytes + limits.bytes, limits.total_bytes),
            min(before.files + limits.files, limits.total_files),
        )
        record = GathererRecord(program.name)
        began = time.monotonic()
        with tempfile.TemporaryFile(dir=out) as stderr:
            variables = {
                **environ,
                "GATHER_OUT": str(place),
                "GATHER_HOST_ROOT": str(host),
                "GATHER_DEADLINE": str(int(time.time() + limits.seconds)),
            }
            try:
                with _files_up_to(most.bytes - before.bytes):
                    process = _start(program, place, variables, stderr)
            except OSError as error:
                record.error = f"cannot be started: {os.strerror(error.errno or 0)}"
            else:
                _wait(process, record, stop, end=began + limits.seconds, out=out, most=most)
            record.stderr = os.pread(stderr.fileno(), _STDERR, 0).decode(errors="replace")
        record.seconds = time.monotonic() - began
        _count(record, out, before, most, limits)
        _write(record, place)
        yield record


def _start(
    program: Gatherer, place: Path, variables: Mapping[str, str], stderr: IO[bytes]
) -> "subprocess.Popen[bytes]":
    with (place / STDOUT).open("xb") as stdout:
        return subprocess.Popen(  # noqa: S603
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=variables,
            cwd=place,
            process_group=0,
        )


@contextmanager
def _files_up_to(size: int) -> Iterator[None]:
    """Let processes that are started meanwhile write no larger files; one write can fill a disk.

    One byte more tells a file that was cut off from one that just fits.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    lower = max(0, size) + 1
    if soft != resource.RLIM_INFINITY:
        lower = min(lower, soft)
    resource.setrlimit(resource.RLIMIT_FSIZE, (lower, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _wait(
    process: "subprocess.Popen[bytes]",
    record: GathererRecord,
    stop: Stop,
    *,
    end: float,
    out: Path,
    most: Output,
) -> None:
    """Let it end by itself until `end`, a stop or a limit; note how it did, and end its group."""
    took = 0.0
    while not (record.stopped or record.limit):
        pause = max(_PAUSE, 9 * took)  # many files take long to count
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, min(pause, end - time.monotonic())))
            break
        record.stopped, began = stop.requested, time.monotonic()
        if not record.stopped:
            record.limit = "seconds" if began >= end else measure(out, most).over(most)
        took = time.monotonic() - began
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        code = process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        # On a disk or a mount that does not answer nothing can kill it.
        record.error = "cannot be killed"
        return
    if record.stopped or record.limit:
        return
    if code < 0:
        record.signal = -code
        record.limit = "bytes" if -code == signal.SIGXFSZ else ""
    else:
        record.exit, record.status = code, _STATUS.get(code, FAILED)


def _count(
    record: GathererRecord, out: Path, before: Output, most: Output, limits: GathererLimits
) -> None:
    """Note what it has left. That goes if it is more than all of them may write."""
    with suppress(OSError):
        stdout = out / record.name / STDOUT
        if not stdout.stat().st_size:
            stdout.unlink()
    _let_owner_read(out)
    found = measure(out)
    if limit := found.over(most):  # perhaps only since the last look
        record.status, record.limit = FAILED, record.limit or limit
    if found.over(Output(limits.total_bytes, limits.total_files)):
        shutil.rmtree(out / record.name, ignore_errors=True)
        record.error = "output removed: the limit of all gatherers is reached"
        found = measure(out)
    record.bytes = max(0, found.bytes - before.bytes)
    record.files = max(0, found.files - before.files)


def measure(directory: Path, most: Output | None = None) -> Output:
    """Return what is in a directory, but look no further than to be over `most`."""
    size = files = 0
    for _, found in _entries(directory):
        files += 1
        size += found.st_size if stat.S_ISREG(found.st_mode) else 0
        if most is not None and Output(size, files).over(most):
            break
    return Output(size, files)


def _let_owner_read(directory: Path) -> None:
    """No archive can be made of a directory that cannot be entered."""
    for path, found in _entries(directory):
        needed = _OWNER_NEEDS.get(stat.S_IFMT(found.st_mode), 0)
        if found.st_mode & needed != needed:
            with suppress(OSError):
                Path(path).chmod(stat.S_IMODE(found.st_mode) | needed)


def _entries(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is in a directory, each before what is in it; not what vanishes meanwhile."""
    waiting = [str(directory)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
                    yield entry.path, found


def _write(record: GathererRecord, place: Path) -> None:
    try:
        place.mkdir(exist_ok=True)  # it may have removed its directory
        text = json.dumps(record.document(), ensure_ascii=False, indent=1)
        (place / RECORD).write_bytes(text.encode("utf-8", "replace") + b"\n")
    except OSError as error:
        record.status, record.error = FAILED, f"{RECORD} not written: {error.strerror}"
