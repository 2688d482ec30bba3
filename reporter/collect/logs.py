"""The gatherer `logs`: the newest lines of the host's own logs, not of containers, compressed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final

from reporter.collect.rooted import Rooted
from reporter.common.text import clean

COMPLETE, PARTIAL, NOT_APPLICABLE, FAILED = 0, 1, 2, 3
MOST_OF_ONE: Final = 8 * 1024 * 1024
MOST: Final = 48 * 1024 * 1024
JOURNAL_SECONDS: Final = 12.0
"""How long `journalctl` may take for a part: two of two journals, and files, fit in a minute."""
_PIECE: Final = 256 * 1024
_PIECES: Final = 256  # of a part of the journal
_LINES: Final = 50_000
_MOST_HOURS: Final = 168
_AT: Final = "var/log"
_JOURNALS: Final = (f"{_AT}/journal", "run/log/journal")  # the second one ends with a reboot
_PARTS: Final = {
    # By itself: a talkative program must not push out the few lines of the kernel.
    "journal-kernel": ("_TRANSPORT=kernel",),
    "journal": ("_TRANSPORT=journal", "_TRANSPORT=syslog", "_TRANSPORT=stdout"),
}
_IN_JOURNAL: Final = frozenset({"daemon.log", "dmesg", "kern.log", "messages", "syslog"})
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
    try:
        hours = chosen_hours(environ)
    except ValueError as error:
        print(error, file=sys.stderr)
        return FAILED
    program = shutil.which("journalctl", path=environ.get("PATH"))
    problems = dict(newest(root, out, program, hours))
    for path, problem in problems.items():
        if problem:
            print(f"{path}: {problem}", file=sys.stderr)
    if not problems:
        print("/var/log: no known logs found", file=sys.stderr)
        return NOT_APPLICABLE
    return PARTIAL if any(problems.values()) else COMPLETE


def chosen_hours(environ: Mapping[str, str]) -> int:
    """Return how many hours back a log is of interest. Raises ValueError with the reason."""
    written = environ.get("LOG_HOURS") or "24"
    hours = int(written) if written.isascii() and written.isdigit() and len(written) < 4 else 0
    if not 0 < hours <= _MOST_HOURS:
        raise ValueError(f"LOG_HOURS is not a number from 1 to {_MOST_HOURS}")
    return hours


def newest(root: Path, out: Path, journalctl: str | None, hours: int) -> Iterator[tuple[str, str]]:
    """Write `NAME.gz` for each log of the host below `root`.

    Yields its path on the host, and why not all of it could be kept. `journalctl` is a program of
    ours that reads journals; without it the host's own is tried, with the host's root as its root.
    Of a file the last `MOST_OF_ONE` bytes are kept, of all together `MOST` compressed ones. A file
    that only repeats a journal is left out, unless that one is younger than the last reboot.
    """
    host, journals = Rooted(root), dict[str, str]()
    for place in _JOURNALS:
        if _has_journal(host, place):
            journals[place] = _journal(root, place, journalctl, out, hours)
            if not journals[place]:
                journals = {place: ""}
                break
    for place, problem in journals.items():
        yield f"/{place}", problem
    repeated = _IN_JOURNAL if journals.get(_JOURNALS[0]) == "" else frozenset[str]()
    left = MOST - sum(each.stat().st_size for each in out.glob("*.gz"))
    try:
        names = host.names(_AT)
    except OSError as error:
        if host.exists(_AT):
            yield f"/{_AT}", error.strerror or ""
        return
    for name in names:
        path, to = f"{_AT}/{name}", out / f"{name}.gz"
        known = name not in repeated and any(fnmatch(name, pattern) for pattern in _NAMES)
        if not known or host.is_directory(path):
            continue
        try:
            with host.opened(path) as file:
                left -= _compress(_tail(file, MOST_OF_ONE), to, left)
                changed = os.fstat(file).st_mtime
            os.utime(to, (changed, changed))  # whoever reads it learns whether it is an old one
        except OSError as error:
            yield f"/{path}", error.strerror or ""
        else:
            yield f"/{path}", "" if left > 0 else "over the limit of all logs"


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


def _has_journal(host: Rooted, place: str) -> bool:
    try:
        return bool(host.names(place))
    except OSError:
        return host.exists(place)


def _journal(root: Path, place: str, program: str | None, out: Path, hours: int) -> str:
    """Write the newest entries of a journal; return why there are none, or not all of them."""
    if program:
        at, enter = root / Rooted(root).target(place), None
    else:
        at, enter = Path("/", place), partial(_enter, root)
        _link_parts(root)
    command = [program or "journalctl", f"--directory={at}", f"--since=-{hours}h"]
    command += [f"--lines={_LINES}", "--no-pager", "--quiet", "--output=short-iso-precise"]
    parts = [
        _part([*command, *matches], out / f"{name}.gz", enter) for name, matches in _PARTS.items()
    ]
    problems = dict.fromkeys(problem for _, problem in parts if problem)
    if not problems and not any(found for found, _ in parts):
        return f"no entries in the last {hours} hours"
    return "; ".join(problems)


def _part(command: list[str], to: Path, enter: Callable[[], None] | None) -> tuple[bool, str]:
    """Write what `journalctl` says; return whether it said anything, and why that is not all."""
    with tempfile.TemporaryFile(dir=to.parent) as stderr:
        try:
            process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                # No path of ours, and nothing that is secret.
                env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C"},
                preexec_fn=enter,  # noqa: PLW1509
            )
        except OSError as error:
            return False, f"journalctl: {error.strerror}"
        clock = threading.Timer(JOURNAL_SECONDS, process.kill)
        clock.daemon = True
        clock.start()
        with process:
            assert process.stdout is not None
            pieces = iter(partial(process.stdout.read, _PIECE), b"")
            first = next(pieces, b"")
            _compress(chain([first], islice(pieces, _PIECES - 1)), to, MOST // 4)
            cut = bool(process.stdout.read(1))
        clock.cancel()
        clock.join()  # no thread is left when the next child forks
        if not first:
            to.unlink()
        said = os.pread(stderr.fileno(), 1024, 0).decode(errors="replace")
    why = ""
    if cut:
        why = "its output is too long"
    elif process.returncode == -signal.SIGKILL:
        why = f"it took more than {JOURNAL_SECONDS:.0f} s"
    elif process.returncode:
        why = clean(said, 200) or f"exit code {process.returncode}"
    return bool(first), why and f"journalctl: {why}"


def _link_parts(root: Path) -> None:
    """Complete a root of which only some directories are mounted, as in the plugin's Pod."""
    if (root / "usr").is_mount() and not (root / "bin").exists():
        for name in ("bin", "lib", "lib64", "sbin"):
            with suppress(OSError):
                (root / name).symlink_to(f"usr/{name}")


def _enter(root: Path) -> None:
    """Make the host's root the root of a child, which says by itself why it may not."""
    try:
        os.chroot(root)
        os.chdir("/")
    except OSError as error:
        os.write(2, f"chroot: {error.strerror}".encode())
        os._exit(126)


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
