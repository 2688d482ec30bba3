"""A large body of a progress request, read in pieces: whoever serves others goes on between them.

Parsing a mebibyte at once takes tens of milliseconds, in which nothing else runs in the process,
whatever thread it is in. The meaning of the fields is `progress_body`'s.
"""

import codecs
import json
import re
from collections.abc import Generator
from typing import Any, Final

from reporter.errors import InvalidPayload
from reporter.run.progress import KEPT, Progress, clip
from reporter.run.progress_body import DEEPEST, FIELDS, TOO_DEEP, Texts, progress_of

Pieces = Generator[None, None, None]

# Runs of flat values are one match each, so that a million of them take no million turns of a loop.
# Sets of characters repeat possessively and groups a bounded number of times, so that nothing is
# tried twice. Groups must not be possessive: Python before 3.11.5 goes on behind a half-matched one
# (cpython issue 106052).
_WS = r"[ \t\n\r]*+"
_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})'
_PART = rf'(?:[^"\\\x00-\x1f]{{1,4096}}+|{_ESCAPE})'
_SHORT_STRING = rf'"{_PART}{{0,32}}"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9.eE+-])"
_SCALAR = rf"(?:{_SHORT_STRING}|true|false|null|{_NUMBER}){_WS}"
_FLAT = rf"(?:{_SCALAR}|\[{_WS}\]{_WS}|\{{{_WS}\}}{_WS})"
_KEY = rf"{_SHORT_STRING}{_WS}:{_WS}"

_space = re.compile(_WS).match
_string_parts = re.compile(rf"{_PART}{{0,64}}").match
_string_head = re.compile(rf'(?:[^"\\\x00-\x1f]{{1,64}}+|{_ESCAPE}){{0,1024}}').match
_texts = re.compile(rf"(?:(?:{_SHORT_STRING}|null){_WS},{_WS}){{0,128}}").match
_scalar, _flat = re.compile(_SCALAR).match, re.compile(_FLAT).match
_runs = {
    ("[", False): re.compile(rf"(?:{_SCALAR},{_WS}){{0,128}}").match,
    ("[", True): re.compile(rf"(?:{_FLAT},{_WS}){{0,128}}").match,
    ("{", False): re.compile(rf"(?:{_KEY}{_SCALAR},{_WS}){{0,128}}").match,
    ("{", True): re.compile(rf"(?:{_KEY}{_FLAT},{_WS}){{0,128}}").match,
}
_CLOSERS = {"[": "]", "{": "}"}
AT_ONCE: Final = 8 * 1024  # bytes for which pieces are not needed: 3 ms at most, all brackets
_DECODED: Final = 64 * 1024  # bytes between two yields
_LONGEST_NAME: Final = 128  # characters of a name that may be one of ours, escapes included
_LONGEST_SCALAR: Final = 32  # of a number that may be one of 64 bits
_OTHER: Final = object()  # a value that is of no field's type


def parse_in_pieces(body: bytes) -> Generator[None, None, Progress]:
    """As `parse_progress`, with a yield at least every 1 ms or so.

    Keeps no more texts than are ever kept. Raises `InvalidPayload`.
    """
    text = yield from _decoded(body)
    document = yield from _Reader(text).document()
    return progress_of(document)


def _decoded(body: bytes) -> Generator[None, None, str]:
    """Return the text: a mebibyte that is not UTF-8 would take 5 ms and more at once."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    parts = []
    for start in range(0, len(body), _DECODED):
        parts.append(decode(body[start : start + _DECODED]))
        yield
    return "".join((*parts, decode(b"", final=True)))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, _end(_space(text))

    def document(self) -> Generator[None, None, dict[str, Any]]:
        """Return the members that are ours. Bytes behind the object are ignored."""
        found: dict[str, Any] = {}
        if self._text.startswith("null", self._at):
            return found
        if not self._take("{"):
            raise InvalidPayload("not a JSON object")
        if self._take("}"):
            return found
        while True:
            name = yield from self._name()
            if name.casefold() in FIELDS:
                found[name] = yield from self._value()
            else:
                yield from self._skip(DEEPEST - 1)
            if self._take("}"):
                return found
            self._expect(",")
            yield

    def _value(self) -> Generator[None, None, Any]:
        """Return the value of a field: lists of texts as `Texts`, what fits none as `_OTHER`."""
        start = self._at
        if self._text.startswith('"', start):
            return (yield from self._string())
        if self._text.startswith("[", start):
            return (yield from self._list())
        yield from self._skip(DEEPEST - 1)
        written = self._text[start : self._at]
        if len(written) > _LONGEST_SCALAR or written.startswith("{"):
            return _OTHER
        return json.loads(written)

    def _list(self) -> Generator[None, None, Any]:
        kept: list[str] = []
        total, good = 0, True
        self._take("[")
        if self._take("]"):
            return Texts(kept, 0)
        while True:
            run = (_texts if good else _runs["[", True])(self._text, self._at)
            if good and (end := _end(run)) > self._at:
                texts = json.loads(f"[{self._text[self._at : end]}null]")[:-1]
                kept += [clip(text or "") for text in texts[: KEPT - len(kept)]]
                total += len(texts)
            self._at = _end(run)
            yield
            if good and self._text.startswith('"', self._at):
                text = yield from self._string()
                kept += [text] if len(kept) < KEPT else []
            elif good and self._text.startswith("null", self._at):
                kept += [""] if len(kept) < KEPT else []
                self._at = _end(_space(self._text, self._at + 4))
            else:
                good = False
                yield from self._skip(DEEPEST - 2)
            total += 1
            if self._take("]"):
                return Texts(kept, total) if good else _OTHER
            self._expect(",")

    def _name(self) -> Generator[None, None, str]:
        start = self._at
        yield from self._skip_string()
        written = self._text[start : self._at]
        self._expect(":")
        return str(json.loads(written)) if len(written) <= _LONGEST_NAME else ""

    def _string(self) -> Generator[None, None, str]:
        """Return as much of a string as may be kept."""
        start = self._at + 1
        head = self._text[start : _end(_string_head(self._text, start))]
        yield from self._skip_string()
        return clip(json.loads(f'"{head}"'))

    def _skip(self, levels: int) -> Pieces:
        """Go behind a value of any type, which may open so many levels."""
        text = self._text
        found = (_flat if levels else _scalar)(text, self._at)
        if found is not None:
            self._at = found.end()
            return
        first = text[self._at : self._at + 1]
        if first not in _CLOSERS:
            yield from self._skip_string()
            return
        if not levels:
            raise InvalidPayload(TOO_DEEP)
        self._take(first)
        run = _runs[first, levels > 1]
        while True:
            self._at = _end(run(text, self._at))
            yield
            if first == "{":
                yield from self._name()
            yield from self._skip(levels - 1)
            if self._take(_CLOSERS[first]):
                return
            self._expect(",")

    def _skip_string(self) -> Pieces:
        self._expect('"', space=False)
        while (end := _end(_string_parts(self._text, self._at))) > self._at:
            self._at = end
            yield
        self._expect('"')

    def _take(self, char: str) -> bool:
        if not self._text.startswith(char, self._at):
            return False
        self._at = _end(_space(self._text, self._at + 1))
        return True

    def _expect(self, char: str, *, space: bool = True) -> None:
        if not self._text.startswith(char, self._at):
            raise InvalidPayload("not JSON")
        self._at = _end(_space(self._text, self._at + 1)) if space else self._at + 1


def _end(match: re.Match[str] | None) -> int:
    """Return the end of a match that cannot fail."""
    assert match is not None
    return match.end()
