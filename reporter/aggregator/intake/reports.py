"""Error reports of workers: from a body to what went wrong, in the worker's words. Pure."""

import json
from dataclasses import dataclass
from typing import Any, Final

from reporter.core.text import clean
from reporter.errors import InvalidPayload

SONOBUOY_BYTES: Final = 64 * 1024
REPORT_BYTES: Final = 1024 * 1024
FILE: Final = "error.json"

_TEXT_BYTES: Final = 1024
_REASON_BYTES: Final = 128
_UNSAID: Final = "the worker reported an error without saying which"


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says went wrong. `reason` is its own word for the cause.

    `document` is the `error.json` to keep where the worker sent none.
    """

    text: str
    reason: str = ""
    document: str = ""


SILENT: Final = Report(_UNSAID, document=json.dumps({"error": _UNSAID}))
"""A report that is only an archive."""


def parse_report(data: bytes) -> Report:
    """Read a JSON object with the text `error`. Raises `InvalidPayload`."""
    document = _object(data)
    if document is None or not isinstance(document.get("error"), str):
        raise InvalidPayload('not an error report: no JSON object with a text "error"')
    cause = document.get("cause")
    reason = clean(cause, _REASON_BYTES) if isinstance(cause, str) else ""
    return Report(clean(document["error"], _TEXT_BYTES, _UNSAID), reason)


def sonobuoy_report(data: bytes) -> Report | None:
    """The report in the only form that Sonobuoy's worker knows, if the body is one.

    It says nothing in the head that would tell it from a result, but has no file name, which its
    results always have; and its only member is a text `error`.
    """
    if not data.lstrip(b" \t\r\n").startswith(b"{"):
        return None
    document = _object(data)
    if document is None or list(document) != ["error"] or not isinstance(document["error"], str):
        return None
    return Report(clean(document["error"], _TEXT_BYTES, _UNSAID))


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
