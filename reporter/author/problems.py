"""What is wrong with a file of an adapter, and what will happen to it, told to who wrote it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from reporter.common import schema
from reporter.common.json_scan import (
    Malformed,
    Span,
    document,
    elements,
    line_and_column,
    members,
    pick,
    pieces,
    scalar,
)
from reporter.common.text import clean, clean_pieces
from reporter.verdict import adapter_files as files

_SHOWN_BYTES = 40  # of a value that is wrong
_MOST_UNKNOWN = 100  # fields that are compared with the known ones
_LONGEST_UNKNOWN = 24  # bytes with quotes and colon; the longest known field has nine


Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One remark: an `error` makes the file invalid. Line and column count from 1."""

    severity: Severity
    line: int
    column: int
    field: str
    text: str

    @property
    def place(self) -> str:
        """Where it is, for a person."""
        return f"line {self.line}, column {self.column}"

    @property
    def words(self) -> str:
        """The text, behind the field that it is about."""
        return f"{self.field}: {self.text}" if self.field else self.text


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: `value` is what the schema is shown of a field, `texts` may be cut."""

    schema: str
    fields: tuple[str, ...]
    max_bytes: int
    value: Callable[[bytes, Span], object]
    texts: Mapping[str, tuple[int, str]]


RESULT = Kind(
    files.RESULT_SCHEMA,
    files.RESULT_FIELDS,
    files.MAX_RESULT_BYTES,
    scalar,
    {
        "reason": (files.REASON_BYTES, files.NO_REASON),
        "message": (files.MESSAGE_BYTES, files.NO_MESSAGE),
    },
)
PROGRESS = Kind(
    files.PROGRESS_SCHEMA, files.PROGRESS_FIELDS, files.MAX_PROGRESS_BYTES, files.value_of, {}
)


def problems_in(data: bytes, kind: Kind = RESULT) -> list[Problem]:
    """Everything there is to say about a file, in its order; empty if it is fine."""
    if len(data) > kind.max_bytes:
        return [Problem("error", 1, 1, "", f"larger than {kind.max_bytes} bytes")]
    broken = list[Malformed]()
    spans, key_notes = pick(data, _readable(data, broken), kind.fields)
    remarks = [Problem("error", each.line, each.column, "", each.cause) for each in broken]

    instance = {name: kind.value(data, span) for name, span in spans.items()}
    wrong = set[str]()
    for field, text in schema.problems(kind.schema, instance).items():
        span = _span_of(data, spans, field)
        # A missing key may come after the place where the file is broken.
        if span is not None or not broken:
            wrong.add(field)
            found = f", found {_shown(data, span)}" if span is not None else ""
            remarks.append(_problem(data, "error", span, field, text + found))
    remarks += [_problem(data, "note", spans[field], field, text) for field, text in key_notes]
    for field in kind.texts.keys() & spans.keys() - wrong:
        text = _text_note(data, spans[field], *kind.texts[field])
        remarks += [_problem(data, "note", spans[field], field, text)] if text else []
    if "status" in wrong and _has_status(data, spans.get("details")):
        text = "a 'status' inside 'details' is ignored: it must be at the top level"
        remarks.append(_problem(data, "note", spans["details"], "details", text))
    remarks += _misspelt(data, kind.fields, set(kind.fields) - spans.keys())
    return sorted(remarks, key=lambda problem: (problem.line, problem.column))


def _readable(data: bytes, broken: list[Malformed]) -> Iterator[tuple[Span, Span]]:
    """The members of the document as far as it can be read."""
    try:
        yield from document(data)
    except Malformed as error:
        broken.append(error)


def _span_of(data: bytes, spans: dict[str, Span], field: str) -> Span | None:
    """Where a field stands, or an entry of a list that is one (as `failures[3]`)."""
    name, _, position = field.rstrip("]").partition("[")
    span = spans.get(name)
    if span is None or not position:
        return span
    return next(islice(elements(data, span), int(position), None))


def _problem(data: bytes, severity: Severity, span: Span | None, field: str, text: str) -> Problem:
    at = data.index(b"{") if span is None else span.start
    return Problem(severity, *line_and_column(data, at), field, text)


def _shown(data: bytes, value: Span) -> str:
    """A wrong value, so far as it helps to find it."""
    match data[value.start : value.start + 1]:
        case b'"':
            text = clean_pieces(pieces(data, value), files.MAX_RESULT_BYTES)
            return f'"{_cut(text)}"'
        case b"{":
            return "an object"
        case b"[":
            return "a list"
    return _cut(data[value.start : value.end].decode().strip())


def _cut(text: str) -> str:
    short = clean(text, _SHOWN_BYTES)
    return text if short == text else f"{short}..."


def _misspelt(data: bytes, fields: Sequence[str], missing: set[str]) -> Iterator[Problem]:
    """Unknown fields that read like a known one which is not there."""
    keys = (key for key, _ in _readable(data, []))
    short = (key for key in keys if key.end - key.start <= _LONGEST_UNKNOWN)
    for key in islice(short, _MOST_UNKNOWN):
        name = clean_pieces(pieces(data, key), files.MAX_RESULT_BYTES)
        known = schema.nearest(name.lower(), fields)
        if known in missing:
            text = f"unknown field '{name}': did you mean '{known}'?"
            yield Problem("warning", *line_and_column(data, key.start), "", text)


def _text_note(data: bytes, value: Span, limit_bytes: int, default: str) -> str:
    """What becomes of a text that cannot be shown as it is; empty if it can."""
    if data[value.start : value.start + 1] != b'"':
        return f"is null, '{default}' will be shown"
    size = len(clean_pieces(pieces(data, value), files.MAX_RESULT_BYTES).encode())
    if size == 0:
        return f"is empty, '{default}' will be shown"
    if size > limit_bytes:
        return f"will be cut from {size} to {limit_bytes} bytes"
    return ""


def _has_status(data: bytes, details: Span | None) -> bool:
    if details is None or data[details.start : details.start + 1] != b"{":
        return False
    return "status" in pick(data, members(data, details), ("status",)).spans
