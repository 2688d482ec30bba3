"""What the reader takes and gives: caps, members, errors."""

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final, Protocol


class BadArchive(Exception):
    """The archive is damaged, or not one that may be unpacked. The text is one safe line."""


class NotTar(BadArchive):
    """It is sound gzip, as far as it was read, but holds no tar."""


class Source(Protocol):
    """An open binary file, at its start."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes, none at the end. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that is taken; sizes in bytes.

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

    `path` has the components of its name, none for the root. `what` says in words what is never
    created. `again`: a file of that name came before, and this one replaces it.
    """

    kind: Kind
    path: tuple[bytes, ...]
    size: int
    what: str = ""
    target: bytes = b""
    again: bool = False
