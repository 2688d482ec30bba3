"""Creating what an archive holds, inside one new directory and nowhere else.

The archive is read twice: first to see whether all of it may be taken, then to create it. So one
that is refused never touches the disk. Everything is made relative to descriptors of directories
made here, without following links, and no link is ever made: nothing could lead out. Blocks: for
threads.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from reporter.aggregator.store.files import (
    DIRECTORY,
    NEW_FILE,
    Step,
    no_step,
    open_below,
    write_all,
)
from reporter.aggregator.uploads.limits import Limits
from reporter.untar import Archive, Caps, Kind, check

_CHECK_BYTES: Final = 8 * 1024 * 1024  # of new content between two looks at the free space
_FILE_COST: Final = 4096  # what even an empty file takes


def unpack(
    fd: int,
    size: int,
    root: Path,
    limits: Limits,
    *,
    deadline: float,
    clock: Callable[[], float],
    room: Callable[[], None] = lambda: None,
    step: Step = no_step,
) -> tuple[str, ...]:
    """Unpack the gzip'd tar in the open file `fd` of `size` bytes into the new directory `root`.

    Returns notes on what was not created. `room` is called now and then and may raise OSError.
    Raises `NotTar` for sound gzip without a tar, `BadArchive` for what else is not allowed, both
    before `root` is there; and OSError, after which the caller removes what there is of it.
    """
    caps = Caps(
        limits.archive_members,
        limits.archive_file_bytes,
        limits.archive_bytes,
        limits.archive_ratio,
        limits.archive_free_bytes,
        limits.archive_extended_bytes,
        limits.archive_path_bytes,
        seconds=deadline - clock(),
    )
    notes = check(_Body(fd), size, caps, clock=clock).notes

    root.mkdir(mode=0o700)
    tree = _NewTree(root, room, step)
    try:
        archive = Archive(_Body(fd), size, caps, clock)
        for member in archive:
            if member.kind is Kind.DIRECTORY:
                tree.enter(member.path)
            elif member.kind is Kind.FILE:
                tree.create(member.path, archive.content())
    finally:
        tree.close()
    return notes


class _Body:
    """An open file, read from its start."""

    def __init__(self, fd: int) -> None:
        self._fd, self._at = fd, 0

    def read(self, size: int) -> bytes:
        """Read on. Raises OSError."""
        data = os.pread(self._fd, size, self._at)
        self._at += len(data)
        return data


class _Made(dict[bytes, "_Made"]):
    """The directories that were made in a directory."""


class _NewTree:
    """A directory that is being filled with members whose names go together."""

    def __init__(self, root: Path, room: Callable[[], None], step: Step) -> None:
        self._root = os.open(root, DIRECTORY)
        self._open: tuple[bytes, ...] = ()  # the directory that `_fd` is
        self._fd = self._root
        self._made = _Made()
        self._room, self._step = room, step
        self._unchecked = 0

    def close(self) -> None:
        """Close the descriptors."""
        self._leave()
        os.close(self._root)

    def enter(self, path: tuple[bytes, ...]) -> None:
        """Make `path` the open directory, creating what is missing."""
        if path == self._open:
            return
        made = self._made
        for depth, part in enumerate(path):
            if part not in made:
                self._go(path[:depth])
                os.mkdir(part, 0o700, dir_fd=self._fd)
                made[part] = _Made()
            made = made[part]
        self._go(path)

    def create(self, path: tuple[bytes, ...], content: Iterable[memoryview]) -> None:
        """Create a file; of two with the same name the last wins."""
        self.enter(path[:-1])
        self._step("unpack")
        try:
            fd = os.open(path[-1], NEW_FILE, 0o600, dir_fd=self._fd)
        except FileExistsError:
            os.unlink(path[-1], dir_fd=self._fd)
            fd = os.open(path[-1], NEW_FILE, 0o600, dir_fd=self._fd)
        self._unchecked += _FILE_COST
        try:
            for piece in content:
                write_all(fd, piece)
                self._unchecked += len(piece)
                if self._unchecked >= _CHECK_BYTES:
                    self._unchecked = 0
                    self._room()
        finally:
            os.close(fd)

    def _go(self, path: tuple[bytes, ...]) -> None:
        if path == self._open:
            return
        if path[:-1] == self._open:
            fd = os.open(path[-1], DIRECTORY, dir_fd=self._fd)
        else:
            fd = open_below(self._root, path)
        self._leave()
        self._fd, self._open = fd, path

    def _leave(self) -> None:
        if self._fd != self._root:
            fd, self._fd, self._open = self._fd, self._root, ()
            os.close(fd)
