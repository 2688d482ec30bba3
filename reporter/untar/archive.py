"""Reading tar: from a file to members, one after the other. Creates nothing.

Ustar, pax (path, linkpath, size) and GNU long names, which is what the tools that people pack with
write. A reader of our own because `tarfile` reads whole extended headers into memory, follows what
they say without caps, and on interpreters in use has filters that can be passed by.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from reporter.untar import tar_header
from reporter.untar.gunzip import Inflated
from reporter.untar.names import Names
from reporter.untar.values import BadArchive, Caps, Kind, Member, NotTar, Source

_BLOCK: Final = 512
_ZERO: Final = bytes(_BLOCK)
_EXTENDED: Final = b"xXgLK"
_IN_A_ROW: Final = 8  # a member has at most a pax header and two GNU names before it


_KINDS: Final = {
    b"0": Kind.FILE,
    b"7": Kind.FILE,
    b"1": Kind.LINK,
    b"2": Kind.LINK,
    b"3": Kind.OTHER,
    b"4": Kind.OTHER,
    b"5": Kind.DIRECTORY,
    b"6": Kind.OTHER,
}
_WORDS: Final = {
    b"1": "hard link",
    b"2": "symbolic link",
    b"3": "character device",
    b"4": "block device",
    b"6": "FIFO",
}
_NO_CONTENT: Final = b"123456"


@dataclass
class _Extended:
    """What the headers before a member say about it."""

    pax: dict[bytes, bytes] = field(default_factory=dict)
    name: bytes | None = None
    target: bytes | None = None
    count: int = 0


class Archive:
    """The members of a gzip'd tar, one after the other, with all rules applied as they come.

    `size` is the size of the archive in bytes. Raises `NotTar`, `BadArchive` and OSError while it
    is iterated over, which can be done once.
    """

    def __init__(
        self,
        source: Source,
        size: int,
        caps: Caps,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._caps, self._most = caps, caps.content_of(size)
        # Headers and padding come on top of the content that the cap is about.
        limit = self._most + caps.free_bytes
        self._stream = Inflated(source, limit, clock() + caps.seconds, clock)
        self._names = Names(caps.members)
        self._left = self._padding = 0
        self._bytes = self._members = 0
        self._ended = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the members so far is never created, in words."""
        return self._names.notes()

    def content(self) -> Iterator[memoryview]:
        """The content of the member that was yielded last, in pieces."""
        left, self._left = self._left, 0
        return self._stream.pieces(left)

    def __iter__(self) -> Iterator[Member]:
        """Yield each member in turn; what is not read of its content is passed over."""
        first = True
        while (header := self._header(first)) is not None:
            first = False
            extended = _Extended()
            while header[156:157] in _EXTENDED:
                self._extend(extended, header)
                following = self._header(first)
                if following is None:
                    raise BadArchive("the archive ends after an extended header")
                header = following
            member = self._member(header, extended)
            yield replace(member, again=True) if self._names.add(member) else member
            self._skip_rest()
        self._stream.drain()
        if self._stream.trailing_garbage and not self._ended:
            raise BadArchive("the gzip data is damaged")

    def _header(self, first: bool) -> bytes | None:
        """The next header, or nothing at the end."""
        block = self._stream.take(_BLOCK)
        if block == _ZERO:
            if self._stream.take(_BLOCK).strip(b"\0"):
                raise self._no_header(first)
            self._ended = True
            return None
        if not block:
            return None
        if len(block) < _BLOCK or not tar_header.sums_up(block):
            raise self._no_header(first)
        return block

    def _no_header(self, first: bool) -> BadArchive:
        if not first:
            return tar_header.damaged()
        self._stream.drain()  # which tells a sound file that is no tar from one that is cut
        return NotTar("not a tar archive")

    def _extend(self, extended: _Extended, header: bytes) -> None:
        kind, size = header[156:157], tar_header.number(header[124:136])
        extended.count += 1
        if size > self._caps.header_bytes or extended.count > _IN_A_ROW:
            raise BadArchive("a tar header is too large")
        data = self._stream.take(size)
        if len(data) < size:
            raise BadArchive("the archive ends in the middle of a header")
        self._pass(-size % _BLOCK)
        if kind == b"L":
            extended.name = data.rstrip(b"\0")
        elif kind == b"K":
            extended.target = data.rstrip(b"\0")
        elif kind == b"g":
            # It would change every member that follows. Only comments are known to be there.
            if any(_matters(name) for name in tar_header.pax(data)):
                raise BadArchive("global tar headers with names or sizes are not supported")
        else:
            extended.pax = tar_header.pax(data)

    def _member(self, header: bytes, extended: _Extended) -> Member:
        caps, pax = self._caps, extended.pax
        kind_byte = header[156:157]
        if kind_byte == b"S" or any(name.startswith(b"GNU.sparse.") for name in pax):
            raise BadArchive("sparse files are not supported")
        raw = tar_header.name(header) if extended.name is None else extended.name
        if extended.name is None and pax.get(b"path"):
            raw = pax[b"path"]
        if kind_byte == b"\0":
            kind_byte = b"5" if raw.endswith(b"/") else b"0"
        size = (
            tar_header.pax_size(pax[b"size"])
            if pax.get(b"size")
            else tar_header.number(header[124:136])
        )
        if kind_byte in _NO_CONTENT:
            size = 0
        self._members += 1
        self._bytes += size
        if self._members > caps.members:
            raise BadArchive(f"more than {caps.members} members")
        if size > caps.file_bytes:
            raise BadArchive(f"a file is larger than {caps.file_bytes} bytes")
        if self._bytes > self._most:
            raise BadArchive(f"unpacks to more than {self._most} bytes")
        self._left, self._padding = size, -size % _BLOCK
        kind = _KINDS.get(kind_byte, Kind.OTHER)
        path = tar_header.components(raw, caps.path_bytes)
        if kind is Kind.FILE and not path:
            raise BadArchive("a file has no name")
        target = extended.target or pax.get(b"linkpath") or tar_header.text(header[157:257])
        word = _WORDS.get(kind_byte, f"member of type {tar_header.show(kind_byte)}")
        return Member(kind, path, size, word, target if kind is Kind.LINK else b"")

    def _skip_rest(self) -> None:
        for _ in self.content():
            pass
        self._pass(self._padding)

    def _pass(self, size: int) -> None:
        # It may be missing after the last member: some writers stop with the content.
        self._stream.take(size)


def _matters(name: bytes) -> bool:
    return name in (b"path", b"linkpath", b"size") or name.startswith(b"GNU.sparse.")
