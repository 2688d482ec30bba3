"""What may be in an archive: caps, members, and which path may stand beside which. Pure."""

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final

_NAME_BYTES: Final = 255
_SHOWN_BYTES: Final = 200
_NOTES: Final = 100

Parts = tuple[bytes, ...]
"""The components of a name; none for the root."""


class BadArchive(Exception):
    """The archive is damaged, or not one that may be unpacked. The text is one safe line."""


class NotTar(BadArchive):
    """It is sound gzip, as far as it was read, but holds no tar."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that is accepted; sizes in bytes.

    `members` is also the most directories, stated or implied. All files together may have
    `content_bytes`, and no more than `ratio` times the size of the archive unless that is below
    `free_bytes`. `header_bytes` is the largest extended header, `path_bytes` the longest path.
    `seconds` is the time for reading the archive once.
    """

    members: int = 20_000
    file_bytes: int = 2**30
    content_bytes: int = 2**31
    ratio: int = 200  # logs shrink to a hundredth; a bomb to a thousandth
    free_bytes: int = 2**26  # harmless whatever the ratio, and small archives of zeros exist
    header_bytes: int = 2**16  # a header has paths, which are shorter
    path_bytes: int = 4096  # PATH_MAX: a longer one could not be extracted
    seconds: float = 60.0

    def content_of(self, size: int) -> int:
        """Return the bytes that the files of an archive of `size` bytes may have together."""
        return min(self.content_bytes, max(self.free_bytes, self.ratio * size))


_ANY: Final = 2**62
ACCEPTED: Final = Caps(_ANY, _ANY, _ANY, _ANY, _ANY, _ANY, _ANY, seconds=inf)
"""For what was accepted before, within caps that may be others now."""


class Kind(Enum):
    """What a member is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Member:
    """One member.

    `what` says in words what is never created. `again`: a file of that name came before, and this
    one replaces it.
    """

    kind: Kind
    path: Parts
    size: int
    what: str = ""
    again: bool = False


def components(raw: bytes, limit: int) -> Parts:
    """Split a member's name, of at most `limit` bytes. Raises `BadArchive` if it leads out."""
    if len(raw) > limit:
        raise BadArchive(f"a path is longer than {limit} bytes")
    path = tuple(part for part in raw.split(b"/") if part not in (b"", b"."))
    if b"\0" in raw or b".." in path:
        raise BadArchive(f"the path is not allowed: {printable(raw)}")
    if any(len(part) > _NAME_BYTES for part in path):
        raise BadArchive(f"a file name is longer than {_NAME_BYTES} bytes")
    return path


def printable(raw: bytes) -> str:
    """Write bytes of a path for people: one line, without control characters, cut."""
    text = raw.decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return text.encode()[:_SHOWN_BYTES].decode(errors="ignore").strip()


_Tree = dict[bytes, "_Tree | Kind"]


class Names:
    """The paths so far, at most `directories` of them directories, stated or implied."""

    def __init__(self, directories: int) -> None:
        self._tree: _Tree = {}
        self._most = self._left = directories
        self._notes: list[str] = []
        self._noted = 0

    def add(self, kind: Kind, path: Parts, what: str) -> bool:
        """Note one more member; return whether it is a file whose path came before.

        Raises `BadArchive` if it may not stand beside the others.
        """
        if kind is Kind.DIRECTORY:
            self._directory(path)
            return False
        if kind is Kind.FILE:
            siblings = self._directory(path[:-1])
            before = siblings.get(path[-1])
            if before not in (None, Kind.FILE):
                raise _clash(path)
            siblings[path[-1]] = Kind.FILE
            return before is Kind.FILE
        if kind is Kind.LINK and path:
            # It is not created, but what comes at or below it was meant to go elsewhere.
            self._directory(path[:-1])[path[-1]] = Kind.LINK
        self._noted += 1
        if self._noted <= _NOTES:
            self._notes.append(f"{printable(b'/'.join(path))}: {what}, not created")
        return False

    def notes(self) -> tuple[str, ...]:
        """What is not created, in words; of very many only the first."""
        more = self._noted - len(self._notes)
        return (*self._notes, f"and {more} more") if more else tuple(self._notes)

    def _directory(self, path: Parts) -> _Tree:
        tree = self._tree
        for part in path:
            entry = tree.get(part)
            if entry is None:
                self._left -= 1
                if self._left < 0:
                    raise BadArchive(f"more than {self._most} directories")
                entry = tree[part] = {}
            elif isinstance(entry, Kind):
                raise _clash(path)
            tree = entry
        return tree


def _clash(path: Parts) -> BadArchive:
    name = printable(b"/".join(path))
    return BadArchive(f"{name} conflicts with another file, directory or link")
