"""The lines of a container's log, read in streams that are cut and begun again.

A stream has a time stamp before each line. The next one begins with the second of the newest line,
so that nothing is lost, and what came before is known by its stamp and its place among the lines
with the same one: CRI-O stamps all that it reads at once alike. Only a node's clock that is set
back can make lines come twice.
"""

import re
from collections import Counter
from typing import Final

LONGEST: Final = 64 * 1024
"""Bytes after which a line that does not end is given in parts."""
_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d) ")
_UNSTAMPED: Final = b"", 0


class LogLines:
    """One container's log."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self.since = ""
        """The second from which the next stream is wanted; empty: from the beginning."""
        self._given = dict[tuple[bytes, int], int]()  # bytes of each line of that second
        self._stamps = Counter[bytes]()  # of that second, in this stream
        self._line: tuple[bytes, int] | None = None  # the one that is just coming
        self._come = 0  # bytes of it
        self._rest = b""

    def begin(self) -> None:
        """Say that a new stream begins; what the one before has left unfinished comes again."""
        self._stamps.clear()
        self._line, self._rest = None, b""

    def take(self, piece: bytes) -> list[bytes]:
        """Return the lines that are whole now and new, without stamp and end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        found = []
        for line in lines:
            found += self._part(line)
            self._line = None
        return found + (self.flush() if len(self._rest) > self._longest else [])

    def flush(self) -> list[bytes]:
        """Return what a stream has brought last, without the end of a line."""
        rest, self._rest = self._rest, b""
        return self._part(rest) if rest else []

    def _part(self, text: bytes) -> list[bytes]:
        if self._line is None:
            stamp = self._begun(text)
            self._line, self._come = stamp, 0
            text = text[len(stamp[0]) :]
        given, before = self._given.get(self._line, -1), self._come
        self._come += len(text)
        if self._come <= given:
            return []
        self._given[self._line] = self._come
        return [text[max(given - before, 0) :]]

    def _begun(self, text: bytes) -> tuple[bytes, int]:
        """Return the stamp with which a line begins, and its number among those with the same."""
        found = _STAMP.match(text)
        if found is None:
            self._given.pop(_UNSTAMPED, None)
            return _UNSTAMPED
        second = (found[1] + found[2]).decode()
        if second != self.since:
            self.since = second
            self._given.clear()
            self._stamps.clear()
        self._stamps[found[0]] += 1
        return found[0], self._stamps[found[0]]
