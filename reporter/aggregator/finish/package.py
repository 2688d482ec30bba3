"""The tarball of a run: everything people get, in one file that is there whole or not at all.

Blocks, possibly for minutes: for a thread of its own.
"""

import contextlib
import hashlib
import os
import stat
import tarfile
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from reporter.aggregator.store.files import (
    NEW_FILE,
    READ_FILE,
    Step,
    walk,
    write_all,
)
from reporter.aggregator.store.layout import Layout
from reporter.errors import ReporterError
from reporter.runtime.private_file import sync_directory

_PIECE: Final = 256 * 1024
_LEVEL: Final = 6
_GZIP: Final = 31
_BLOCK: Final = 512


class PackageFailed(ReporterError):
    """The tarball could not be made. Everything it is made from is still there."""


class Interrupted(PackageFailed):
    """The process is to stop; the next one makes the tarball."""


def package_name(run: str, started_at: float) -> str:
    """The tarball's name: the same for a run whenever it is asked for."""
    return f"{datetime.fromtimestamp(started_at, UTC):%Y%m%d%H%M}_sonobuoy_{run}.tar.gz"


def package(layout: Layout, target: Path, stopping: Callable[[], bool], step: Step) -> None:
    """Write the tarball to `target`, durably; nothing is left of it if that fails.

    Raises OSError, and `PackageFailed` when something changes meanwhile or `stopping` says so.
    """
    new = layout.new_tree()
    try:
        fd = os.open(new, NEW_FILE, 0o600)
        try:
            writer = _Writer(fd, stopping, step)
            writer.add(layout.plugins)
            for folder in (layout.quarantine, layout.superseded):
                if any(folder.iterdir()):
                    writer.add(folder)
            writer.end()
            os.fsync(fd)
        finally:
            os.close(fd)
        step("package rename")
        new.rename(target)
        sync_directory(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def measure(path: Path, stopping: Callable[[], bool]) -> tuple[str, int]:
    """The SHA-256 of a file in hexadecimal, and its size. Raises OSError, `Interrupted`."""
    found, size = hashlib.sha256(), 0
    fd = os.open(path, READ_FILE)
    try:
        while data := os.read(fd, 4 * _PIECE):
            _go_on(stopping)
            found.update(data)
            size += len(data)
    finally:
        os.close(fd)
    return found.hexdigest(), size


class _Writer:
    """A gzip'd tar that is being written. Only directories and regular files get in."""

    def __init__(self, fd: int, stopping: Callable[[], bool], step: Step) -> None:
        self._fd, self._stopping, self._step = fd, stopping, step
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)

    def add(self, folder: Path) -> None:
        """Add a directory with all that is in it, under its own name."""
        for names, fd, found in walk(folder):
            self._step("package member")
            info = tarfile.TarInfo("/".join((folder.name, *map(os.fsdecode, names))))
            info.mtime = int(found.st_mtime)
            if stat.S_ISDIR(found.st_mode):
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                self._header(info)
            else:
                info.mode, info.size = 0o644, found.st_size
                self._header(info)
                self._content(names[-1], fd, found.st_size)

    def end(self) -> None:
        """Finish the tar and the gzip."""
        self._write(bytes(2 * _BLOCK))
        write_all(self._fd, self._gzip.flush())

    def _header(self, info: tarfile.TarInfo) -> None:
        # Names that are no UTF-8 are said to be binary, which readers take as they are.
        self._write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))

    def _content(self, name: bytes, directory: int, size: int) -> None:
        fd, left = os.open(name, READ_FILE, dir_fd=directory), size
        try:
            while left and (data := os.read(fd, min(left, _PIECE))):
                self._write(data)
                left -= len(data)
        finally:
            os.close(fd)
        if left:
            raise PackageFailed("a file became shorter while it was packed")
        self._write(bytes(-size % _BLOCK))

    def _write(self, data: bytes) -> None:
        _go_on(self._stopping)
        if packed := self._gzip.compress(data):
            write_all(self._fd, packed)


def _go_on(stopping: Callable[[], bool]) -> None:
    if stopping():
        raise Interrupted("stopped while the results were packed")
