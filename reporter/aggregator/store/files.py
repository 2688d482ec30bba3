"""Small dealings with files and directories that the standard library has no safe form of.

Trees here may be as deep as a hostile archive makes them: nothing recurses, nothing keeps a
descriptor per level, and no path is longer than the kernel takes.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

Step = Callable[[str], None]
"""Told the name of each step that is about to be final; tests stop the process there."""

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

_PATH_BYTES: Final = 2048  # well below PATH_MAX, which counts for every single call


def no_step(name: str) -> None:
    """Nothing is to happen at this step."""


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write everything: the kernel may take less than it is given. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_new(path: Path, data: bytes) -> None:
    """Write a new file that only we may read. Raises OSError."""
    fd = os.open(path, NEW_FILE, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name; where file systems do not allow it, a copy. Raises OSError."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        # Another file system, one without links, or one with too many of them.
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(0o600)


def put(source: Path, target: Path) -> None:
    """Rename a file, or copy and remove it where that is not possible. Raises OSError."""
    try:
        source.rename(target)
    except FileNotFoundError:
        raise
    except OSError:
        link_or_copy(source, target)
        source.unlink()


def remove_tree(path: Path) -> None:
    """Remove a file or a whole tree, if it is there. Raises OSError.

    Subdirectories are first moved up beside `path`, so that its depth does not matter: the
    directory it is in must be one for unfinished things.
    """
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
    except FileNotFoundError:
        return
    top = os.open(path.parent, DIRECTORY)
    try:
        _remove_flat(top, path.name)
    finally:
        os.close(top)


def _remove_flat(top: int, name: str) -> None:
    waiting, moved = [name], 0
    while waiting:
        current = waiting.pop()
        fd = os.open(current, DIRECTORY, dir_fd=top)
        try:
            with os.scandir(fd) as entries:
                # Complete before the first change: what a scan shows after one is undefined.
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for child, is_directory in found:
                if is_directory:
                    moved += 1
                    os.rename(child, f"{name}~{moved}", src_dir_fd=fd, dst_dir_fd=top)
                    waiting.append(f"{name}~{moved}")
                else:
                    os.unlink(child, dir_fd=fd)
        finally:
            os.close(fd)
        os.rmdir(current, dir_fd=top)


def remove_content(folder: Path) -> int:
    """Remove everything in a directory for unfinished things; the number of things found."""
    found = list(folder.iterdir())
    for path in found:
        remove_tree(path)
    return len(found)


def open_below(root: int, names: Sequence[bytes]) -> int:
    """Open a directory some levels below `root`, none of which is a link, for reading.

    Only for trees that nobody else changes. Raises OSError.
    """
    fd, at = root, 0
    try:
        while True:
            end, length = at, 0
            while end < len(names) and length + len(names[end]) < _PATH_BYTES:
                length += len(names[end]) + 1
                end += 1
            below = os.open(b"/".join(names[at:end]) or b".", DIRECTORY, dir_fd=fd)
            if fd != root:
                os.close(fd)
            fd, at = below, end
            if at == len(names):
                return fd
    except OSError:
        if fd != root:
            os.close(fd)
        raise


def walk(root: Path) -> Iterator[tuple[tuple[bytes, ...], int, os.stat_result]]:
    """Every directory and regular file of a tree by name, parents first, what is no such left out.

    Yields the names from the root on, a descriptor that is valid until the next one is asked for
    (of a directory itself, of the directory that a file is in), and the status. Raises OSError.
    """
    top = os.open(root, DIRECTORY)
    try:
        waiting: list[tuple[bytes, ...]] = [()]
        while waiting:
            names = waiting.pop()
            fd = open_below(top, names)
            try:
                yield names, fd, os.fstat(fd)
                below = []
                with os.scandir(fd) as entries:
                    children = sorted(os.fsencode(entry.name) for entry in entries)
                for child in children:
                    found = os.stat(child, dir_fd=fd, follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        below.append((*names, child))
                    elif stat.S_ISREG(found.st_mode):
                        yield (*names, child), fd, found
                waiting.extend(reversed(below))
            finally:
                os.close(fd)
    finally:
        os.close(top)
