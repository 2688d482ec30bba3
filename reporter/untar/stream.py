"""Inflating gzip piece by piece, within caps; knows nothing about what is in it.

Not the `gzip` module, which looks for the end of a header's file name in Python, byte by byte: one
of 500 MB would take minutes.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from reporter.untar.members import BadArchive

_READ: Final = 64 * 1024
_INFLATE: Final = 256 * 1024
_GZIP: Final = 31  # zlib's number for the largest window in a gzip wrapper
_MAGIC: Final = b"\x1f\x8b"


class Source(Protocol):
    """An open binary file, at its start."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes, none at the end. Raises OSError."""


class Inflated:
    """What a gzip file inflates to, as a stream.

    Raises `BadArchive` from every method when it is no gzip, is damaged or cut, inflates to more
    than `limit` bytes, or takes longer than until `deadline` on `clock`; OSError when it cannot be
    read.
    """

    def __init__(
        self, source: Source, limit: int, deadline: float, clock: Callable[[], float]
    ) -> None:
        self._source, self._limit = source, limit
        self._deadline, self._clock = deadline, clock
        self._inflating = self._inflate()
        self._view = memoryview(b"")
        self.trailing_garbage = False
        """Whether a sound stream was followed by bytes that are no gzip; known at the end."""

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer only at the end."""
        return b"".join(self.pieces(size))

    def pieces(self, size: int) -> Iterator[memoryview]:
        """Yield the next `size` bytes in pieces; fewer only at the end."""
        while size:
            if not self._view:
                self._view = memoryview(next(self._inflating, b""))
                if not self._view:
                    return
            piece, self._view = self._view[:size], self._view[size:]
            size -= len(piece)
            yield piece

    def drain(self) -> None:
        """Pass over the rest, to see that the gzip is whole."""
        for _ in self._inflating:
            pass
        self._view = memoryview(b"")

    def _inflate(self) -> Iterator[bytes]:
        data, total = self._begin(b""), 0
        if not data.startswith(_MAGIC):
            raise BadArchive("not gzip")
        while data.startswith(_MAGIC):
            inflater = zlib.decompressobj(_GZIP)
            while not inflater.eof:
                if self._clock() > self._deadline:
                    raise BadArchive("reading the archive takes too long")
                try:
                    piece = inflater.decompress(data, _INFLATE)
                except zlib.error:
                    raise BadArchive("the gzip data is damaged") from None
                data = inflater.unconsumed_tail
                if piece:
                    total += len(piece)
                    if total > self._limit:
                        raise BadArchive(f"unpacks to more than {self._limit} bytes")
                    yield piece
                elif not (data or inflater.eof):
                    data = self._source.read(_READ)
                    if not data:
                        raise BadArchive("the gzip data is cut off")
            data = self._begin(inflater.unused_data)
        self.trailing_garbage = bool(data)

    def _begin(self, data: bytes) -> bytes:
        """Read on until it shows whether a gzip member begins here."""
        while len(data) < len(_MAGIC) and (more := self._source.read(_READ)):
            data += more
        return data
