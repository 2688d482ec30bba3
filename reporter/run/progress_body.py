"""The body of a progress request, read the way Sonobuoy's decoder reads it."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from reporter.errors import InvalidPayload
from reporter.run.progress import INT64_MAX, INT64_MIN, Progress

DEEPEST: Final = 32
TOO_DEEP: Final = f"nested deeper than {DEEPEST}"

_OURS: Final = frozenset({"name", "node", "timestamp"})  # the aggregator says these itself
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
# Brackets, and strings to step over; possessive, or a hostile string would take quadratic time.
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)


class Texts(NamedTuple):
    """A list of texts in which only the first are kept; `total` says how many there are."""

    kept: list[str]
    total: int


def parse_progress(body: bytes) -> Progress:
    """Read the body of a progress request. Raises `InvalidPayload`, whose text repeats none of it.

    Field names in any letter case, `null` as absent, unknown fields and bytes after the object
    ignored; whole numbers only as digits. Nothing is cut to size here: `combine` does that, and
    counts first.
    """
    return progress_of(_document(body))


def progress_of(document: dict[str, Any]) -> Progress:
    """Return what a document says, in which lists may be `Texts`."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        field = name.casefold()
        check = FIELDS.get(field)
        if check is None or value is None:
            continue
        checked = check(field, value.kept if isinstance(value, Texts) else value)
        if field in _OURS:
            continue
        found[field] = checked
        if isinstance(value, Texts):
            found[f"{field}_total"] = value.total
    return Progress(**found)


def _document(body: bytes) -> dict[str, Any]:
    if not body:
        raise InvalidPayload("empty body")
    text = body.decode(errors="replace").lstrip(" \t\r\n")
    # Counting brackets is cheap and settles nearly every update; only names full of them need more.
    if body.count(b"[") + body.count(b"{") > DEEPEST:
        _refuse_deep(text)
    try:
        value, _ = _DECODER.raw_decode(text)
    except ValueError:
        raise InvalidPayload("not JSON") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidPayload("not a JSON object")
    return value


def _refuse_deep(text: str) -> None:
    """Raise InvalidPayload before it is parsed: Pythons differ in how deep their parsers can go."""
    depth = 0
    for found in _NESTING.finditer(text):
        if found[0] in "[{":
            depth += 1
            if depth > DEEPEST:
                raise InvalidPayload(TOO_DEEP)
        elif found[0] in "]}":
            depth -= 1
            if depth <= 0:
                return  # the end of the object


def _string(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidPayload(f"{field}: not a string")
    return value


def _integer(field: str, value: object) -> int:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        raise InvalidPayload(f"{field}: not a 64-bit integer")
    return value


def _count(field: str, value: object) -> int:
    number = _integer(field, value)
    if number < 0:
        raise InvalidPayload(f"{field}: negative")
    return number


def _boolean(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidPayload(f"{field}: not true or false")
    return value


def _strings(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidPayload(f"{field}: not a list of strings")
    strings = tuple("" if item is None else item for item in value)
    if not all(isinstance(item, str) for item in strings):
        raise InvalidPayload(f"{field}: not a list of strings")
    return strings


def _timestamp(field: str, value: object) -> None:
    text = _string(field, value)
    try:
        if not _TIMESTAMP.fullmatch(text):
            raise ValueError(text)
        datetime.fromisoformat(text)
    except ValueError:
        raise InvalidPayload(f"{field}: not an RFC 3339 time") from None


FIELDS: dict[str, Callable[[str, object], object]] = {
    "name": _string,
    "node": _string,
    "timestamp": _timestamp,
    "msg": _string,
    "total": _integer,
    "completed": _integer,
    "failures": _strings,
    "errors": _strings,
    "appendtotals": _boolean,
    "appendcompleted": _count,
    "appendfailing": _strings,
}


def _no_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are Python's, not JSON's


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
