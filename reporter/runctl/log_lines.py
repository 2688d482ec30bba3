"""The lines of a container's log, read in streams that are cut and begun again.

A stream has a time stamp before each line. The next one begins with the second of the newest line,
so that nothing is lost, and what came before is known by its stamp. Only a node's clock that is set
back can make lines come twice.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 64 * 1024
"""Bytes after which a line that does not end is given in parts."""
_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d) ")


@dataclass(slots=True)
class _Line:
    """The line that is just coming. `given` are its bytes that were given, `skip` is left of those.

    A line that is `known` was given as a whole by an earlier stream.
    """

    stamp: bytes
    second: str
    known: bool
    skip: int
    given: int


class LogLines:
    """One container's log."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self.since = ""
        """The second from which the next stream is wanted; empty: from the beginning."""
        self._seen, self._known = Counter[bytes](), Counter[bytes]()
        self._rest = b""
        self._line: _Line | None = None
        self._cut: tuple[bytes, int] = b"", 0

    def begin(self) -> None:
        """Say that a new stream begins; what the one before has left unfinished comes again."""
        if self._line is not None and not self._line.known:
            self._cut = self._line.stamp, self._line.given
        self._rest, self._line, self._known = b"", None, self._seen.copy()

    def take(self, piece: bytes) -> list[bytes]:
        """Return the lines that are whole now and new, without stamp and end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        found = []
        for line in lines:
            found += self._part(line)
            self._ended()
        if len(self._rest) > self._longest:
            found += self._part(self._rest)
            self._rest = b""
        return found

    def flush(self) -> list[bytes]:
        """Return what a stream has brought last, without the end of a line."""
        rest, self._rest = self._rest, b""
        return self._part(rest) if rest else []

    def _part(self, text: bytes) -> list[bytes]:
        line = self._line
        if line is None:
            line, text = self._begun(text)
            self._line = line
        if line.known:
            return []
        skipped = min(line.skip, len(text))
        line.skip -= skipped
        text = text[skipped:]
        if not text and line.given:
            return []
        line.given += len(text)
        return [text]

    def _begun(self, text: bytes) -> tuple[_Line, bytes]:
        found = _STAMP.match(text)
        if found is None:
            return _Line(b"", "", False, 0, 0), text
        stamp, second = found[0], (found[1] + found[2]).decode()
        known = self._known[stamp] > 0
        self._known[stamp] -= known
        cut = 0
        if self._cut[0] == stamp and not known:
            cut, self._cut = self._cut[1], (b"", 0)
        return _Line(stamp, second, known, cut, cut), text[found.end() :]

    def _ended(self) -> None:
        line, self._line = self._line, None
        assert line is not None
        if line.known or not line.stamp:
            return
        if line.second != self.since:
            self._seen.clear()
        self.since = line.second
        self._seen[line.stamp] += 1
