"""What the spans of a scanned document mean: scalars, text in pieces, wanted members.

Only small things are built. The schema, not this module, says what is allowed in a field.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reporter.common.json_scan import Span

# A piece never ends inside a UTF-8 sequence or between the halves of a surrogate pair or a CR LF.
_PIECE = re.compile(
    rb"(?:[^\\]{1,64}+[\x80-\xbf]{0,3}+"
    rb"|\\u[dD][89abAB]..\\u[dD][c-fC-F].."
    rb"|\\(?:r|u000[dD])\\(?:n|u000[aA])"
    rb"|\\u....|\\.){1,256}"
)
_WHITE_SPACE = b" \t\n\r"
_LONGEST_NUMBER = 64


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
    number = data[value.start : value.end].rstrip(_WHITE_SPACE)
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
