"""JSON (RFC 8259) over bytes: checks a document, says where its values stand and what they mean.

Nothing is built but small things that are asked for: a value is a span of bytes, so a hostile
document costs no memory beyond its own bytes, and time in proportion to its length. What is allowed
in a field is not said here but in a schema.
"""

import json
import re
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

from reporter.errors import InvalidPayload

MAX_DEPTH = 1000
"""Levels of objects and arrays, the document's own object included."""

# Runs of flat values and of brackets are one match each, so that a million of them take no million
# turns of a loop. Sets of characters repeat possessively and groups a bounded number of times:
# then nothing is tried twice and the matcher's stack stays small. Groups must not be possessive:
# Python before 3.11.5 goes on behind a half-matched one (cpython issue 106052).
_WS = rb"[ \t\n\r]*+"
_STRING_PART = rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})'
_SHORT_STRING = rb'"' + _STRING_PART + rb'{0,32}"'
_NUMBER = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9.eE+-])"
_SCALAR = rb"(?:" + _SHORT_STRING + rb"|true|false|null|" + _NUMBER + rb")" + _WS
_EMPTY = rb"(?:\[" + _WS + rb"\]|\{" + _WS + rb"\})" + _WS
_COMMA = rb"," + _WS
_SHORT_KEY = _SHORT_STRING + _WS + rb":" + _WS
_FLAT_ELEMENTS = rb"(?:" + _SCALAR + _COMMA + rb"){0,128}"
_FLAT_MEMBERS = rb"(?:" + _SHORT_KEY + _SCALAR + _COMMA + rb"){0,128}"

_skip_space = re.compile(_WS).match
_skip_comma = re.compile(_COMMA).match
_skip_colon = re.compile(_WS + rb":" + _WS).match
_skip_string_parts = re.compile(_STRING_PART + rb"{0,512}").match
_skip_short_key = re.compile(_SHORT_KEY).match
_skip_flat_value = re.compile(_SCALAR + rb"|" + _EMPTY).match
_skip_flat_members = re.compile(_FLAT_MEMBERS).match
_skip_array_starts = re.compile(rb"(?:\[" + _WS + rb"(?!\])){1,256}").match
_skip_object_start = re.compile(rb"\{" + _WS + _FLAT_MEMBERS + _SHORT_KEY).match
_skip_to_next_element = re.compile(_COMMA + _FLAT_ELEMENTS).match
_skip_to_next_member = re.compile(_COMMA + _FLAT_MEMBERS + _SHORT_KEY).match
_skip_closers = re.compile(rb"[\]} \t\n\r]*+").match
_is_cut_off = re.compile(
    rb"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|\\(?:u[0-9A-Fa-f]{0,3})?"
    rb"|-|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]*+)?)\Z"
).match
# A piece never ends inside a UTF-8 sequence or between the halves of a surrogate pair or a CR LF.
_PIECE = re.compile(
    rb"(?:[^\\]{1,64}+[\x80-\xbf]{0,3}+"
    rb"|\\u[dD][89abAB]..\\u[dD][c-fC-F].."
    rb"|\\(?:r|u000[dD])\\(?:n|u000[aA])"
    rb"|\\u....|\\.){1,256}"
)
_LONGEST_NUMBER = 64
_OBJECT_END = ord("}")
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class Malformed(InvalidPayload):
    """Not one JSON object; `cause` repeats no content. Line and column count from 1.

    UTF-8 that is invalid inside a string is no reason: `pieces` replaces it.
    """

    def __init__(self, data: bytes, at: int, cause: str) -> None:
        self.line, self.column = line_and_column(data, at)
        self.cause = cause
        super().__init__(f"line {self.line}, column {self.column}: {cause}")


class Span(NamedTuple):
    """Where a value or a key stands, with the white space (and the colon) behind it."""

    start: int
    end: int


def line_and_column(data: bytes, at: int) -> tuple[int, int]:
    """The place of a byte, for people: both count from 1, columns in characters."""
    start = data.rfind(b"\n", 0, at) + 1
    return data.count(b"\n", 0, at) + 1, len(
        data[start:at].translate(None, _CONTINUATION_BYTES)
    ) + 1


def document(data: bytes) -> Iterator[tuple[Span, Span]]:
    """Key and value of every member of the one object that `data` is.

    Raises `Malformed`, maybe after the last member: only an iteration to the end checks everything.
    """
    _refuse_other_encodings(data)
    start = _after_space(data, 0)
    if start == len(data):
        raise Malformed(data, start, "the document is empty")
    if data[start : start + 1] != b"{":
        raise Malformed(data, start, "the top level must be an object")
    end = yield from _members(data, start)
    if end != len(data):
        raise Malformed(data, end, "only white space may follow the object")


def members(data: bytes, value: Span) -> Iterator[tuple[Span, Span]]:
    """Key and value of every member of an object in a document that was checked before."""
    yield from _members(data, value.start)


def elements(data: bytes, value: Span) -> Iterator[Span]:
    """The elements of an array in a document that was checked before."""
    at = _after_space(data, value.start + 1)
    while data[at : at + 1] != b"]":
        end = _after_value(data, at, MAX_DEPTH)
        yield Span(at, end)
        at = _after_space(data, end + 1) if data[end : end + 1] == b"," else end


def compact(data: bytes, value: Span) -> Iterator[bytes]:
    """The bytes of a value in a document that was checked before, without white space around it.

    And without any between its parts; strings stay as they are. In pieces, in order.
    """
    at = value.start
    while (quote := data.find(b'"', at, value.end)) >= 0:
        end = _after_string(data, quote)
        yield data[at:quote].translate(None, b" \t\n\r") + data[quote:end]
        at = end
    yield data[at : value.end].translate(None, b" \t\n\r")


def pieces(data: bytes, string: Span) -> Iterator[str]:
    """The text of a string in pieces of at most 17 KiB; invalid UTF-8 becomes U+FFFD."""
    end = data.rindex(b'"', string.start, string.end)
    for piece in _PIECE.finditer(data, string.start + 1, end):
        yield _unescaped(piece.group())


def _unescaped(raw: bytes) -> str:
    text = raw.decode(errors="replace")
    return str(json.loads(f'"{text}"')) if "\\" in text else text


def scalar(data: bytes, value: Span) -> object:
    """A value as far as a rule can ask for it.

    That is the first piece of a long string (`pieces` has all of it), an empty object or array, and
    for an integer beyond every limit another such one.
    """
    match data[value.start : value.start + 1]:
        case b'"':
            return next(pieces(data, value), "")
        case b"{":
            return {}
        case b"[":
            return []
        case b"t":
            return True
        case b"f":
            return False
        case b"n":
            return None
    number = data[value.start : value.end].rstrip(b" \t\n\r")
    if number.lstrip(b"-").isdigit():
        return int(number[:_LONGEST_NUMBER])
    return float(number)


class Members(NamedTuple):
    """The wanted members of one object, and by name what its author should know about the keys."""

    spans: dict[str, Span]
    notes: list[tuple[str, str]]


def pick(data: bytes, members: Iterable[tuple[Span, Span]], wanted: tuple[str, ...]) -> Members:
    """Go through all members and keep the wanted ones (names in lower case), the last of each name.

    A key in another letter case counts where the exact one is missing.
    """
    longest = max(map(len, wanted)) * len(r"\u0000")
    exact: dict[str, Span] = {}
    other_case: dict[str, tuple[str, Span]] = {}
    repeated: dict[str, None] = {}
    for key_span, value in members:
        start, end = key_span.start + 1, data.rindex(b'"', key_span.start, key_span.end)
        if end - start > longest:
            continue
        key = _unescaped(data[start:end])
        name = key.lower()
        if name not in wanted:
            continue
        if name in (exact if key == name else other_case):
            repeated[name] = None
        if key == name:
            exact[name] = value
        else:
            other_case[name] = key, value
    notes = [(name, _other_case(key, name, name in exact)) for name, (key, _) in other_case.items()]
    notes += [(name, f"the key '{name}' is given more than once") for name in repeated]
    spans = {name: value for name, (_, value) in other_case.items()} | exact
    return Members(spans, notes)


def _other_case(key: str, name: str, exact_is_there: bool) -> str:
    if exact_is_there:
        return f"the key '{key}' is ignored, because '{name}' is present"
    return f"the key '{key}' is read as '{name}'"


def _refuse_other_encodings(data: bytes) -> None:
    if data.startswith(b"\xef\xbb\xbf"):
        raise Malformed(data, 0, "a byte order mark (BOM) is not allowed")
    zeros = [byte == 0 for byte in data[:4]]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        zeros[:2] in ([True, False], [False, True]) or zeros == [True, True, True, False]
    ):
        raise Malformed(data, 0, "the encoding must be UTF-8, not UTF-16 or UTF-32")


def _members(data: bytes, start: int) -> Generator[tuple[Span, Span], None, int]:
    """As `document`, of the object at `start`; returns where the document goes on."""
    at = _after_space(data, start + 1)
    if data[at : at + 1] == b"}":
        return _after_space(data, at + 1)
    while True:
        value_at = _after_key(data, at)
        end = _after_value(data, value_at, MAX_DEPTH - 1)
        yield Span(at, value_at), Span(value_at, end)
        if data[end : end + 1] == b"}":
            return _after_space(data, end + 1)
        at = _after_comma(data, end, "}")


def _after_value(data: bytes, at: int, levels: int) -> int:
    """The end of the value at `at` and of the white space behind it; it may be `levels` deep."""
    closers = bytearray()  # of the containers that are open, innermost last
    while True:
        flat = _skip_flat_value(data, at)
        if flat and (len(closers) < levels or data[at] not in b"[{"):
            at = flat.end()
        elif data[at : at + 1] == b'"':
            at = _after_space(data, _after_string(data, at))
        else:
            at = _after_opening(data, at, closers, levels)
            continue
        if closers and data[at : at + 1] in (b"]", b"}"):
            at = _after_closing(data, at, closers)
        if not closers:
            return at
        in_object = closers[-1] == _OBJECT_END
        following = (_skip_to_next_member if in_object else _skip_to_next_element)(data, at)
        if following:
            at = following.end()
        else:
            at = _after_comma(data, at, chr(closers[-1]))
            at = _after_key(data, _end(_skip_flat_members(data, at)))


def _after_opening(data: bytes, at: int, closers: bytearray, levels: int) -> int:
    """Open what starts at `at`, a run of arrays at once; on to the next value inside."""
    arrays = _skip_array_starts(data, at)
    if arrays is None and data[at : at + 1] not in (b"[", b"{"):
        raise _no_value(data, at)
    opened = b"]" * data.count(b"[", at, arrays.end()) if arrays else b"}"
    if len(closers) + len(opened) > levels:
        for _ in range(levels - len(closers)):
            at = data.index(b"[", at) + 1
        raise Malformed(data, _after_space(data, at), f"nesting deeper than {MAX_DEPTH} levels")
    closers += opened
    if arrays:
        return arrays.end()
    member = _skip_object_start(data, at)
    if member:
        return member.end()
    at = _after_space(data, at + 1)
    return _after_key(data, _end(_skip_flat_members(data, at)))


def _after_closing(data: bytes, at: int, closers: bytearray) -> int:
    """Close what ends at `at`; a bracket that does not fit is left there."""
    end = _end(_skip_closers(data, at))
    run = data[at:end].translate(None, b" \t\n\r")[::-1]
    if closers.endswith(run):
        del closers[len(closers) - len(run) :]
        return end
    while closers and data[at : at + 1] == closers[-1:]:
        closers.pop()
        at = _after_space(data, at + 1)
    return at


def _after_space(data: bytes, at: int) -> int:
    return _end(_skip_space(data, at))


def _after_key(data: bytes, at: int) -> int:
    key = _skip_short_key(data, at)
    if key:
        return key.end()
    if data[at : at + 1] != b'"':
        raise _unexpected(data, at, "expected a key in double quotes")
    at = _after_string(data, at)
    colon = _skip_colon(data, at)
    if colon is None:
        raise _unexpected(data, _after_space(data, at), "expected ':' after the key")
    return colon.end()


def _after_string(data: bytes, at: int) -> int:
    end = at + 1
    while (parts := _end(_skip_string_parts(data, end))) > end:
        end = parts
    if data[end : end + 1] == b'"':
        return end + 1
    escape = data[end : end + 1] == b"\\"
    cause = "invalid escape in a string" if escape else "control character in a string"
    raise _unexpected(data, end, cause)


def _after_comma(data: bytes, at: int, closer: str) -> int:
    comma = _skip_comma(data, at)
    if comma is None:
        raise _unexpected(data, at, f"expected ',' or '{closer}'")
    return comma.end()


def _end(match: re.Match[bytes] | None) -> int:
    """The end of a match that cannot fail."""
    assert match is not None
    return match.end()


def _no_value(data: bytes, at: int) -> Malformed:
    if data.startswith((b"NaN", b"Infinity", b"-Infinity"), at):
        return Malformed(data, at, "NaN and Infinity are not allowed")
    number = data[at : at + 1] in b"-0123456789"
    return _unexpected(data, at, "not a valid number" if number else "expected a value")


def _unexpected(data: bytes, at: int, cause: str) -> Malformed:
    """The cause, unless the document is fine as far as it goes: maybe somebody still writes it."""
    if at == len(data) or _is_cut_off(data, at):
        return Malformed(data, len(data), "unexpected end of the document")
    return Malformed(data, at, cause)
