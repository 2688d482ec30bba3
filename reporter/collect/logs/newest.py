"""The newest bytes of log files, from the beginning of a line, compressed."""

import os
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from reporter.collect.rooted import Below

MOST_OF_ONE: Final = 8 * 1024 * 1024
MOST: Final = 48 * 1024 * 1024
_PIECE: Final = 256 * 1024
_LINES: Final = 50_000
_AT: Final = "var/log"
_NAMES: Final = (
    # The kernel's, the system's, those of the node's programs; not who has logged in.
    "boot.log",
    # Not cloud-init-output.log: what kubeadm prints there can join the cluster.
    "cloud-init.log",
    "containerd*.log",
    "crio*.log",
    "daemon.log",
    "dmesg",
    "docker*.log",
    "k3s*.log",
    "kern.log",
    "kube*.log",
    "messages",
    "syslog",
)
_JOURNAL: Final = f"{_AT}/journal"


@dataclass(frozen=True, slots=True)
class KeptLog:
    """What became of one log: its path on the host, and why not all of it could be kept."""

    path: str
    problem: str = ""


def newest(
    root: Path,
    out: Path,
    journalctl: str | None,
    *,
    most: int = MOST,
    most_of_one: int = MOST_OF_ONE,
) -> Iterator[KeptLog]:
    """Write `NAME.gz` for each log of the host below `root`; yield what became of it.

    `journalctl` is a program of ours that reads journals, where there is one. The last
    `most_of_one` bytes of each log are kept, and `most` compressed bytes of all together.
    """
    below, left = Below(root), most
    try:
        names = below.names(_AT)
    except OSError as error:
        if below.exists(_AT):
            yield KeptLog(f"/{_AT}", error.strerror or "")
        return
    for name in names:
        path = f"{_AT}/{name}"
        if not any(fnmatch(name, pattern) for pattern in _NAMES) or below.is_directory(path):
            continue
        try:
            with below.opened(path) as file:
                left -= _compress(_tail(file, most_of_one), out / f"{name}.gz", left)
        except OSError as error:
            yield KeptLog(f"/{path}", error.strerror or "")
        else:
            yield KeptLog(f"/{path}", "" if left > 0 else "over the limit of all logs")
    if not below.is_directory(_JOURNAL):
        return
    problem = "not read: journalctl is not installed"
    if journalctl:
        problem = _journal(journalctl, root / below.target(_JOURNAL), out / "journal.gz", left)
    yield KeptLog(f"/{_JOURNAL}", problem)


def _tail(file: int, most: int) -> Iterator[bytes]:
    """Read the last bytes of a file; one that grows meanwhile is read to where it ended."""
    size = os.fstat(file).st_size
    start = max(0, size - most)
    # One byte before: if that ends a line, the first line is whole.
    os.lseek(file, max(0, start - 1), os.SEEK_SET)
    todo = size - max(0, start - 1)
    seeking = start > 0
    while todo > 0 and (piece := os.read(file, min(_PIECE, todo))):
        todo -= len(piece)
        if seeking:
            _, newline, piece = piece.partition(b"\n")
            seeking = not newline
        yield piece


def _journal(program: str, directory: Path, to: Path, most: int) -> str:
    command = [program, f"--directory={directory}", f"--lines={_LINES}", "--no-pager", "--quiet"]
    with subprocess.Popen(  # noqa: S603
        [*command, "--output=short-iso-precise"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        _compress(iter(lambda: process.stdout.read(_PIECE), b""), to, most)  # type: ignore[union-attr]
    return f"journalctl ended with exit code {process.returncode}" if process.returncode else ""


def _compress(pieces: Iterator[bytes], to: Path, most: int) -> int:
    """Write the pieces as gzip, at most so many bytes of it and the rest of a piece."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    written = 0
    with to.open("wb") as file:
        for piece in pieces:
            if written >= most:
                break
            written += file.write(compressor.compress(piece))
        written += file.write(compressor.flush())
    return written
