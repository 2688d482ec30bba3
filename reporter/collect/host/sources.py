"""Reading for facts: what is not there is left out, what cannot be read is a problem."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from reporter.collect.rooted import Below

T = TypeVar("T")

_PROBLEMS: Final = 100
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


class Sources:
    """The files of a machine below a root, and what could not be read of them."""

    def __init__(self, root: Path) -> None:
        self.below = Below(root)
        self.problems: list[dict[str, str]] = []

    def parsed(self, path: str, parse: Callable[[str], T], *, needed: bool = False) -> T | None:
        """Return what a file says, or nothing; that a needed one is missing is a problem."""
        text = self.text(path, needed=needed)
        return None if text is None else parse(text)

    def text(self, path: str, *, needed: bool = False) -> str | None:
        """Return a file as text."""
        return self._tried(path, lambda: self.below.text(path), needed=needed)

    def names(self, path: str, *, needed: bool = False) -> list[str]:
        """Return what is in a directory, sorted."""
        return self._tried(path, lambda: self.below.names(path), needed=needed) or []

    def target(self, path: str) -> str | None:
        """Return the name that a link leads to in the end; nothing where there is no link."""
        try:
            found = self.below.target(path)
        except OSError:
            return None
        return None if found == path else found

    def exists(self, path: str) -> bool:
        """Return whether there is such a file."""
        return self.below.exists(path)

    def space(self, path: str) -> os.statvfs_result | None:
        """Return the file system of a directory."""
        return self._tried(path, lambda: self.below.space(path), needed=False)

    def _tried(self, path: str, ask: Callable[[], T], *, needed: bool) -> T | None:
        try:
            return ask()
        except OSError as error:
            problem = {"path": f"/{path}", "error": os.strerror(error.errno or 0)}
            known = problem in self.problems or len(self.problems) >= _PROBLEMS
            if (needed or error.errno not in _NOTHING) and not known:
                self.problems.append(problem)
            return None
