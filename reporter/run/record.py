"""What is held for a key: a result, a worker's error report, or an error of the aggregator's own.

Values only; which of two is kept is decided in `entry`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final, Literal

TIMEOUT_TEXT: Final = "Plugin timeout while waiting for results"  # readers look for these words


class Cause(StrEnum):
    """Why an entry failed."""

    UPLOAD_FAILED = "upload_failed"
    WORKER_ERROR = "worker_error"
    START_FAILED = "start_failed"
    POD_FAILED = "pod_failed"
    LOST = "lost"
    DEADLINE = "deadline"
    HEARTBEAT = "heartbeat"
    STOPPED = "stopped"  # somebody wanted no more of it


TIMEOUTS: Final = frozenset({Cause.DEADLINE, Cause.HEARTBEAT})


class Rank(IntEnum):
    """How much a record is worth as evidence; a record gives way only to a higher one."""

    LOST = 0  # a result whose bytes are gone
    AGGREGATOR = 1  # a guess from outside
    WORKER = 2  # the worker's own error report
    RESULT = 3


@dataclass(frozen=True, slots=True)
class Record:
    """What was accepted for a key: a result, a worker's error report, or an error of ours.

    `at` is by the run's clock. `digest` is the SHA-256 of the body in hexadecimal, empty when there
    is no body, `blob` the name under which it is kept; `serial` the number of the client
    certificate. `archive` says that the body is a
    gzipped tar, `notes` which members of it are left out. `text` is the error in words,
    `document` the whole `error.json`; results have none. `reason` is the worker's own word for the
    cause of an error, or that of a verdict, `message` its text. `verdict` is what the result says
    (a word of `results.ResultStatus`), empty until it is judged, `counts` its tests by status.
    `metadata` is what its worker says of itself, as JSON: a text takes much less memory.
    """

    rank: Rank
    at: float
    digest: str = ""
    size: int = 0
    blob: str = ""
    filename: str = ""
    content_type: str = ""
    serial: str = ""
    archive: bool = False
    notes: tuple[str, ...] = ()
    cause: Cause | None = None
    reason: str = ""
    text: str = ""
    document: str = ""
    verdict: str = ""
    message: str = ""
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class ResultVerdict:
    """What a result says: a word of `results.ResultStatus`, why, and its tests by status."""

    word: str
    reason: str = ""
    message: str = ""
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)


def with_verdict(record: Record, said: ResultVerdict) -> Record:
    """The record of a result with what it says."""
    return replace(
        record, verdict=said.word, reason=said.reason, message=said.message, counts=said.counts
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong with a key, as seen by the aggregator.

    An `attempt` is an upload that failed and may be repeated; `final` gives the entry up.
    `document` is the `error.json` to keep; empty: made from the rest. `verdict` is what the worker
    is known to have said of the result that did not come (a word of `results.ResultStatus`).
    """

    kind: Literal["attempt", "final"]
    at: float
    text: str
    cause: Cause | None = None
    reason: str = ""
    document: str = ""
    verdict: str = ""


def stopped(at: float) -> Failure:
    """Return the failure of an entry that somebody has stopped before its result was here."""
    text = "stopped on request before its result arrived"
    return Failure("final", at, text, Cause.STOPPED, "Stopped")


def record_of(failure: Failure) -> Record:
    """Return the record of a final failure; both timeouts begin with words readers look for."""
    text = failure.text
    if failure.cause in TIMEOUTS and not text.startswith(TIMEOUT_TEXT):
        text = f"{TIMEOUT_TEXT}: {text}"
    return Record(
        Rank.AGGREGATOR,
        failure.at,
        cause=failure.cause,
        reason=failure.reason,
        text=text,
        document=failure.document or error_document(text, failure.cause, failure.reason),
        verdict=failure.verdict,
    )


def error_document(text: str, cause: Cause | None, reason: str = "") -> str:
    """Return the `error.json` of an error that the aggregator made itself."""
    document = {"error": text, "cause": cause} | ({"reason": reason} if reason else {})
    return json.dumps(document)
