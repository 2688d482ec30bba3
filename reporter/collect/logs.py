"""The gatherer `logs`: the newest lines of the host's own logs, not of containers, compressed.

A journal is written with its newest entry first, so what a limit cuts off is the oldest. `--lines`
would not do: before systemd 254, `--since` with it gives the oldest ones.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Final

from reporter.collect.rooted import Rooted
from reporter.common.text import clean

COMPLETE, PARTIAL, NOT_APPLICABLE, FAILED = 0, 1, 2, 3
MOST_OF_ONE: Final = 64 * 1024 * 1024
MOST: Final = 48 * 1024 * 1024
JOURNAL_SECONDS: Final = 20
"""How long `journalctl` may take for a part: both of them, and files, fit in a minute."""
CHROOT: Final = "LOG_CHROOT"
"""Whether the host's own `journalctl` may be run, with the host's root as its root."""
_PIECE: Final = 256 * 1024
_EMPTY: Final = 20  # bytes of nothing, compressed
_MOST_HOURS: Final = 168
WRONG_HOURS: Final = f"LOG_HOURS is not a number from 1 to {_MOST_HOURS}"
_AT: Final = "var/log"
_KUBELET_OF_RKE2: Final = "var/lib/rancher/rke2/agent/logs"
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
    hours = chosen_hours(environ)
    if not hours:
        print(WRONG_HOURS, file=sys.stderr)
        return FAILED
    chroot = environ.get(CHROOT) == "true"
    program = "journalctl" if chroot else shutil.which("journalctl", path=environ.get("PATH"))
    problems = dict(newest(root, out, program, hours, chroot=chroot))
    for path, problem in problems.items():
        if problem:
            print(f"{path}: {problem}", file=sys.stderr)
    if not problems:
        print("/var/log: no known logs found", file=sys.stderr)
        return NOT_APPLICABLE
    return PARTIAL if any(problems.values()) else COMPLETE


def chosen_hours(environ: Mapping[str, str]) -> int:
    """Return how many hours back a log is of interest; 0 where that is no number of hours."""
    written = environ.get("LOG_HOURS") or "24"
    hours = int(written) if written.isascii() and written.isdigit() and len(written) < 4 else 0
    return hours if hours <= _MOST_HOURS else 0


def newest(
    root: Path, out: Path, journalctl: str | None, hours: int, *, chroot: bool = False
) -> Iterator[tuple[str, str]]:
    """Write `NAME.gz` for each log of the host below `root`.

    Yields its path on the host, and why not all of it could be kept. `journalctl` is a program of
    ours that reads journals; with `chroot` it is the host's own, with the host's root as its root.
    Of a file the last `MOST_OF_ONE` bytes are kept, of all together `MOST` compressed ones. A file
    that only repeats a journal is left out, unless that one is younger than the last reboot.
    """
    host, problem = Rooted(root), ""
    journal = next((each for each in _JOURNALS if _has_journal(host, each)), "")
    if journal:
        problem = _journal(root, journal, journalctl, out, hours, chroot=chroot)
        yield f"/{journal}", problem
    repeats = journal == _JOURNALS[0] and not problem
    left = MOST - sum(each.stat().st_size for each in out.glob("*.gz"))
    for at in (_AT, _KUBELET_OF_RKE2):
        try:
            names = host.names(at)
        except OSError as error:
            if host.exists(at):
                yield f"/{at}", error.strerror or ""
            continue
        for name in names:
            path, to = f"{at}/{name}", out / f"{name}.gz"
            known = any(fnmatch(name, pattern) for pattern in _NAMES)
            if not known or (repeats and name in _IN_JOURNAL) or host.is_directory(path):
                continue
            try:
                with host.opened(path) as file:
                    left -= _compress(_tail(file, MOST_OF_ONE), to, left)
                    status = os.fstat(file)
                # Whoever reads it learns whether it is an old one.
                os.utime(to, (status.st_mtime, status.st_mtime))
            except OSError as error:
                yield f"/{path}", error.strerror or ""
                continue
            cut = status.st_size > MOST_OF_ONE and time.time() - status.st_mtime < hours * 3600
            problem = "older lines are missing, it is too long" if cut else ""
            yield f"/{path}", problem if left > 0 else "over the limit of all logs"


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
    with suppress(OSError):
        return bool(host.names(place))
    return host.exists(place)


def _journal(
    root: Path, place: str, program: str | None, out: Path, hours: int, *, chroot: bool
) -> str:
    """Write the entries of a journal; return why there are none, or not all of them."""
    if not program:
        return "not read: journalctl is not installed"
    if chroot and not (root / "bin").exists():  # in the plugin's Pod, with parts of the host's root
        with suppress(OSError):
            for name in ("bin", "lib", "lib64", "sbin"):
                (root / name).symlink_to(f"usr/{name}")
    at = Path("/", place) if chroot else root / Rooted(root).target(place)
    command = [program, f"--directory={at}", f"--since=-{hours}h", "--reverse", "--utc"]
    command += ["--no-pager", "--quiet", "--output=short-iso-precise"]
    begin = partial(_begin, root if chroot else None)
    parts = [
        _part([*command, *matches], out / f"{name}.gz", begin) for name, matches in _PARTS.items()
    ]
    problems = dict.fromkeys(problem for _, problem in parts if problem)
    if not problems and not any(found for found, _ in parts):
        return f"no entries in the last {hours} hours"
    return "; ".join(problems)


def _part(command: list[str], to: Path, begin: Callable[[], None]) -> tuple[bool, str]:
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
                preexec_fn=begin,  # noqa: PLW1509
            )
        except OSError as error:
            return False, f"journalctl: {error.strerror}"
        with process:
            assert process.stdout is not None
            pieces = iter(partial(process.stdout.read, _PIECE), b"")
            written = _compress(pieces, to, MOST // 4)
        said = clean(os.pread(stderr.fileno(), 1024, 0).decode(errors="replace"), 200)
    why = ""
    if written >= MOST // 4:
        why = "the oldest entries are missing, its output is too long"
    elif process.returncode == -signal.SIGALRM:
        why = f"the oldest entries are missing, it took more than {JOURNAL_SECONDS} s"
    elif process.returncode or said:  # it also passes over files that are damaged
        why = said or f"exit code {process.returncode}"
    if why and written <= _EMPTY:
        to.unlink()
    return written > _EMPTY, why and f"journalctl: {why}"


def _begin(root: Path | None) -> None:
    """In a child that is to run `journalctl`: limit its time, and change its root.

    It says by itself why it may not.
    """
    signal.alarm(JOURNAL_SECONDS)
    try:
        if root:
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
