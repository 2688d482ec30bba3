"""The lines of a container's log, read in streams that are cut and begun again.

A stream has a time stamp before each line. The next one begins with the second of the newest line,
so that nothing is lost, and what came before is known by its stamp. Only a node's clock that is set
back, or a cut within a line of more than LONGEST bytes, can make lines come twice.
"""

import re
from typing import Final

LONGEST: Final = 64 * 1024
"""Bytes after which a line that does not end is given in parts."""
_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d) ")


class LogLines:
    """One container's log."""

    def __init__(self) -> None:
        self.since = ""
        """The second from which the next stream is wanted; empty: from the beginning."""
        self._seen = dict[bytes, int]()  # by the stamps of that second: how many bytes of the line
        self._known = dict[bytes, int]()
        self._rest = b""

    def begin(self) -> None:
        """Say that a new stream begins; what the one before has left unfinished comes again."""
        self._rest, self._known = b"", dict(self._seen)

    def take(self, piece: bytes) -> list[bytes]:
        """Return the lines that are whole now and new, without stamp and end."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LONGEST:
            lines, self._rest = [*lines, self._rest], b""
        return [text for line in lines if (text := self._new(line)) is not None]

    def flush(self) -> list[bytes]:
        """Return what the last stream has brought last, without the end of a line."""
        rest, self._rest = self._rest, b""
        found = self._new(rest) if rest else None
        return [] if found is None else [found]

    def _new(self, line: bytes) -> bytes | None:
        found = _STAMP.match(line)
        if found is None:
            return line
        stamp, second, text = found[0], (found[1] + found[2]).decode(), line[found.end() :]
        if second != self.since:
            self._seen.clear()
        self.since = second
        self._seen[stamp] = len(text)
        given = self._known.get(stamp)
        return text if given is None else text[given:] or None
