"""Creating what an archive holds, inside one new directory and nowhere else.

Everything is made relative to descriptors of directories made here, without following links, and
no link is ever made: nothing can lead out. A tree may be as deep as a hostile archive makes it:
nothing recurses, nothing keeps a descriptor per level, no path is longer than the kernel takes.
"""

import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reporter.untar.archive import Archive
from reporter.untar.values import Caps, Kind, Source

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
        files = _fill(os.open("tree", _DIRECTORY, dir_fd=top), archive)
        os.rename("tree", target, src_dir_fd=top)
    finally:
        with contextlib.suppress(OSError):  # when all went well it is not there any more
            _remove(top, "tree")
        os.close(top)
        with contextlib.suppress(OSError):
            Path(beside).rmdir()
    return Extracted(files, archive.notes)


def _fill(root: int, archive: Archive) -> int:
    tree, files = _NewTree(root), 0
    try:
        for member in archive:
            if member.kind is Kind.DIRECTORY:
                tree.enter(member.path)
            elif member.kind is Kind.FILE:
                tree.create(member.path, archive.content(), again=member.again)
                files += not member.again
    finally:
        tree.close()
    return files


class _Made(dict[bytes, "_Made"]):
    """The directories that were made in a directory."""


class _NewTree:
    """A directory that is being filled with members whose paths go together."""

    def __init__(self, root: int) -> None:
        self._root = self._fd = root
        self._open: tuple[bytes, ...] = ()  # the directory that `_fd` is
        self._made = _Made()

    def close(self) -> None:
        """Close the descriptors."""
        self._leave()
        os.close(self._root)

    def enter(self, path: tuple[bytes, ...]) -> None:
        """Make `path` the open directory, creating what is missing."""
        made = self._made
        for depth, part in enumerate(path):
            if part not in made:
                self._go(path[:depth])
                os.mkdir(part, dir_fd=self._fd)
                made[part] = _Made()
            made = made[part]
        self._go(path)

    def create(
        self, path: tuple[bytes, ...], content: Iterable[memoryview], *, again: bool
    ) -> None:
        """Create a file; `again`: in place of the one of that name."""
        self.enter(path[:-1])
        if again:
            os.unlink(path[-1], dir_fd=self._fd)
        # Where names differ by case alone and the file system takes them for the same, this fails.
        with os.fdopen(os.open(path[-1], _NEW_FILE, 0o666, dir_fd=self._fd), "wb") as file:
            for piece in content:
                file.write(piece)

    def _go(self, path: tuple[bytes, ...]) -> None:
        if path == self._open:
            return
        if path[:-1] == self._open:
            fd = os.open(path[-1], _DIRECTORY, dir_fd=self._fd)
        else:
            fd = _open_below(self._root, path)
        self._leave()
        self._fd, self._open = fd, path

    def _leave(self) -> None:
        if self._fd != self._root:
            fd, self._fd, self._open = self._fd, self._root, ()
            os.close(fd)


def _open_below(root: int, names: Sequence[bytes]) -> int:
    """Open a directory at any depth below `root`."""
    fd, at = os.dup(root), 0
    while at < len(names):
        end, length = at, 0
        while end < len(names) and length + len(names[end]) < _PATH_BYTES:
            length += len(names[end]) + 1
            end += 1
        try:
            below = os.open(b"/".join(names[at:end]), _DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd, at = below, end
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
