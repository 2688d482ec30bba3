"""What is wrong with a result file, and what will happen to it, told to the person who wrote it."""

from dataclasses import dataclass
from typing import Literal

from reporter.core.text import clean_pieces
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
from reporter.wire.scan import Malformed, Span, document, line_and_column, members
from reporter.wire.values import pick, pieces, scalar

_TEXTS = {"reason": (REASON_BYTES, NO_REASON), "message": (MESSAGE_BYTES, NO_MESSAGE)}


Severity = Literal["error", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One remark: an `error` makes the file invalid. Line and column count from 1."""

    severity: Severity
    line: int
    column: int
    field: str
    text: str


def explain(data: bytes) -> list[Problem]:
    """Everything there is to say about a result file, in its order; empty if it is fine."""
    if len(data) > MAX_BYTES:
        return [Problem("error", 1, 1, "", f"larger than {MAX_BYTES} bytes")]
    try:
        spans, key_notes = pick(data, document(data), FIELDS)
    except Malformed as error:
        return [Problem("error", error.line, error.column, "", error.cause)]

    instance = {name: scalar(data, span) for name, span in spans.items()}
    wrong = schema.problems(SCHEMA, instance)
    remarks = [_problem(data, "error", spans, field, text) for field, text in wrong.items()]
    remarks += [_problem(data, "note", spans, field, text) for field, text in key_notes]
    for field in _TEXTS.keys() & spans.keys() - wrong.keys():
        text = _text_note(data, spans[field], *_TEXTS[field])
        remarks += [_problem(data, "note", spans, field, text)] if text else []
    if "status" in wrong and _has_status(data, spans.get("details")):
        text = "a 'status' inside 'details' does not count, it belongs to the top level"
        remarks.append(_problem(data, "note", spans, "details", text))
    return sorted(remarks, key=lambda problem: (problem.line, problem.column))


def _problem(
    data: bytes, severity: Severity, spans: dict[str, Span], field: str, text: str
) -> Problem:
    at = spans[field].start if field in spans else data.index(b"{")
    return Problem(severity, *line_and_column(data, at), field, text)


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
