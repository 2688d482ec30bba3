"""The body of a progress request, read the way Sonobuoy's decoder reads it.

Nothing is built of a body but what is kept: so a hostile one costs no memory, and no call into the
parser of the standard library holds up the other threads of the process.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final

from reporter.common.json_scan import Malformed, Span, elements, members, pieces, scalar
from reporter.errors import InvalidPayload
from reporter.run.progress import INT64_MAX, INT64_MIN, KEPT, Progress, clip

AT_ONCE: Final = 4 * 1024
"""Bytes of a body that may be read on an event loop: 2.5 ms at most, whatever they are.

A mebibyte of nested lists takes half a second. That is for a thread.
"""
_TEXTS: Final = frozenset({"failures", "errors", "appendfailing"})
_COUNTS: Final = frozenset({"total", "completed", "appendcompleted"})
_NAMES: Final = frozenset({"msg", "appendtotals", "name", "node", "timestamp", *_TEXTS, *_COUNTS})
_OURS: Final = frozenset({"name", "node", "timestamp"})  # the aggregator says these itself
_LONGEST_NAME: Final = 128  # bytes of one that may be ours, with escapes and white space
_PIECES: Final = 4  # of a string, of 256 characters at least: more than is kept
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


def parse_progress(body: bytes) -> Progress:
    """Read it. Raises `InvalidPayload`, whose text repeats nothing of the body.

    Field names in any letter case, of several the last; `null` as absent, unknown fields and bytes
    after the object ignored; whole numbers only as digits.
    """
    fields: dict[str, Any] = {}
    for name, value in dict(_members(body)).items():
        if body.startswith(b"null", value.start):
            continue
        if name in _TEXTS:
            fields[name], fields[f"{name}_total"] = _texts(name, body, value)
        elif name == "msg" and body.startswith(b'"', value.start):
            fields[name] = _text(body, value)
        else:
            fields[name] = _plain(name, scalar(body, value))
    return Progress(**{name: value for name, value in fields.items() if name not in _OURS})


def _members(body: bytes) -> Iterator[tuple[str, Span]]:
    """Yield the members that are ours, by their lower-case names."""
    start = len(body) - len(body.lstrip(b" \t\r\n"))
    if body.startswith(b"null", start):
        return
    if not body.startswith(b"{", start):
        raise InvalidPayload("not a JSON object" if body else "empty body")
    try:
        for key, value in members(body, Span(start, len(body))):
            if key.end - key.start <= _LONGEST_NAME:
                name = next(pieces(body, key), "").casefold()
                if name in _NAMES:
                    yield name, value
    except Malformed:
        raise InvalidPayload("not JSON") from None


def _text(body: bytes, value: Span) -> str:
    """Return as much of a string as may be kept."""
    return clip("".join(islice(pieces(body, value), _PIECES)))


def _texts(field: str, body: bytes, value: Span) -> tuple[tuple[str, ...], int]:
    """Return the first texts of a list, and how many there are."""
    kept: list[str] = []
    total = 0
    if not body.startswith(b"[", value.start):
        raise InvalidPayload(f"{field}: not a list of strings")
    for each in elements(body, value):
        total += 1
        first = body[each.start]
        if first not in b'"n':
            raise InvalidPayload(f"{field}: not a list of strings")
        if total <= KEPT:
            kept.append(_text(body, each) if first == ord('"') else "")
    return tuple(kept), total


def _plain(field: str, value: object) -> object:
    """Return a value that is of the field's type."""
    if field in _COUNTS:
        if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
            raise InvalidPayload(f"{field}: not a 64-bit integer")
        if field == "appendcompleted" and value < 0:
            raise InvalidPayload(f"{field}: negative")
    elif field == "appendtotals":
        if not isinstance(value, bool):
            raise InvalidPayload(f"{field}: not true or false")
    elif not isinstance(value, str):
        raise InvalidPayload(f"{field}: not a string")
    elif field == "timestamp" and not _is_time(value):
        raise InvalidPayload(f"{field}: not an RFC 3339 time")
    return value


def _is_time(written: str) -> bool:
    try:
        return bool(_TIMESTAMP.fullmatch(written) and datetime.fromisoformat(written))
    except ValueError:
        return False
