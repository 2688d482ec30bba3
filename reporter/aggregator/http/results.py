"""Uploads of results as HTTP: from headers to what the intake is told, and its answer in words."""

from collections.abc import Callable
from typing import Final, Protocol

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.body import Body
from reporter.aggregator.uploads import Sender
from reporter.core.payloads import ADAPTER_RESULT
from reporter.core.run.plan import Key
from reporter.core.run.upload import Ended, UploadOutcome
from reporter.core.run.upload_head import Meta, declared_digest, filename_of
from reporter.settings.aggregator_limits import Limits

_SOON: Final = (answers.retry_later(5),)
_BUSY: Final = (*_SOON, ("Result-Busy", "true"))

_ANSWERS: Final[dict[UploadOutcome, tuple[int, str, tuple[tuple[str, str], ...]]]] = {
    UploadOutcome.ACCEPTED: (200, "", ()),
    UploadOutcome.DUPLICATE: (409, "{subject} already received", ()),
    UploadOutcome.CLOSED: (410, "run is closed; {subject} not accepted", ()),
    UploadOutcome.LEFT: (400, "{subject}: its sender has left", ()),  # nobody reads it
    UploadOutcome.BUSY: (503, "{subject}: no upload slot free, try again", _BUSY),
    UploadOutcome.ENCODED: (415, "{subject}: {reason}", ()),
    UploadOutcome.TOO_LARGE: (413, "{subject} {reason}", ()),
    UploadOutcome.UNAVAILABLE: (503, "{subject}: {reason}", _SOON),
    UploadOutcome.NO_ROOM: (507, "{subject}: {reason}", ()),
    UploadOutcome.STALLED: (503, "{subject}: {reason}", _SOON),
    UploadOutcome.CUT: (400, "{subject}: {reason}", ()),
    UploadOutcome.REFUSED: (500, "error handling {subject}: {reason}", ()),
    UploadOutcome.DISK_FULL: (507, "error handling {subject}: {reason}", ()),
    UploadOutcome.UNWRITTEN: (500, "error handling {subject}: {reason}", ()),
}


class Taker(Protocol):
    """The part of the intake that is needed here."""

    async def take(self, key: Key, meta: Meta, sender: Sender) -> Ended:
        """Take one upload."""

    def free_for(self, length: int) -> bool:
        """Say whether a body of that length fits on the disk."""


class ResultUploads:
    """Takes uploads from requests."""

    def __init__(self, intake: Taker, limits: Limits) -> None:
        self._intake, self._limits = intake, limits

    async def put(
        self,
        request: web.BaseRequest,
        key: Key,
        subject: str,
        serial: str,
        heard: Callable[[], None],
    ) -> Answer:
        """Take one upload, from a client whose certificate has the serial number `serial`.

        `subject` names it in answers, `heard` is called while its body comes.
        """
        body = Body(request, self._limits, heard)
        ended = await self._intake.take(key, _meta(request, serial), body)
        status, words, headers = _ANSWERS[ended.outcome]
        line = words.format(subject=subject, reason=ended.reason)
        return answers.text(status, line, (*headers, *answers.result_digest(ended.digest)))


def _meta(request: web.BaseRequest, serial: str) -> Meta:
    headers = request.headers
    disposition = headers.get("Content-Disposition")
    return Meta(
        content_type=headers.get("Content-Type", ""),
        filename=filename_of(disposition),
        error=headers.get("Result-Outcome", "").strip().lower() == "error",
        adapter=headers.get("Result-Format", "").strip() == ADAPTER_RESULT,
        digest=declared_digest(headers.get("Content-Digest", "")),
        serial=serial,
        length=request.content_length,
        disposition=disposition is not None,
        encoding=headers.get("Content-Encoding", "").strip().lower(),
    )
