"""Archives by hand, header by header: no library writes the ones that are needed here."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from types import MappingProxyType

BLOCK = 512
USTAR = b"ustar\x0000"
GNU = b"ustar  \0"
END = bytes(2 * BLOCK)
OURS = ("/sonobuoy_results.yaml", "meta/info.json", "meta/plan.json", "meta/run.log")
"""What the aggregator itself writes into a run's tarball."""


def octal(number: int, width: int) -> bytes:
    """A number as headers have it."""
    return b"%0*o\0" % (width - 1, number)


def checked(header: bytes) -> bytes:
    """A header with its checksum."""
    blank = header[:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(blank) + header[156:]


def header(
    name: bytes,
    size: int = 0,
    kind: bytes = b"0",
    *,
    target: bytes = b"",
    magic: bytes = USTAR,
    prefix: bytes = b"",
    mode: int = 0o644,
    size_field: bytes | None = None,
    numbers: Mapping[int, bytes] = MappingProxyType({}),
) -> bytes:
    """One header; `numbers` by their places."""
    fields = (
        name.ljust(100, b"\0")[:100],
        octal(mode, 8),
        octal(0, 8),
        octal(0, 8),
        octal(size, 12) if size_field is None else size_field.ljust(12, b"\0"),
        octal(0, 12),
        b" " * 8,
        kind,
        target.ljust(100, b"\0")[:100],
        magic,
        bytes(32),
        bytes(32),
        octal(0, 8),
        octal(0, 8),
        prefix.ljust(155, b"\0"),
    )
    block = b"".join(fields).ljust(BLOCK, b"\0")
    for at, number in numbers.items():
        block = block[:at] + number + block[at + len(number) :]
    return checked(block)


def padded(data: bytes) -> bytes:
    """Content, filled up to a block."""
    return data + bytes(-len(data) % BLOCK)


def file(name: bytes, data: bytes = b"", **fields: object) -> bytes:
    """A regular file."""
    return header(name, len(data), **fields) + padded(data)  # type: ignore[arg-type]


def folder(name: bytes, **fields: object) -> bytes:
    """A directory."""
    return header(name, 0, b"5", **fields)  # type: ignore[arg-type]


def link(name: bytes, target: bytes) -> bytes:
    """A symbolic link."""
    return header(name, 0, b"2", target=target)


def hard_link(name: bytes, target: bytes) -> bytes:
    """A hard link."""
    return header(name, 0, b"1", target=target)


def record(name: bytes, value: bytes) -> bytes:
    """One record of a pax header."""
    length = len(name) + len(value) + 3
    while len(b"%d" % length) + len(name) + len(value) + 3 != length:
        length = len(b"%d" % length) + len(name) + len(value) + 3
    return b"%d %s=%s\n" % (length, name, value)


def pax(kind: bytes = b"x", **records: bytes) -> bytes:
    """A pax header; `__` in a record's name stands for a dot."""
    data = b"".join(
        record(name.replace("__", ".").encode(), value) for name, value in records.items()
    )
    return header(b"pax", len(data), kind) + padded(data)


def gnu_name(name: bytes, kind: bytes = b"L") -> bytes:
    """GNU's header for a long name (or, K, a long target)."""
    return header(b"././@LongLink", len(name) + 1, kind, magic=GNU) + padded(name + b"\0")


def tgz(*parts: bytes, end: bytes = END) -> bytes:
    """A gzip'd tar of these parts."""
    return gzip.compress(b"".join(parts) + end, mtime=0)


def contents(body: bytes) -> dict[str, bytes]:
    """Return the files of an archive."""
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        files = [member for member in tar if member.isreg()]
        return {each.name: tar.extractfile(each).read() for each in files}  # type: ignore[union-attr]
