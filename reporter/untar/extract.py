"""Creating what an archive holds, inside one new directory and nowhere else.

Everything is made relative to descriptors of directories made here, without following links, and
no link is ever made: nothing can lead out. A tree may be as deep as a hostile archive makes it:
nothing recurses, nothing keeps a descriptor per level, no path is longer than the kernel takes.
"""

import contextlib
import errno
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reporter.untar.archive import Archive
from reporter.untar.members import Caps, Kind, Parts
from reporter.untar.stream import Source

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_BYTES: Final = 2048  # well below PATH_MAX, which counts for every single call


@dataclass(frozen=True, slots=True)
class Extracted:
    """The number of files, and notes on what was not created."""

    files: int
    notes: tuple[str, ...]


def extract(
    source: Source,
    size: int,
    target: Path,
    caps: Caps,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Extracted:
    """Unpack an archive of `size` bytes into the new directory `target`, all of it or nothing.

    Modes are the user's own, whatever the archive says. Raises `NotTar`, `BadArchive`, and OSError
    also if `target` exists.
    """
    if target.exists() or target.is_symlink():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = tempfile.mkdtemp(prefix=".extract.", dir=target.parent)
    top = os.open(beside, _DIRECTORY)
    try:
        os.mkdir("tree", dir_fd=top)
        archive = Archive(source, size, caps, clock)
        root = os.open("tree", _DIRECTORY, dir_fd=top)
        try:
            files = _fill(root, archive)
        finally:
            os.close(root)
        os.rename("tree", target, src_dir_fd=top)
    finally:
        with contextlib.suppress(OSError):  # when all went well it is not there any more
            _remove(top, "tree")
        os.close(top)
        with contextlib.suppress(OSError):
            Path(beside).rmdir()
    return Extracted(files, archive.notes)


def _fill(root: int, archive: Archive) -> int:
    tree, files = _Tree(root), 0
    for member in archive:
        if member.kind is Kind.DIRECTORY:
            with tree.directory(member.path):
                continue
        if member.kind is Kind.FILE:
            *above, name = member.path
            with tree.directory(tuple(above)) as fd:
                if member.again:
                    os.unlink(name, dir_fd=fd)
                # It fails where a file system ignores the case in which two names differ.
                with os.fdopen(os.open(name, _NEW_FILE, 0o666, dir_fd=fd), "wb") as file:
                    file.writelines(archive.content())
            files += not member.again
    return files


_Directory = dict[bytes, "_Directory"]


class _Tree:
    """The directory `root`, and those that were made in it."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._made: _Directory = {}

    @contextlib.contextmanager
    def directory(self, path: Parts) -> Iterator[int]:
        """Open the directory `path`, creating what is missing."""
        made, depth = self._made, 0
        while depth < len(path) and path[depth] in made:
            made = made[path[depth]]
            depth += 1
        fd = _open_below(self._root, path[:depth])
        try:
            for part in path[depth:]:
                os.mkdir(part, dir_fd=fd)
                made[part] = {}
                made = made[part]
                above, fd = fd, os.open(part, _DIRECTORY, dir_fd=fd)
                os.close(above)
            yield fd
        finally:
            os.close(fd)


def _open_below(root: int, path: Parts) -> int:
    """Open a directory at any depth below `root`."""
    fd = os.dup(root)
    while path:
        lengths = itertools.accumulate(len(part) + 1 for part in path)
        fitting = itertools.takewhile(lambda length: length <= _PATH_BYTES, lengths)
        count = sum(1 for _ in fitting)
        try:
            deeper = os.open(b"/".join(path[:count]), _DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd, path = deeper, path[count:]
    return fd


def _remove(top: int, name: str) -> None:
    """Remove a tree from the private directory `top`, to which its subdirectories move first."""
    waiting, moved = [name], 0
    while waiting:
        current = waiting.pop()
        fd = os.open(current, _DIRECTORY, dir_fd=top)
        try:
            with os.scandir(fd) as entries:
                # Complete before the first change: what a scan shows after one is undefined.
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for child, is_directory in found:
                if is_directory:
                    moved += 1
                    os.rename(child, f"{moved}", src_dir_fd=fd, dst_dir_fd=top)
                    waiting.append(f"{moved}")
                else:
                    os.unlink(child, dir_fd=fd)
        finally:
            os.close(fd)
        os.rmdir(current, dir_fd=top)
