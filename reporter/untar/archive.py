"""Reading tar: from a file to members, one after the other. Creates nothing.

Ustar, pax (path, linkpath, size) and GNU long names, which is what the tools that people pack with
write. Not by `tarfile`: it reads extended headers of any size into memory, takes time in the square
of their length on interpreters in use (CVE-2024-6232), ends in silence at a damaged header, refuses
one for numbers that are not needed here, and has filters that can be passed by.
"""

import tarfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from reporter.untar.members import (
    BadArchive,
    Caps,
    Kind,
    Member,
    Names,
    NotTar,
    components,
    printable,
)
from reporter.untar.stream import Inflated, Source

_BLOCK: Final = tarfile.BLOCKSIZE
_EXTENDED: Final = {b"x": b"", b"X": b"", b"g": b"", b"L": b"path", b"K": b"linkpath"}
_IN_A_ROW: Final = 8  # a member has at most a pax header and two GNU names before it
_KINDS: Final = {
    tarfile.REGTYPE: (Kind.FILE, ""),
    tarfile.AREGTYPE: (Kind.FILE, ""),
    tarfile.CONTTYPE: (Kind.FILE, ""),
    tarfile.DIRTYPE: (Kind.DIRECTORY, ""),
    tarfile.LNKTYPE: (Kind.LINK, "hard link"),
    tarfile.SYMTYPE: (Kind.LINK, "symbolic link"),
    tarfile.CHRTYPE: (Kind.OTHER, "character device"),
    tarfile.BLKTYPE: (Kind.OTHER, "block device"),
    tarfile.FIFOTYPE: (Kind.OTHER, "FIFO"),
}
_NO_CONTENT: Final = b"123456"


class _Header(NamedTuple):
    name: bytes
    size: int
    type: bytes
    target: bytes


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
        self._left = self._bytes = self._members = 0
        self._begun = self._ended = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the members so far is never created, in words."""
        return self._names.notes()

    def content(self) -> Iterator[memoryview]:
        """The content of the member that was yielded last, in pieces."""
        left, self._left = self._left, 0
        for piece in self._stream.pieces(left):
            left -= len(piece)
            yield piece
        if left:
            raise BadArchive("the archive ends in the middle of a file")

    def __iter__(self) -> Iterator[Member]:
        """Yield each member in turn; what is not read of its content is passed over."""
        while (member := self._next()) is not None:
            self._left = member.size
            yield member
            for _ in self.content():
                pass
            # It may be missing after the last member: some writers stop with the content.
            self._stream.take(-member.size % _BLOCK)
        self._stream.drain()
        if self._stream.trailing_garbage and not self._ended:
            raise BadArchive("the gzip data is damaged")

    def _next(self) -> Member | None:
        extended: dict[bytes, bytes] = {}
        header = self._header()
        if header is None:
            return None
        for _ in range(_IN_A_ROW + 1):
            if header.type not in _EXTENDED:
                return self._member(header, extended)
            extended |= self._extension(header)
            header = self._header()
            if header is None:
                raise BadArchive("the archive ends after an extended header")
        raise BadArchive("a tar header is too large")

    def _header(self) -> _Header | None:
        """Read the next header; nothing at the end."""
        block = self._stream.take(_BLOCK)
        if not block:
            return None
        if len(block) == _BLOCK:
            if header := _header(block):
                self._begun = True
                return header
            if not (block + self._stream.take(_BLOCK)).strip(b"\0"):
                self._ended = True
                return None
        if self._begun:
            raise _damaged()
        self._stream.drain()  # which tells a sound file that is no tar from one that is cut
        raise NotTar("not a tar archive")

    def _extension(self, header: _Header) -> dict[bytes, bytes]:
        """Read what an extended header says of the member behind it."""
        size = _size(header)
        if size > self._caps.header_bytes:
            raise BadArchive("a tar header is too large")
        data = self._stream.take(size)
        if len(data) < size:
            raise BadArchive("the archive ends in the middle of a header")
        self._stream.take(-size % _BLOCK)
        if name := _EXTENDED[header.type]:
            return {name: data.rstrip(b"\0")}
        records = _pax(data)
        if header.type != tarfile.XGLTYPE:
            return records
        # It would change every member that follows. Only comments are known to be there.
        if any(name in (b"path", b"linkpath", b"size") or _sparse(name) for name in records):
            raise BadArchive("global tar headers with names or sizes are not supported")
        return {}

    def _member(self, header: _Header, extended: dict[bytes, bytes]) -> Member:
        if header.type == tarfile.GNUTYPE_SPARSE or any(map(_sparse, extended)):
            raise BadArchive("sparse files are not supported")
        size = 0 if header.type in _NO_CONTENT else _size(header, extended.get(b"size", b""))
        caps = self._caps
        self._members += 1
        self._bytes += size
        if self._members > caps.members:
            raise BadArchive(f"more than {caps.members} members")
        if size > caps.file_bytes:
            raise BadArchive(f"a file is larger than {caps.file_bytes} bytes")
        if self._bytes > self._most:
            raise BadArchive(f"unpacks to more than {self._most} bytes")
        unknown = Kind.OTHER, f"member of type {printable(header.type)}"
        kind, what = _KINDS.get(header.type, unknown)
        path = components(extended.get(b"path", header.name), caps.path_bytes)
        if kind is Kind.FILE and not path:
            raise BadArchive("a file has no name")
        target = extended.get(b"linkpath", header.target)
        if kind is Kind.LINK and target:
            what += f" to {printable(target)}"
        return Member(kind, path, size, what, self._names.add(kind, path, what))


def _header(block: bytes) -> _Header | None:
    """Parse a header, but for the numbers that are not needed; nothing where there is none."""
    blank = block[:148] + b" " * 8 + block[156:]
    try:
        size, checksum = map(tarfile.nti, (block[124:136], block[148:156]))  # type: ignore[attr-defined]
    except tarfile.HeaderError:
        return None
    # Old writers summed up signed bytes.
    if checksum not in (sum(blank), sum(memoryview(blank).cast("b"))):
        return None
    fields = block[:100], block[157:257], block[345:500]
    name, target, prefix = (field.split(b"\0")[0] for field in fields)
    kind = block[156:157]
    if kind == tarfile.AREGTYPE and name.endswith(b"/"):
        kind = tarfile.DIRTYPE
    # GNU's old form has times where ustar has the beginning of the name.
    if prefix and block[257:263] == b"ustar\0":
        name = prefix + b"/" + name
    return _Header(name, size, kind, target)


def _size(header: _Header, stated: bytes = b"") -> int:
    """Return the size of what follows a header; `stated` by a pax record it counts more."""
    if stated and not (stated.isdigit() and len(stated) < 20):
        raise _damaged()
    size = int(stated) if stated else header.size
    if size < 0:
        raise _damaged()
    return size


def _sparse(name: bytes) -> bool:
    return name.startswith(b"GNU.sparse.")


def _pax(data: bytes) -> dict[bytes, bytes]:
    """Return the records of a pax header; an empty value takes one back."""
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 8)
        digits = data[at:blank] if blank > 0 else b""
        end = at + int(digits) if digits.isdigit() else 0
        name, equals, value = data[blank + 1 : end - 1].partition(b"=")
        if not blank < end <= len(data) or data[end - 1 : end] != b"\n" or not equals:
            raise _damaged()
        records[name] = value
        at = end
    return {name: value for name, value in records.items() if value}


def _damaged() -> BadArchive:
    return BadArchive("a tar header is damaged")


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of an archive that may be accepted.

    `notes` says what is not created of it, `wanted` is the content of the file that was asked for,
    None if there is no such file. `files` is how many were counted.
    """

    notes: tuple[str, ...]
    wanted: bytes | None
    files: int


def check(
    source: Source,
    size: int,
    caps: Caps,
    *,
    wanted: str = "",
    wanted_bytes: int = 0,
    counted: Collection[bytes] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Checked:
    """Read an archive of `size` bytes in full.

    `wanted` is the name of a file at its top that may have `wanted_bytes` and is given back.
    `counted` are the names of the files that are counted, wherever they are; empty for all.
    Raises `NotTar`, `BadArchive` and OSError.
    """
    archive = Archive(source, size, caps, clock)
    name, found, trouble, files = wanted.encode(), None, "", 0
    for member in archive:
        if member.kind is Kind.FILE and not member.again:
            files += not counted or member.path[-1] in counted
        if member.path[:1] != (name,) or member.kind not in (Kind.FILE, Kind.DIRECTORY):
            continue
        if member.kind is Kind.DIRECTORY or len(member.path) > 1:
            trouble = f"{wanted} is a directory"
        elif member.size > wanted_bytes:
            trouble = f"{wanted} is larger than {wanted_bytes} bytes"
        else:
            found, trouble = b"".join(archive.content()), ""
    if trouble:
        raise BadArchive(trouble)
    return Checked(archive.notes, found, files)
