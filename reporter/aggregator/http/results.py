"""Uploads of results: the checks before the body is read, and the answer to what became of it."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.body import Body, SenderLeft
from reporter.aggregator.http.connection import Connection
from reporter.aggregator.http.limits import Limits
from reporter.aggregator.http.slots import Slots
from reporter.aggregator.store import Store, StoreError
from reporter.aggregator.uploads import (
    Closed,
    Cut,
    DiskFull,
    Held,
    Meta,
    Refused,
    Stalled,
    Stored,
    TooLarge,
    Unwritable,
    Verdict,
    filename_of,
)
from reporter.core.payloads import ADAPTER_RESULT
from reporter.core.run.entry import Failure, Outcome, Rank, Record, receive
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Phase
from reporter.core.run.upload import Allowance, Upload

_SOON: Final = (answers.retry_later(5),)
_BUSY: Final = (*_SOON, ("Result-Busy", "true"))
_AWAITED: Final = 20.0  # seconds in which who was told that we are busy comes again


class Taker(Protocol):
    """The part of the intake that is needed here."""

    async def take(
        self, key: Key, meta: Meta, chunks: AsyncIterator[bytes], *, at: float
    ) -> Verdict:
        """Store one body."""

    def free_for(self, length: int) -> bool:
        """Say whether a body of that length fits on the disk."""


class Uploads:
    """Takes uploads. Of several of one key, the first that is stored wins.

    `wall` gives Unix time.
    """

    def __init__(
        self, store: Store, intake: Taker, limits: Limits, wall: Callable[[], float]
    ) -> None:
        self._store, self._intake, self._limits, self._wall = store, intake, limits, wall
        self._slots = Slots(
            limits.uploads,
            limits.uploads_per_key,
            waiting=limits.connections // 2,
            waiting_per_key=limits.waiting_per_key,
        )
        self._allowance = Allowance(limits.finish, limits.finish_rate)
        self._known: dict[Key, set[Upload]] = {}
        self._turned_away: dict[Key, float] = {}

    @property
    def reading(self) -> Mapping[Key, int]:
        """The keys that have uploads, and how many, be they read or waiting to be read."""
        return self._slots.present

    @property
    def holding(self) -> set[Key]:
        """The keys that have an upload for which the run stays open."""
        now = self._wall()
        return {
            key
            for key, uploads in self._known.items()
            if any(
                each.holds(self._store.entry(key).deadline, now, self._allowance)
                for each in uploads
            )
        }

    @property
    def excused(self) -> set[Key]:
        """The keys whose retry windows are not over, as they have or would have an upload here."""
        now = self._wall()
        self._turned_away = {key: at for key, at in self._turned_away.items() if now < at}
        return {*self._slots.present, *self._turned_away}

    @property
    def active(self) -> int:
        """How many uploads are being read."""
        return self._slots.taken

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
        meta = _meta(request, serial)
        if refusal := self._held(key, subject, meta):
            return refusal
        if unfit := self._unfit(request, meta):
            return await self._fail(key, subject, *unfit)
        length = self._limits.result_bytes if meta.length is None else meta.length
        upload = Upload(self._wall(), length, retry=self._store.entry(key).retrying)
        self._known.setdefault(key, set()).add(upload)
        try:
            upload.waited = not self._slots.available(key)
            if not await self._turn(request, key, heard):
                return self._busy(request, key, subject)
            try:
                return await self._read(
                    request, key, subject, meta=meta, upload=upload, heard=heard
                )
            finally:
                self._slots.release(key)
        finally:
            self._known[key].discard(upload)
            if not self._known[key]:
                del self._known[key]

    async def _read(
        self,
        request: web.BaseRequest,
        key: Key,
        subject: str,
        *,
        meta: Meta,
        upload: Upload,
        heard: Callable[[], None],
    ) -> Answer:
        """Take one upload whose turn it is."""
        if _connection(request).left:
            return _left(subject)
        if refusal := self._held(key, subject, meta):
            return refusal
        if not self._intake.free_for(meta.length or 0):
            return await self._fail(key, subject, 507, ": not enough disk space")
        upload.began = self._wall()

        def late() -> float:
            deadline = self._store.entry(key).deadline
            return self._wall() - upload.cut_at(deadline, self._allowance)

        _connection(request).widen()
        try:
            with Body(request, self._limits, heard, late, waited=upload.waited) as body:
                verdict = await self._intake.take(key, meta, body, at=upload.began)
        except SenderLeft:
            return _left(subject)
        return _answer(subject, verdict)

    def _held(self, key: Key, subject: str, meta: Meta) -> Answer | None:
        """Refuse what would not be accepted however its body turned out."""
        entry = self._store.entry(key)
        offered = Record(Rank.WORKER if meta.error else Rank.RESULT, 0.0)
        closed = self._store.phase is not Phase.RUNNING
        _, outcome = receive(entry, offered, closed=closed)
        if outcome is Outcome.DUPLICATE:
            return _duplicate(subject, entry.record.digest if entry.record else "")
        return _closed(subject) if outcome is Outcome.CLOSED else None

    def _unfit(self, request: web.BaseRequest, meta: Meta) -> tuple[int, str] | None:
        """Say why an upload cannot be taken now or ever, from its head: status and words."""
        encoding = request.headers.get("Content-Encoding", "")
        if encoding.strip().lower() not in ("identity", ""):
            return 415, ": Content-Encoding is not accepted"
        if (meta.length or 0) > self._limits.result_bytes:
            return 413, f" exceeds {self._limits.result_bytes} bytes"
        if not self._store.writable:
            return 503, ": the store cannot be written, try again"
        return None

    async def _turn(self, request: web.BaseRequest, key: Key, heard: Callable[[], None]) -> bool:
        """Wait for a slot, the body left with its sender for as long as that is there."""
        if self._slots.available(key) or self._slots.full(key):
            return await self._slots.take(key, 0.0)
        connection = _connection(request)
        connection.hold_body(heard)
        try:
            return await self._slots.take(key, self._limits.slot_wait, connection.gone())
        finally:
            connection.release_body()

    def _busy(self, request: web.BaseRequest, key: Key, subject: str) -> Answer:
        """Turn an upload away for want of room: no try of it has failed."""
        if _connection(request).left:
            return _left(subject)
        self._turned_away[key] = self._wall() + _AWAITED
        return answers.text(503, f"{subject}: no upload slot free, try again", _BUSY)

    async def _fail(self, key: Key, subject: str, status: int, why: str) -> Answer:
        """Refuse an upload that may come again, and keep its retry window open."""
        with suppress(StoreError):  # then the next try will hear of it
            await self._store.mark_failed(key, Failure("attempt", self._wall(), why.lstrip(": ")))
        return answers.text(status, f"{subject}{why}", _SOON if status == 503 else ())


def _answer(subject: str, verdict: Verdict) -> Answer:
    match verdict:
        case Stored(digest):
            return Answer(200, b"", answers.result_digest(digest))
        case Held(digest):
            return _duplicate(subject, digest)
        case Closed():
            return _closed(subject)
        case TooLarge():
            return answers.text(413, f"{subject} {verdict.reason}")
        case Stalled():
            return answers.text(503, f"{subject}: upload stalled", _SOON)
        case Cut():
            return answers.text(400, f"{subject}: {verdict.reason}")
        case DiskFull(reason):
            return answers.text(507, f"error handling {subject}: {reason}")
        case Refused(reason) | Unwritable(reason):
            return answers.text(500, f"error handling {subject}: {reason}")


def _duplicate(subject: str, digest: str) -> Answer:
    return answers.text(409, f"{subject} already received", answers.result_digest(digest))


def _closed(subject: str) -> Answer:
    return answers.text(410, f"run is closed; {subject} not accepted")


def _left(subject: str) -> Answer:
    """Answer nobody: it left while it waited, which is no failed try."""
    return answers.text(400, f"{subject}: its sender has left")


def _connection(request: web.BaseRequest) -> Connection:
    assert isinstance(request.protocol, Connection)
    return request.protocol


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
    )


def declared_digest(header: str) -> str | None:
    """Return the SHA-256 that a Content-Digest header declares, in hexadecimal, or None.

    Of a list the other algorithms are passed over. What is not 32 bytes of Base64 comes back as it
    is: no body has such a digest, so the upload fails, as one with a wrong digest does.
    """
    for item in header.split(","):
        name, _, value = item.strip().partition("=")
        if name.lower() == "sha-256":
            try:
                digest = b64decode(value.partition(";")[0].strip().strip(":"), validate=True)
            except Base64Error:
                return value
            return digest.hex()
    return None
