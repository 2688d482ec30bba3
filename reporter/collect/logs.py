"""The gatherer `logs`: the newest lines of the host's own logs, not of containers, compressed."""

import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Final

from reporter.collect.rooted import Rooted

COMPLETE, PARTIAL, NOT_APPLICABLE = 0, 1, 2
MOST_OF_ONE: Final = 8 * 1024 * 1024
MOST: Final = 48 * 1024 * 1024
_PIECE: Final = 256 * 1024
_LINES: Final = 50_000
_AT: Final = "var/log"
_JOURNAL: Final = f"{_AT}/journal"
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


def main(environ: Mapping[str, str]) -> int:
    """Write the logs; return 0 if all were kept, 1 if one was not, 2 if there are none."""
    root = Path(environ.get("GATHER_HOST_ROOT") or "/")
    out = Path(environ.get("GATHER_OUT") or ".")
    problems = dict(newest(root, out, shutil.which("journalctl", path=environ.get("PATH"))))
    for path, problem in problems.items():
        if problem:
            print(f"{path}: {problem}", file=sys.stderr)
    if not problems:
        print("/var/log: no known logs found", file=sys.stderr)
        return NOT_APPLICABLE
    return PARTIAL if any(problems.values()) else COMPLETE


def newest(root: Path, out: Path, journalctl: str | None) -> Iterator[tuple[str, str]]:
    """Write `NAME.gz` for each log of the host below `root`.

    Yields its path on the host, and why not all of it could be kept. `journalctl` is a program of
    ours that reads journals, where there is one. The last `MOST_OF_ONE` bytes of each log are kept,
    and `MOST` compressed bytes of all together.
    """
    host, left = Rooted(root), MOST
    try:
        names = host.names(_AT)
    except OSError as error:
        if host.exists(_AT):
            yield f"/{_AT}", error.strerror or ""
        return
    for name in names:
        path = f"{_AT}/{name}"
        if not any(fnmatch(name, pattern) for pattern in _NAMES) or host.is_directory(path):
            continue
        try:
            with host.opened(path) as file:
                left -= _compress(_tail(file, MOST_OF_ONE), out / f"{name}.gz", left)
        except OSError as error:
            yield f"/{path}", error.strerror or ""
        else:
            yield f"/{path}", "" if left > 0 else "over the limit of all logs"
    if host.is_directory(_JOURNAL):
        problem = "not read: journalctl is not installed"
        if journalctl:
            problem = _journal(journalctl, root / host.target(_JOURNAL), out / "journal.gz", left)
        yield f"/{_JOURNAL}", problem


def _tail(file: int, most: int) -> Iterator[bytes]:
    """Read the last bytes of a file; one that grows meanwhile is read to where it ended."""
    size = os.fstat(file).st_size
    # One byte before: if that ends a line, the first line is whole.
    start = max(0, size - most - 1)
    cut = size > most
    os.lseek(file, start, os.SEEK_SET)
    todo = size - start
    while todo > 0 and (piece := os.read(file, min(_PIECE, todo))):
        todo -= len(piece)
        if cut:
            _, newline, piece = piece.partition(b"\n")
            cut = not newline
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
        _compress(iter(partial(process.stdout.read, _PIECE), b""), to, most)
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


if __name__ == "__main__":
    sys.exit(main(os.environ))
