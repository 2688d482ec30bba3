"""Reading below a directory as if it were `/`: no link leads out of it, and nothing blocks.

The host's own services write there while we read. So every step of a path is opened from the one
before it, and a link is followed by hand.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINKS = 40
_PIECE = 1024 * 1024
MOST_BYTES = 4 * 1024 * 1024
"""What is read of one file unless more is asked for."""


class Below:
    """The files below a root, by paths without the leading `/`. Every call may raise OSError.

    A path that leaves the root by `..` stays at the root, as it does at `/`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        """Return the first bytes of a regular file."""
        with self.opened(path) as file:
            data = bytearray()
            while len(data) < most and (piece := os.read(file, min(_PIECE, most - len(data)))):
                data += piece
            return bytes(data)

    def text(self, path: str) -> str:
        """Return a file as text; what is not UTF-8 is replaced."""
        return self.read(path).decode(errors="replace")

    def names(self, path: str) -> list[str]:
        """Return what is in a directory, sorted."""
        directory = self._open(path, _DIRECTORY)
        try:
            return sorted(os.listdir(directory))  # noqa: PTH208 - a descriptor
        finally:
            os.close(directory)

    def target(self, path: str) -> str:
        """Return where a path leads when all its links are followed: from the root, without `/`."""
        parent, name, where = self._walk(path)
        os.close(parent)
        return "/".join([*where, name] if name else where)

    def exists(self, path: str) -> bool:
        """Return whether a path leads to something that we can see."""
        try:
            parent, name, _ = self._walk(path)
        except OSError:
            return False
        try:
            os.stat(name or ".", dir_fd=parent, follow_symlinks=False)
        except OSError:
            return False
        finally:
            os.close(parent)
        return True

    def is_directory(self, path: str) -> bool:
        """Return whether a path leads to a directory that we can read."""
        try:
            os.close(self._open(path, _DIRECTORY))
        except OSError:
            return False
        return True

    def space(self, path: str) -> os.statvfs_result:
        """Return the file system of a directory."""
        directory = self._open(path, _DIRECTORY)
        try:
            return os.fstatvfs(directory)
        finally:
            os.close(directory)

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Open a regular file for reading."""
        file = self._open(path, _READ)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            yield file
        finally:
            os.close(file)

    def _open(self, path: str, flags: int) -> int:
        parent, name, _ = self._walk(path)
        try:
            return os.open(name or ".", flags, dir_fd=parent)
        finally:
            os.close(parent)

    def _walk(self, path: str) -> tuple[int, str, list[str]]:
        """Return the opened directory of a path's last step, its name there, and that directory.

        The name is no link when it is looked at; what opens it must not follow one either.
        """
        left = [step for step in reversed(path.split("/")) if step not in ("", ".")]
        where: list[str] = []
        links = 0
        here = os.open(self._root, _STEP & ~os.O_NOFOLLOW)
        try:
            while left:
                step = left.pop()
                if step == "..":
                    # From the root again: the parent of an opened directory may be anywhere by now.
                    left += [*reversed(where[:-1])]
                    where = []
                    os.close(here)
                    here = os.open(self._root, _STEP & ~os.O_NOFOLLOW)
                    continue
                link = _link(step, here)
                if link is not None:
                    links += 1
                    if links > _LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                    left += [each for each in reversed(link.split("/")) if each not in ("", ".")]
                    if link.startswith("/"):
                        where = []
                        os.close(here)
                        here = os.open(self._root, _STEP & ~os.O_NOFOLLOW)
                elif not left:
                    return here, step, where
                else:
                    below = os.open(step, _STEP, dir_fd=here)
                    os.close(here)
                    here = below
                    where.append(step)
            return here, "", where
        except BaseException:
            os.close(here)
            raise


def _link(name: str, directory: int) -> str | None:
    """Return what a link says, or nothing where it is none. Raises OSError."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return None
