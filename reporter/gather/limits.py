"""What a gatherer may leave: how much, how many files, and how they may look.

Output over a limit is cut off, and nothing that it leaves may cost the others' output: an archive
is made of directories that can be entered and files that can be read.
"""

import argparse
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

_DEEPEST = 64
_MOVED = ".removed-by-status-reporter-"
_OWNER_READS = 0o600
_OWNER_ENTERS = 0o700
_RECORD = 64 * 1024  # bytes: more than any `gather.json`
_FRAME = 2  # its directory and `gather.json`


@dataclass(frozen=True, slots=True)
class GathererLimits:
    """Limits of one gatherer: seconds that it may take, bytes and files that it may write.

    The totals are those of all gatherers together. An aggregator with its default settings takes an
    archive of that size, whatever is in it.
    """

    seconds: float = 60.0
    bytes: int = 64 * 1024 * 1024
    files: int = 10_000
    total_bytes: int = 384 * 1024 * 1024
    total_files: int = 18_000

    def after(self, left: "Left") -> "GathererLimits":
        """Return what is left for the next ones of what all together may write."""
        return replace(
            self,
            total_bytes=max(0, self.total_bytes - left.bytes - _RECORD),
            total_files=max(0, self.total_files - left.files - _FRAME),
        )

    @property
    def next_one(self) -> "GathererLimits":
        """What the next one may write."""
        return replace(
            self,
            bytes=min(self.bytes, self.total_bytes),
            files=min(self.files, self.total_files),
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for limits; `chosen_limits` reads them."""
    default = GathererLimits()
    for name, what, value in (
        ("seconds", "how long a gatherer may run", default.seconds),
        ("bytes", "how much a gatherer may write", default.bytes),
        ("files", "how many files a gatherer may write", default.files),
        ("total-bytes", "how much all gatherers may write", default.total_bytes),
        ("total-files", "how many files all gatherers may write", default.total_files),
    ):
        parser.add_argument(
            f"--{name}",
            metavar="N",
            type=_positive,
            default=int(value),
            help=f"{what} (default: %(default)s)",
        )


def chosen_limits(options: argparse.Namespace) -> GathererLimits:
    """Return what the options of `add_options` say."""
    return GathererLimits(
        options.seconds,
        options.bytes,
        options.files,
        options.total_bytes,
        options.total_files,
    )


def _positive(written: str) -> int:
    value = int(written) if written.isascii() and written.isdigit() and len(written) < 16 else 0
    if not value:
        raise argparse.ArgumentTypeError(f"not a positive number: {written[:40]!r}")
    return value


@dataclass(frozen=True, slots=True)
class Left:
    """What a gatherer has left, and whether some of it was cut off or removed.

    `removed` counts links, sockets, devices and pipes.
    """

    bytes: int
    files: int
    truncated: bool = False
    removed: int = 0


def exceeded(directory: Path, limits: GathererLimits, ours: Collection[str] = ()) -> str:
    """Say which limit the output is over, `bytes` or `files`; empty where it is over none.

    Looks no further than that; what vanishes meanwhile does not count, nor do the entries of the
    directory that are called like one of `ours`.
    """
    left_out = {str(directory / name) for name in ours}
    size = files = 0
    waiting = [str(directory)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.path in left_out:
                        continue
                    files += 1
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
                    elif stat.S_ISREG(found.st_mode):
                        size += found.st_size
                    if files > limits.files:
                        return "files"
                    if size > limits.bytes:
                        return "bytes"
        except OSError:
            continue
    return ""


def settle(directory: Path, limits: GathererLimits) -> Left:
    """Bring the output within the limits, in the order of its names. Nothing may write any more.

    Raises OSError for what cannot be brought into order.
    """
    return _Settling(limits).run(directory)


class _Settling:
    def __init__(self, limits: GathererLimits) -> None:
        self._limits = limits
        self._bytes = self._files = self._removed = 0
        self._truncated = False

    def run(self, directory: Path) -> Left:
        self._below(directory, 0)
        return Left(self._bytes, self._files, self._truncated, self._removed)

    def _below(self, directory: Path, depth: int) -> None:
        for path in sorted(directory.iterdir()):
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode):
                _allow(path, found.st_mode, _OWNER_ENTERS)
                if self._files >= self._limits.files or depth >= _DEEPEST:
                    remove(path)
                    self._truncated = True
                    continue
                self._files += 1
                self._below(path, depth + 1)
            elif stat.S_ISREG(found.st_mode):
                self._file(path, found)
            else:
                path.unlink()
                self._removed += 1

    def _file(self, path: Path, found: os.stat_result) -> None:
        room = self._limits.bytes - self._bytes
        if self._files >= self._limits.files or (room <= 0 < found.st_size):
            path.unlink()
            self._truncated = True
            return
        _allow(path, found.st_mode, _OWNER_READS)
        if found.st_size > room:
            os.truncate(path, room)
            self._truncated = True
        self._files += 1
        self._bytes += min(found.st_size, room)


def remove(directory: Path) -> None:
    """Remove a directory with all that is in it, however deep and whatever its modes.

    Deep directories are moved up first: the kernel takes no path of more than 4,096 bytes.
    """
    _allow(directory, directory.lstat().st_mode, _OWNER_ENTERS)
    waiting = [directory]
    moved = 0
    while waiting:
        here = waiting.pop()
        with os.scandir(here) as entries:
            inside = list(entries)
        for entry in inside:
            path = here / entry.name
            if not entry.is_dir(follow_symlinks=False):
                path.unlink()
                continue
            _allow(path, entry.stat(follow_symlinks=False).st_mode, _OWNER_ENTERS)
            if here != directory:
                moved += 1
                path = path.rename(directory / f"{_MOVED}{moved}")
            waiting.append(path)
        if here != directory:
            here.rmdir()
    directory.rmdir()


def _allow(path: Path, mode: int, wanted: int) -> None:
    if mode & wanted != wanted:
        path.chmod(stat.S_IMODE(mode) | wanted)
