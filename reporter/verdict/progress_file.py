"""An adapter's progress: bytes to `Progress`, by the published schema `progress.v1`."""

from typing import Any

from reporter.common import schema
from reporter.common.json_scan import Span, document, elements
from reporter.common.json_values import pick, pieces, scalar
from reporter.common.text import clean
from reporter.errors import InvalidPayload
from reporter.verdict.payloads import Progress

SCHEMA = "progress.v1"
FIELDS = ("msg", "total", "completed", "failures", "errors")

MAX_BYTES = 64 * 1024
TEXT_BYTES = 1024


def decode_progress(data: bytes) -> Progress:
    """The progress in some bytes. Raises `InvalidPayload`, whose text repeats nothing of them."""
    if len(data) > MAX_BYTES:
        raise InvalidPayload(f"larger than {MAX_BYTES} bytes")
    spans, _ = pick(data, document(data), FIELDS)
    instance = {name: value_of(data, span) for name, span in spans.items()}
    schema.check(SCHEMA, instance)
    # The schema has just said what each of these is; an integer may be written as 3.0.
    value: dict[str, Any] = {name: found for name, found in instance.items() if found is not None}
    return Progress(
        msg=clean(value.get("msg", ""), TEXT_BYTES),
        total=int(value["total"]) if "total" in value else None,
        completed=int(value["completed"]) if "completed" in value else None,
        failures=tuple(clean(text, TEXT_BYTES) for text in value.get("failures", ())),
        errors=tuple(clean(text, TEXT_BYTES) for text in value.get("errors", ())),
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
