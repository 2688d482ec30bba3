"""Results for those who may see the run's status: the tarball, one result, or a report of it.

Files are always an attachment, of a type that no browser runs: a worker chose what is in it, and
the live page has the same origin.
"""

import asyncio
import hashlib
import socket
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from reporter.aggregator.api.status_document import encode
from reporter.aggregator.context import Context
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.aggregator.server.body import Body
from reporter.aggregator.server.connection import seconds_for
from reporter.common.objects import json_object
from reporter.ledger import StoreError
from reporter.ledger.documents import KeptDocuments
from reporter.results.items import from_record
from reporter.run.error_report import REPORT_BYTES
from reporter.run.plan import Key
from reporter.run.record import Rank, Record, error_document
from reporter.run.state import Snapshot, final, result_counts, result_status, why
from reporter.run.upload import UploadEnded
from reporter.untar import ACCEPTED, BadArchive, check

NOT_YET: Final = answers.text(404, "there are no results yet: the run is not over")
GIVEN_UP: Final = answers.text(404, "there are no results: packing was given up")
_OPEN: Final = answers.text(404, "there is no result yet")
_UNJUDGED: Final = answers.text(409, "the result is still being read", (answers.retry_later(2),))
_NOT_NOTED: Final = answers.text(
    503, "the confirmation cannot be stored, try again", (answers.retry_later(2),)
)
_PACKED: Final = answers.text(410, "the result is in the tarball: see /results")
UNREADABLE: Final = answers.text(503, "the results cannot be read", close=True)
_MALFORMED: Final = answers.text(400, 'expected {"sha256": "HEXADECIMAL"}', close=True)
_OTHER: Final = answers.text(409, "the results have another SHA-256")
_CONFIRMATION: Final = 1024  # bytes
_ERROR: Final = (("Result-Outcome", "error"),)
_ERROR_FILE: Final = "error.json"
_GZIP: Final = "application/gzip"
_HARMLESS: Final = frozenset({_GZIP, "application/json", "text/plain"})
_PATIENCE: Final = 60  # seconds in which a reader takes nothing of what was sent
_USER_TIMEOUT: Final = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux


class _Unopened(Exception):
    """A file that cannot be opened; nothing has been sent."""


class File(web.FileResponse):
    """A file that is sent whole or, where the request has a range, in part.

    A reader is cut off when it takes nothing for a minute, and when all of it takes longer than an
    upload of that size may; it may ask for the rest.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        content_type: str,
        headers: Iterable[tuple[str, str]],
    ) -> None:
        super().__init__(path, headers=[*_attachment(name, content_type), *headers])
        self.force_close()

    async def send(self, request: web.BaseRequest) -> bool:
        """Send it and return true, or return false when it cannot be opened.

        Afterwards `status` is the one that was sent. A connection that is lost is no error here.
        """
        transport = request.transport
        connection = None if transport is None else transport.get_extra_info("socket")
        if connection is not None and _USER_TIMEOUT is not None:  # none: it is being lost
            connection.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, 1000 * _PATIENCE)
        try:
            await super().prepare(request)
        except _Unopened:
            return False
        except OSError:
            if transport is not None:
                transport.abort()
        return True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Do nothing more: aiohttp asks for it after `send`, which has to come first."""
        return request.writer

    def _make_response(self, request: web.BaseRequest, accept_encoding: str) -> Any:
        """Open the file. aiohttp would answer 404 whatever the reason is that it cannot."""
        try:
            return super()._make_response(request, accept_encoding)
        except OSError as error:
            raise _Unopened from error

    async def _sendfile(
        self, request: web.BaseRequest, fobj: IO[Any], offset: int, count: int
    ) -> AbstractStreamWriter:
        """Send it piece by piece: over TLS, `loop.sendfile` goes on when its reader has left."""
        writer = await web.StreamResponse.prepare(self, request)
        assert writer is not None
        async with asyncio.timeout(seconds_for(count)):
            return await self._sendfile_fallback(writer, fobj, offset, count)


class Results:
    """What has come, and the tarball of it all."""

    def __init__(self, context: Context) -> None:
        self._context, self._store = context, context.store
        self._layout, self._blobs = context.layout, context.blobs
        self._kept = KeptDocuments(context.layout)

    async def tarball(self) -> web.StreamResponse:
        """Answer with the tarball; 404 where there is none, or none yet."""
        tar = self._store.snapshot().tar
        if tar is None:
            return self._no_tarball()
        path = self._layout.output / tar.name
        if await _measured(lambda: path.stat().st_size) != tar.size:
            return UNREADABLE
        return File(path, tar.name, _GZIP, answers.result_digest(tar.sha256))

    def _no_tarball(self) -> Answer:
        return GIVEN_UP if final(self._store.snapshot()) else NOT_YET

    async def confirm(self, request: web.BaseRequest) -> Answer:
        """Note that the client has the tarball: it names its SHA-256."""
        tar = self._store.snapshot().tar
        if tar is None:
            return self._no_tarball()
        data = b""
        try:
            async for piece in Body(request, lambda: None).sending():
                data += piece
                if len(data) > _CONFIRMATION:
                    break
        except UploadEnded:
            return _MALFORMED
        document = json_object(data) if len(data) <= _CONFIRMATION else None
        if document is None or not isinstance(document.get("sha256"), str):
            return _MALFORMED
        if document["sha256"] != tar.sha256:
            return _OTHER
        try:
            await self._store.retrieved(at=self._context.wall())
        except StoreError:
            return _NOT_NOTED
        return answers.EMPTY

    async def one(self, key: Key) -> web.StreamResponse:
        """Answer with what a key of the plan has sent, or with the error that stands for it."""
        record = self._store.entry(key).record
        if record is None:
            return _OPEN
        failed = record.rank is not Rank.RESULT
        if failed and (record.document or not record.blob):
            text = record.document or error_document(record.text, record.cause, record.reason)
            return _error(text.encode("utf-8", "replace"))
        if await _measured(partial(self._blobs.size, record.blob)) != record.size:
            return self._gone()
        blob = self._blobs.local_file(record.blob)
        if not failed:
            digest = answers.result_digest(record.digest)
            return File(blob, record.filename, record.content_type, digest)
        if not record.archive:
            return File(blob, _ERROR_FILE, "application/json", _ERROR)
        try:
            return _error(await asyncio.to_thread(self._report_in, record))
        except FileNotFoundError:
            return self._gone()
        except (OSError, BadArchive):
            return UNREADABLE

    def _gone(self) -> Answer:
        return UNREADABLE if self._store.snapshot().tar is None else _PACKED

    def _report_in(self, record: Record) -> bytes:
        with self._blobs.open(record.blob) as archive:
            wanted = partial(check, wanted=_ERROR_FILE, wanted_bytes=REPORT_BYTES)
            return wanted(archive, record.size, ACCEPTED).wanted or b""

    async def report(self, request: web.BaseRequest, key: Key) -> Answer:
        """Answer with what the page shows of a result: its tests that did not pass."""
        snapshot = self._store.snapshot()
        record = snapshot.entries[key].record
        if record is None:
            return _OPEN
        if record.rank is Rank.RESULT and not record.verdict:
            return _UNJUDGED
        document = await asyncio.to_thread(self._tests, snapshot, key, record)
        tag = f'"{hashlib.sha256(document).hexdigest()[:32]}"'
        if answers.matches(request, tag):
            return answers.not_modified(tag)
        return Answer(200, document, (*answers.JSON, ("ETag", tag), ("Cache-Control", "no-cache")))

    def _tests(self, snapshot: Snapshot, key: Key, record: Record) -> bytes:
        """Put together what the row says, and the tests that were kept."""
        entry = snapshot.entries[key]
        tests = self._kept.read(str(key), record.digest) if record.digest else None
        reason, message = why(entry)
        head = {
            "run": snapshot.plan.run,
            "key": str(key),
            "result_status": result_status(snapshot, entry),
            "result_counts": result_counts(entry),
            "reason": reason,
            "message": message,
        }
        return encode(head)[:-1] + b"," + (tests or from_record(record))[1:]


def _error(document: bytes) -> Answer:
    return Answer(200, document, (*_attachment(_ERROR_FILE, "application/json"), *_ERROR))


def _attachment(name: str, content_type: str) -> tuple[tuple[str, str], ...]:
    kind = content_type.partition(";")[0].strip().lower()
    return (
        ("Content-Type", kind if kind in _HARMLESS else "application/octet-stream"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Disposition", f"attachment; {_named(name)}"),
    )


def _named(name: str) -> str:
    if name.isascii() and '"' not in name and "\\" not in name:
        return f'filename="{name}"'
    return f"filename*=UTF-8''{quote(name, safe='')}"


async def _measured(size: Callable[[], int | None]) -> int | None:
    try:
        return await asyncio.to_thread(size)
    except OSError:
        return None
