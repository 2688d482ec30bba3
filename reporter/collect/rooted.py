"""Reading below a directory as if it were `/`: no link leads out of it, and nothing blocks.

The host's own services write there while we read. So every step of a path is opened from the one
before it, and a link is followed by hand.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINKS = 40
_PIECE = 1024 * 1024
MOST_BYTES = 4 * 1024 * 1024
"""What is read of one file unless more is asked for."""
_MOST_PROBLEMS: Final = 100
# The kernel's words for an unknown value, for example of the speed of an unplugged card.
_NOTHING: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EINVAL,
        errno.EOPNOTSUPP,
        errno.ENODEV,
        errno.ENXIO,
        errno.ENODATA,
        errno.EBUSY,
        errno.ESRCH,
    }
)


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


class Sources:
    """The files of a machine below a root, and what could not be read of them."""

    def __init__(self, root: Path) -> None:
        self.below = Below(root)
        self.exists = self.below.exists
        self.problems: list[dict[str, str]] = []

    def parsed(self, path: str, parse: Callable[[str], T], *, needed: bool = False) -> T | None:
        """Return what a file says, or nothing; that a needed one is missing is a problem."""
        text = self._tried(path, self.below.text, needed=needed)
        return None if text is None else parse(text)

    def names(self, path: str, *, needed: bool = False) -> list[str]:
        """Return what is in a directory, sorted."""
        return self._tried(path, self.below.names, needed=needed) or []

    def space(self, path: str) -> os.statvfs_result | None:
        """Return the file system of a directory."""
        return self._tried(path, self.below.space)

    def target(self, path: str) -> str | None:
        """Return the name that a link leads to in the end; nothing where there is no link."""
        try:
            found = self.below.target(path)
        except OSError:
            return None
        return None if found == path else found

    def _tried(self, path: str, ask: Callable[[str], T], *, needed: bool = False) -> T | None:
        try:
            return ask(path)
        except OSError as error:
            problem = {"path": f"/{path}", "error": os.strerror(error.errno or 0)}
            known = problem in self.problems or len(self.problems) >= _MOST_PROBLEMS
            if (needed or error.errno not in _NOTHING) and not known:
                self.problems.append(problem)
            return None
