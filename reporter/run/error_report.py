"""What a worker's report says of an error, and verdicts on bodies that nobody reads."""

import json
from dataclasses import dataclass
from typing import Any, Final

from reporter.common.json_scan import document, pick, pieces
from reporter.common.objects import json_object
from reporter.common.text import clean, clean_pieces
from reporter.errors import InvalidPayload
from reporter.run.record import ResultVerdict
from reporter.run.results import ResultStatus

SONOBUOY_BYTES: Final = 64 * 1024
REPORT_BYTES: Final = 1024 * 1024
FILE: Final = "error.json"
INVALID: Final = "InvalidResultFormat"
NO_RESULTS: Final = "NoResults"
UNREAD: Final = "JudgingBudgetUsedUp"

_TEXT_BYTES: Final = 1024
_REASON_BYTES: Final = 128
_UNSAID: Final = "the worker reported an error without saying which"


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says went wrong. `reason` is its own word for the cause.

    `document` is the `error.json` to keep where the worker sent none. `unknown`: it says that it
    cannot tell whether the work failed.
    """

    text: str
    reason: str = ""
    document: str = ""
    unknown: bool = False


SILENT: Final = Report(_UNSAID, document=json.dumps({"error": _UNSAID}))
"""A report that is only an archive."""


def raw_verdict(files: int) -> ResultVerdict:
    """The verdict on files that are not judged: they came."""
    if not files:
        return ResultVerdict(
            ResultStatus.UNKNOWN, NO_RESULTS, "no files found", {ResultStatus.UNKNOWN: 1}
        )
    return ResultVerdict(ResultStatus.PASSED, counts={ResultStatus.PASSED: files})


def unreadable(cause: str) -> ResultVerdict:
    """The verdict on a body that is no adapter's result, although its sender says so."""
    message = clean(f"Failed to parse adapter result: {cause}", _TEXT_BYTES)
    return ResultVerdict(ResultStatus.UNKNOWN, INVALID, message, {ResultStatus.UNKNOWN: 1})


def parse_report(data: bytes) -> Report:
    """Read a JSON object with the text `error`. Raises `InvalidPayload`."""
    said = json_object(data) if len(data) <= SONOBUOY_BYTES else _members(data)
    if said is None or not isinstance(said.get("error"), str):
        raise InvalidPayload('not an error report: no JSON object with a text "error"')
    cause = said.get("cause")
    reason = clean(cause, _REASON_BYTES) if isinstance(cause, str) else ""
    return Report(
        clean(said["error"], _TEXT_BYTES, _UNSAID),
        reason,
        unknown=said.get("status") == ResultStatus.UNKNOWN,
    )


def sonobuoy_report(data: bytes) -> Report | None:
    """The report in the only form that Sonobuoy's worker knows, if the body is one.

    It says nothing in the head that would tell it from a result, but has no file name, which its
    results always have; and its only member is a text `error`.
    """
    if not data.lstrip(b" \t\r\n").startswith(b"{"):
        return None
    said = json_object(data)
    if said is None or list(said) != ["error"] or not isinstance(said["error"], str):
        return None
    return Report(clean(said["error"], _TEXT_BYTES, _UNSAID))


def _members(data: bytes) -> dict[str, Any] | None:
    """What a report of any size says; of its members, only those we read are built.

    The parser of the standard library would hold up all other threads over a body made for that.
    """
    try:
        spans, _ = pick(data, document(data), ("error", "cause", "status"))
    except InvalidPayload:
        return None
    return {
        name: clean_pieces(pieces(data, span), _TEXT_BYTES)
        for name, span in spans.items()
        if data.startswith(b'"', span.start)
    }
