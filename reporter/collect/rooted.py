"""Reading below a directory as if it were `/`: no link leads out of it, and nothing blocks.

The host's own services write there while we read. So every step of a path is opened from the one
before it, and a link is followed by hand.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROOT = _STEP & ~os.O_NOFOLLOW
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


class Rooted:
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
        with self._opened(path, _DIRECTORY) as directory:
            return sorted(os.listdir(directory))  # noqa: PTH208 - a descriptor

    def target(self, path: str) -> str:
        """Return where a path leads when all its links are followed: from the root, without `/`."""
        with self._parent(path) as (_, name, where):
            return "/".join([*where, name] if name else where)

    def exists(self, path: str) -> bool:
        """Return whether a path leads to something that we can see."""
        with suppress(OSError), self._parent(path) as (parent, name, _):
            os.stat(name or ".", dir_fd=parent, follow_symlinks=False)
            return True
        return False

    def is_directory(self, path: str) -> bool:
        """Return whether a path leads to a directory that we can read."""
        with suppress(OSError), self._opened(path, _DIRECTORY):
            return True
        return False

    def space(self, path: str) -> os.statvfs_result:
        """Return the file system of a directory."""
        with self._opened(path, _DIRECTORY) as directory:
            return os.fstatvfs(directory)

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Open a regular file for reading."""
        with self._opened(path, _READ) as file:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            yield file

    @contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        with self._parent(path) as (parent, name, _):
            file = os.open(name or ".", flags, dir_fd=parent)
        try:
            yield file
        finally:
            os.close(file)

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str, list[str]]]:
        """Give the opened directory of a path's last step, its name there, and that directory.

        The name is no link when it is looked at; what opens it must not follow one either.
        """
        left, where, name = _steps(path), list[str](), ""
        links = 0
        here = os.open(self._root, _ROOT)
        try:
            while left:
                step = left.pop()
                if step == "..":
                    # From the root again: the parent of an opened directory may be anywhere by now.
                    link: str | None = "/" + "/".join(where[:-1])
                elif (link := _link(step, here)) is not None:
                    links += 1
                    if links > _LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if link is not None:
                    left += _steps(link)
                    if link.startswith("/"):
                        where = []
                        here = _instead(here, os.open(self._root, _ROOT))
                elif left:
                    here = _instead(here, os.open(step, _STEP, dir_fd=here))
                    where.append(step)
                else:
                    name = step
            yield here, name, where
        finally:
            os.close(here)


def _steps(path: str) -> list[str]:
    """Return the steps of a path, the last one first."""
    return [step for step in reversed(path.split("/")) if step not in ("", ".")]


def _instead(old: int, new: int) -> int:
    os.close(old)
    return new


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
        self.files = Rooted(root)
        self.exists = self.files.exists
        self.problems: list[dict[str, str]] = []

    def parsed(self, path: str, parse: Callable[[str], T], *, needed: bool = False) -> T | None:
        """Return what a file says, or nothing; that a needed one is missing is a problem."""
        text = self._tried(path, self.files.text, needed=needed)
        return None if text is None else parse(text)

    def names(self, path: str, *, needed: bool = False) -> list[str]:
        """Return what is in a directory, sorted."""
        return self._tried(path, self.files.names, needed=needed) or []

    def space(self, path: str) -> os.statvfs_result | None:
        """Return the file system of a directory."""
        return self._tried(path, self.files.space)

    def target(self, path: str) -> str | None:
        """Return the name that a link leads to in the end; nothing where there is no link."""
        try:
            found = self.files.target(path)
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
