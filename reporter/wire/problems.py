"""What is wrong with a result file, and what will happen to it, told to the person who wrote it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from reporter.core.json_scan import Malformed, Span, document, line_and_column, members
from reporter.core.json_values import pick, pieces, scalar
from reporter.core.text import clean, clean_pieces
from reporter.wire import schema
from reporter.wire.result import (
    FIELDS,
    MAX_BYTES,
    MESSAGE_BYTES,
    NO_MESSAGE,
    NO_REASON,
    REASON_BYTES,
    SCHEMA,
)

_TEXTS = {"reason": (REASON_BYTES, NO_REASON), "message": (MESSAGE_BYTES, NO_MESSAGE)}
_BOM = b"\xef\xbb\xbf"
_SHOWN_BYTES = 40  # of a value that is wrong
_MOST_UNKNOWN = 100  # fields that are compared with the known ones
_LONGEST_UNKNOWN = 24  # bytes with quotes and colon; the longest known field has seven


Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One remark: an `error` makes the file invalid. Line and column count from 1."""

    severity: Severity
    line: int
    column: int
    field: str
    text: str


def problems_in(data: bytes) -> list[Problem]:
    """Everything there is to say about a result file, in its order; empty if it is fine."""
    if len(data) > MAX_BYTES:
        return [Problem("error", 1, 1, "", f"larger than {MAX_BYTES} bytes")]
    remarks, broken = list[Problem](), list[Malformed]()
    if data.startswith(_BOM):
        remarks.append(Problem("error", 1, 1, "", "a byte order mark (BOM) is not allowed"))
        data = b" " + data[len(_BOM) :]  # as many columns
    spans, key_notes = pick(data, _readable(data, broken), FIELDS)
    remarks += [Problem("error", each.line, each.column, "", each.cause) for each in broken]

    instance = {name: scalar(data, span) for name, span in spans.items()}
    wrong = {
        field: text
        for field, text in schema.problems(SCHEMA, instance).items()
        # What is missing may stand behind the place where it is broken.
        if field in spans or not broken
    }
    for field, text in wrong.items():
        found = f", found {_shown(data, spans[field])}" if field in spans else ""
        remarks.append(_problem(data, "error", spans, field, text + found))
    remarks += [_problem(data, "note", spans, field, text) for field, text in key_notes]
    for field in _TEXTS.keys() & spans.keys() - wrong.keys():
        text = _text_note(data, spans[field], *_TEXTS[field])
        remarks += [_problem(data, "note", spans, field, text)] if text else []
    if "status" in wrong and _has_status(data, spans.get("details")):
        text = "a 'status' inside 'details' is ignored: it must be at the top level"
        remarks.append(_problem(data, "note", spans, "details", text))
    remarks += _misspelt(data, set(FIELDS) - spans.keys())
    return sorted(remarks, key=lambda problem: (problem.line, problem.column))


def _readable(data: bytes, broken: list[Malformed]) -> Iterator[tuple[Span, Span]]:
    """The members of the document as far as it can be read."""
    try:
        yield from document(data)
    except Malformed as error:
        broken.append(error)


def _problem(
    data: bytes, severity: Severity, spans: dict[str, Span], field: str, text: str
) -> Problem:
    at = spans[field].start if field in spans else data.index(b"{")
    return Problem(severity, *line_and_column(data, at), field, text)


def _shown(data: bytes, value: Span) -> str:
    """A wrong value, so far as it helps to find it."""
    match data[value.start : value.start + 1]:
        case b'"':
            text = clean_pieces(pieces(data, value), MAX_BYTES)
            return f'"{_cut(text)}"'
        case b"{":
            return "an object"
        case b"[":
            return "a list"
    return _cut(data[value.start : value.end].decode().strip())


def _cut(text: str) -> str:
    short = clean(text, _SHOWN_BYTES)
    return text if short == text else f"{short}..."


def _misspelt(data: bytes, missing: set[str]) -> Iterator[Problem]:
    """Unknown fields that read like a known one which is not there."""
    keys = (key for key, _ in _readable(data, []))
    short = (key for key in keys if key.end - key.start <= _LONGEST_UNKNOWN)
    for key in islice(short, _MOST_UNKNOWN):
        name = clean_pieces(pieces(data, key), MAX_BYTES)
        known = schema.nearest(name.lower(), FIELDS)
        if known in missing:
            text = f"unknown field '{name}': did you mean '{known}'?"
            yield Problem("warning", *line_and_column(data, key.start), "", text)


def _text_note(data: bytes, value: Span, limit_bytes: int, default: str) -> str:
    """What becomes of a text that cannot be shown as it is; empty if it can."""
    if data[value.start : value.start + 1] != b'"':
        return f"is null, '{default}' will be shown"
    size = len(clean_pieces(pieces(data, value), MAX_BYTES).encode())
    if size == 0:
        return f"is empty, '{default}' will be shown"
    if size > limit_bytes:
        return f"will be cut from {size} to {limit_bytes} bytes"
    return ""


def _has_status(data: bytes, details: Span | None) -> bool:
    if details is None or data[details.start : details.start + 1] != b"{":
        return False
    return "status" in pick(data, members(data, details), ("status",)).spans
