"""An adapter's result file: bytes to `ResultPayload`, by the published schema `result.v1`."""

from reporter.core.payloads import ResultPayload
from reporter.core.text import clean_pieces
from reporter.errors import InvalidPayload
from reporter.wire import schema
from reporter.wire.scan import Span, document
from reporter.wire.values import pick, pieces, scalar

SCHEMA = "result.v1"
FIELDS = ("status", "reason", "message", "details")

MAX_BYTES = 1024 * 1024
REASON_BYTES, NO_REASON = 128, "NoReasonProvided"
MESSAGE_BYTES, NO_MESSAGE = 1024, "No message provided"


def decode_result(data: bytes) -> ResultPayload:
    """The result in a file's bytes. Raises `InvalidPayload`, whose text repeats nothing of them."""
    if len(data) > MAX_BYTES:
        raise InvalidPayload(f"larger than {MAX_BYTES} bytes")
    spans, notes = pick(data, document(data), FIELDS)
    instance = {name: scalar(data, span) for name, span in spans.items()}
    problems = schema.problems(SCHEMA, instance)
    if problems:
        raise InvalidPayload("; ".join(f"{field}: {text}" for field, text in problems.items()))
    return ResultPayload(
        success=instance["status"] == "success",
        reason=_text(data, spans.get("reason"), REASON_BYTES, NO_REASON),
        message=_text(data, spans.get("message"), MESSAGE_BYTES, NO_MESSAGE),
        notes=tuple(text for _, text in notes),
    )


def _text(data: bytes, value: Span | None, limit_bytes: int, default: str) -> str:
    """The cleaned text of a string; the default where it is missing or null."""
    if value is None or data[value.start : value.start + 1] != b'"':
        return default
    return clean_pieces(pieces(data, value), limit_bytes, default)
