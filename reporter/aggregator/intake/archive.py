"""Reading tar: from a stream of bytes to members, one after the other. Creates nothing.

Ustar, pax (path, linkpath, size) and GNU long names, which is what the tools that people pack with
write. A reader of our own because `tarfile` reads whole extended headers into memory, follows what
they say without caps, and on interpreters in use has filters that can be passed by.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from reporter.aggregator.intake.gunzip import BadArchive, Inflated, NotTar
from reporter.core.text import clean

BLOCK: Final = 512
_ZERO: Final = bytes(BLOCK)
_EXTENDED: Final = b"xXgLK"
_IN_A_ROW: Final = 8  # a member has at most a pax header and two GNU names before it
_COMPONENT_BYTES: Final = 255


class Kind(Enum):
    """What a member is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


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


@dataclass(frozen=True, slots=True)
class Member:
    """One member. `path` has the components of its name, none for the root; `what` says in words
    what we do not create."""  # noqa: D209

    kind: Kind
    path: tuple[bytes, ...]
    size: int
    what: str = ""
    target: bytes = b""


@dataclass(frozen=True, slots=True)
class TarCaps:
    """Most members, bytes of a file, bytes of all, of an extended header and of a name."""

    members: int
    file_bytes: int
    bytes: int
    extended_bytes: int
    path_bytes: int


@dataclass
class _Extended:
    """What the headers before a member say about it."""

    pax: dict[bytes, bytes] = field(default_factory=dict)
    name: bytes | None = None
    target: bytes | None = None
    count: int = 0


class Archive:
    """The members of a tar in a stream. Raises `BadArchive` while it is iterated over."""

    def __init__(self, stream: Inflated, caps: TarCaps) -> None:
        self._stream, self._caps = stream, caps
        self._left = self._padding = 0
        self._bytes = self._members = 0
        self._ended = False

    def content(self) -> Iterator[memoryview]:
        """The content of the member that was yielded last; pieces as those of `Inflated`."""
        left, self._left = self._left, 0
        return self._stream.pieces(left)

    def members(self) -> Iterator[Member]:
        """Each member in turn; what is not read of its content is passed over."""
        first = True
        while (header := self._header(first)) is not None:
            first = False
            extended = _Extended()
            while header[156:157] in _EXTENDED:
                self._extend(extended, header)
                following = self._header(first)
                if following is None:
                    raise BadArchive("ends after an extended header")
                header = following
            yield self._member(header, extended)
            self._skip_rest()
        self._stream.drain()
        if self._stream.trailing_garbage and not self._ended:
            raise BadArchive("the gzip stream is damaged")

    def _header(self, first: bool) -> bytes | None:
        """The next header, or nothing at the end."""
        block = self._stream.take(BLOCK)
        if block == _ZERO:
            if self._stream.take(BLOCK).strip(b"\0"):
                raise self._no_header(first)
            self._ended = True
            return None
        if not block:
            return None
        if len(block) < BLOCK or not _sums_up(block):
            raise self._no_header(first)
        return block

    def _no_header(self, first: bool) -> BadArchive:
        if not first:
            return BadArchive("bad tar header")
        self._stream.drain()  # which tells a sound file that is no tar from one that is cut
        return NotTar("no tar in it")

    def _extend(self, extended: _Extended, header: bytes) -> None:
        kind, size = header[156:157], _number(header[124:136])
        extended.count += 1
        if size > self._caps.extended_bytes or extended.count > _IN_A_ROW:
            raise BadArchive("an extended header is too large")
        data = self._stream.take(size)
        if len(data) < size:
            raise BadArchive("the archive ends within an extended header")
        self._pass_padding(size)
        if kind == b"L":
            extended.name = _long_name(data)
        elif kind == b"K":
            extended.target = _long_name(data)
        elif kind == b"g":
            # It would change every member that follows. Only comments are known to be there.
            if any(_matters(name) for name in _pax(data)):
                raise BadArchive("a global header changes names or sizes")
        else:
            extended.pax = _pax(data)

    def _member(self, header: bytes, extended: _Extended) -> Member:
        caps, pax = self._caps, extended.pax
        kind_byte = header[156:157]
        if kind_byte == b"S" or any(name.startswith(b"GNU.sparse.") for name in pax):
            raise BadArchive("sparse members are not taken")
        raw = _name(header) if extended.name is None else extended.name
        if extended.name is None and pax.get(b"path"):
            raw = pax[b"path"]
        if kind_byte == b"\0":
            kind_byte = b"5" if raw.endswith(b"/") else b"0"
        size = _pax_size(pax[b"size"]) if pax.get(b"size") else _number(header[124:136])
        if kind_byte in _NO_CONTENT:
            size = 0
        self._members += 1
        self._bytes += size
        if self._members > caps.members:
            raise BadArchive(f"more than {caps.members} members")
        if size > caps.file_bytes:
            raise BadArchive(f"a member is larger than {caps.file_bytes} bytes")
        if self._bytes > caps.bytes:
            raise BadArchive(f"unpacks to more than {caps.bytes} bytes")
        self._left, self._padding = size, -size % BLOCK
        kind = _KINDS.get(kind_byte, Kind.OTHER)
        path = _path(raw, caps.path_bytes)
        if kind is Kind.FILE and not path:
            raise BadArchive("a file has no name")
        target = extended.target or pax.get(b"linkpath") or _text(header[157:257])
        word = _WORDS.get(kind_byte, f"member of type {show(kind_byte)}")
        return Member(kind, path, size, word, target if kind is Kind.LINK else b"")

    def _skip_rest(self) -> None:
        self._stream.skip(self._left)
        self._pass(self._padding)

    def _pass_padding(self, size: int) -> None:
        self._pass(-size % BLOCK)

    def _pass(self, size: int) -> None:
        # Of the last member it may be missing: some writers stop with the content.
        self._stream.take(size)


def show(name: bytes) -> str:
    """Bytes of a name for people: one line, without control characters, cut."""
    text = name.decode("utf-8", "backslashreplace")
    return clean("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text), 200)


def _path(raw: bytes, limit: int) -> tuple[bytes, ...]:
    if len(raw) > limit:
        raise BadArchive("a member's name is too long")
    path = tuple(part for part in raw.split(b"/") if part not in (b"", b"."))
    if b"\0" in raw or b".." in path:
        raise BadArchive(f"a member's name is not allowed: {show(raw)}")
    if any(len(part) > _COMPONENT_BYTES for part in path):
        raise BadArchive("a part of a member's name is too long")
    return path


def _sums_up(header: bytes) -> bool:
    try:
        said = _number(header[148:156])
    except BadArchive:
        return False
    blank = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if said == blank:
        return True
    # Old writers summed up signed bytes.
    return said == blank - 256 * sum(byte > 127 for byte in header[:148] + header[156:])


def _number(text: bytes) -> int:
    """A number of a header: octal digits, or GNU's binary form with the highest bit set."""
    if text[0] & 0x80:
        if text[0] & 0x40:
            raise BadArchive("a negative number in a header")
        return int.from_bytes(bytes((text[0] & 0x3F,)) + text[1:], "big")
    digits = text.strip(b" \0").split(b"\0")[0].strip(b" ")
    if digits.strip(b"01234567"):
        raise BadArchive("a bad number in a header")
    return int(digits or b"0", 8)


def _text(found: bytes) -> bytes:
    return found.split(b"\0", 1)[0]


def _long_name(data: bytes) -> bytes:
    return data.rstrip(b"\0")


def _name(header: bytes) -> bytes:
    name = _text(header[:100])
    if header[257:263] != b"ustar\0":
        return name  # GNU's old form has other things where the prefix is
    star = header[508:512] == b"tar\0"
    prefix = _text(header[345 : 476 if star else 500])
    return prefix + b"/" + name if prefix else name


def _pax(data: bytes) -> dict[bytes, bytes]:
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 8)
        digits = data[at:blank] if blank > 0 else b""
        if not digits.isdigit():
            raise BadArchive("a bad pax header")
        end = at + int(digits)
        name, equals, value = data[blank + 1 : end - 1].partition(b"=")
        if end > len(data) or end <= blank or data[end - 1 : end] != b"\n" or not equals:
            raise BadArchive("a bad pax header")
        if value:
            records[name] = value
        else:
            records.pop(name, None)
        at = end
    return records


def _pax_size(value: bytes) -> int:
    if not value.isdigit() or len(value) > 19:
        raise BadArchive("a bad pax header")
    return int(value)


def _matters(name: bytes) -> bool:
    return name in (b"path", b"linkpath", b"size") or name.startswith(b"GNU.sparse.")
