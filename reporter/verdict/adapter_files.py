"""An adapter's files: bytes to `ResultPayload` and `Progress`, by the published schemas."""

import re
from typing import Any

from reporter.common import schema
from reporter.common.json_scan import Span, compact, document, elements, pick, pieces, scalar
from reporter.common.text import clean, clean_pieces
from reporter.errors import InvalidPayload
from reporter.verdict.facts import Progress, ResultPayload

RESULT_SCHEMA = "result.v1"
RESULT_FIELDS = ("status", "reason", "message", "details")

MAX_RESULT_BYTES = 1024 * 1024
REASON_BYTES, NO_REASON = 128, "NoReasonProvided"
MESSAGE_BYTES, NO_MESSAGE = 1024, "No message provided"


DETAILS_BYTES = 16 * 1024

# C1 controls and bidirectional characters may stand in JSON as they are, and on no terminal.
_RISKY = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def decode_result(data: bytes, *, details: bool = False) -> ResultPayload:
    """The result in a file's bytes, with its `details` if they are wanted.

    Raises `InvalidPayload`, whose text repeats nothing of the bytes.
    """
    if len(data) > MAX_RESULT_BYTES:
        raise InvalidPayload(f"larger than {MAX_RESULT_BYTES} bytes")
    # `pick` goes through all of the document, which checks it.
    spans, notes = pick(data, document(data), RESULT_FIELDS)
    instance = {name: scalar(data, span) for name, span in spans.items()}
    schema.check(RESULT_SCHEMA, instance)
    return ResultPayload(
        success=instance["status"] == "success",
        reason=_text(data, spans.get("reason"), REASON_BYTES, NO_REASON),
        message=_text(data, spans.get("message"), MESSAGE_BYTES, NO_MESSAGE),
        notes=tuple(text for _, text in notes),
        details=_details(data, spans.get("details")) if details else None,
    )


def _details(data: bytes, value: Span | None) -> str | None:
    """Compact JSON of at most 16 KiB, or how large it would be; null counts as none."""
    if value is None or data.startswith(b"null", value.start):
        return None
    kept, size = bytearray(), 0
    for piece in compact(data, value):
        size += len(piece)
        if size <= DETAILS_BYTES:
            kept += piece
    text = _RISKY.sub(lambda found: f"\\u{ord(found[0]):04x}", kept.decode(errors="replace"))
    if size > DETAILS_BYTES or len(text.encode()) > DETAILS_BYTES:
        return f'{{"truncated":true,"bytes":{size}}}'
    return text


def _text(data: bytes, value: Span | None, limit_bytes: int, default: str) -> str:
    """The cleaned text of a string; the default where it is missing or null."""
    if value is None or data[value.start : value.start + 1] != b'"':
        return default
    return clean_pieces(pieces(data, value), limit_bytes, default)


PROGRESS_SCHEMA = "progress.v1"
PROGRESS_FIELDS = ("msg", "total", "completed", "failures", "errors")

MAX_PROGRESS_BYTES = 64 * 1024
PROGRESS_TEXT_BYTES = 1024


def decode_progress(data: bytes) -> Progress:
    """The progress in some bytes. Raises `InvalidPayload`, whose text repeats nothing of them."""
    if len(data) > MAX_PROGRESS_BYTES:
        raise InvalidPayload(f"larger than {MAX_PROGRESS_BYTES} bytes")
    spans, _ = pick(data, document(data), PROGRESS_FIELDS)
    instance = {name: value_of(data, span) for name, span in spans.items()}
    schema.check(PROGRESS_SCHEMA, instance)
    # The schema has just said what each of these is; an integer may be written as 3.0.
    value: dict[str, Any] = {name: found for name, found in instance.items() if found is not None}
    return Progress(
        msg=clean(value.get("msg", ""), PROGRESS_TEXT_BYTES),
        total=int(value["total"]) if "total" in value else None,
        completed=int(value["completed"]) if "completed" in value else None,
        failures=tuple(clean(text, PROGRESS_TEXT_BYTES) for text in value.get("failures", ())),
        errors=tuple(clean(text, PROGRESS_TEXT_BYTES) for text in value.get("errors", ())),
    )


def value_of(data: bytes, span: Span) -> object:
    """A value with everything the schema looks at; 64 KiB bound what that can cost."""
    match data[span.start : span.start + 1]:
        case b"[":
            return [_scalar(data, element) for element in elements(data, span)]
        case _:
            return _scalar(data, span)


def _scalar(data: bytes, span: Span) -> object:
    value = scalar(data, span)
    return "".join(pieces(data, span)) if isinstance(value, str) else value
