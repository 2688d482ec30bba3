"""Inflating gzip piece by piece, within caps; knows nothing about what is in it."""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from reporter.untar.values import BadArchive, Source

_READ: Final = 64 * 1024
_INFLATE: Final = 256 * 1024
_GZIP: Final = 31  # zlib's number for the largest window in a gzip wrapper
_MAGIC: Final = b"\x1f\x8b"


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
        self._head = b""
        self._input = b""
        self._inflater = zlib.decompressobj(_GZIP)
        self._view = memoryview(b"")
        self._total = 0
        self._garbage = False

    @property
    def trailing_garbage(self) -> bool:
        """Whether a sound stream was followed by bytes that are no gzip; known at the end."""
        return self._garbage

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer only at the end."""
        if len(self._view) >= size:
            taken, self._view = self._view[:size], self._view[size:]
            return bytes(taken)
        return b"".join(self._pieces(size))

    def pieces(self, size: int) -> Iterator[memoryview]:
        """Yield the next `size` bytes in pieces."""
        left = size
        for piece in self._pieces(size):
            left -= len(piece)
            yield piece
        if left:
            raise BadArchive("the archive ends in the middle of a file")

    def drain(self) -> None:
        """Pass over the rest, to see that the gzip is whole."""
        while self._fill():
            pass

    def _pieces(self, size: int) -> Iterator[memoryview]:
        while size and (self._view or self._fill()):
            piece, self._view = self._view[:size], self._view[size:]
            size -= len(piece)
            yield piece

    def _fill(self) -> bool:
        if self._garbage:
            return False
        while True:
            if self._clock() > self._deadline:
                raise BadArchive("reading the archive takes too long")
            if self._inflater.eof and not self._next_member():
                return False
            data = self._inflate()
            if data:
                self._total += len(data)
                if self._total > self._limit:
                    raise BadArchive(f"unpacks to more than {self._limit} bytes")
                self._view = memoryview(data)
                return True
            if self._inflater.eof or self._input:
                continue
            self._input = self._read()
            if not self._input:
                raise self._bad("the gzip data is cut off")

    def _inflate(self) -> bytes:
        try:
            data = self._inflater.decompress(self._input, _INFLATE)
        except zlib.error:
            raise self._bad("the gzip data is damaged") from None
        self._input = self._inflater.unconsumed_tail
        return data

    def _bad(self, text: str) -> BadArchive:
        return BadArchive(text if self._head == _MAGIC else "not gzip")

    def _next_member(self) -> bool:
        rest = self._inflater.unused_data
        while len(rest) < len(_MAGIC) and (more := self._read()):
            rest += more
        if rest.startswith(_MAGIC):
            self._inflater, self._input = zlib.decompressobj(_GZIP), rest
            return True
        self._garbage = bool(rest)
        return False

    def _read(self) -> bytes:
        data = self._source.read(_READ)
        self._head += data[: len(_MAGIC) - len(self._head)]
        return data
