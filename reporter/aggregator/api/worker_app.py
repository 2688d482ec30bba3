"""What workers are served: the checks that all requests share, uploads, and the way to the rest."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from aiohttp import web

from reporter.aggregator.api.heartbeat import Heartbeats
from reporter.aggregator.api.progress import ProgressUpdates
from reporter.aggregator.intake import Sender
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.aggregator.server.body import Body
from reporter.aggregator.server.connection import Connection
from reporter.aggregator.server.observer import Observer
from reporter.common.defaults import ADAPTER_RESULT
from reporter.ledger import Store
from reporter.run.names import Identity, identity_of
from reporter.run.plan import Key, Plan
from reporter.run.target import Route, Target, parse_target
from reporter.run.upload import Meta, UploadConclusion, UploadOutcome, declared_digest, filename_of

_METHODS = {Route.RESULTS: "PUT", Route.PROGRESS: "POST", Route.HEARTBEAT: "GET"}
_NOT_ALLOWED = {route: Answer(405, b"", (("Allow", method),)) for route, method in _METHODS.items()}


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

    async def take(self, key: Key, meta: Meta, sender: Sender) -> UploadConclusion:
        """Take one upload."""

    def free_for(self, length: int) -> bool:
        """Say whether a body of that length fits on the disk."""


class WorkerApp:
    """The handler of the worker listener.

    Workers are told to send a heartbeat every `interval` seconds. `clock` is monotonic and the one
    that ages of heartbeats are measured with, `now` gives the run's time.
    """

    def __init__(
        self,
        store: Store,
        intake: Taker,
        plan: Plan,
        observer: Observer,
        *,
        interval: int,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._run, self._keys = store, plan.run, frozenset(plan.keys)
        self._observer, self._clock = observer, clock
        self._intake = intake
        self._progress = ProgressUpdates(store, intake.free_for, clock=clock, now=now)
        self._heartbeats = Heartbeats(store, interval, clock)

    async def __call__(self, request: web.BaseRequest) -> Answer:
        """Answer one request."""
        began = self._clock()
        target = parse_target(request.raw_path)
        if target is None:
            route, answer = "other", answers.NOT_FOUND
        else:
            route, answer = target.route, await self._serve(request, target, began)
            if route is Route.RESULTS:
                answer = answer.closing()
        received = request.content.total_bytes
        self._observer.request(route, answer.status, self._clock() - began, received)
        return answer

    async def _serve(self, request: web.BaseRequest, target: Target, began: float) -> Answer:
        route, key, subject = target
        if request.method != _METHODS[route]:
            return _NOT_ALLOWED[route]
        if key not in self._keys:
            return self._refused(request, target, "unexpected")
        identity = self._identity(request)
        if identity is None or not identity.permits(key):
            return self._refused(request, target, "not permitted for this client certificate")
        self._store.record_heartbeat(key, began, beat=False)

        def heard() -> None:
            self._store.record_heartbeat(key, self._clock(), beat=False)

        if route is Route.PROGRESS:
            return await self._progress.post(request, key, subject, heard)
        if route is Route.HEARTBEAT:
            return self._heartbeats.get(key, subject)
        body = Body(request, heard)
        ended = await self._intake.take(key, _meta(request, identity.serial), body)
        status, words, headers = _ANSWERS[ended.outcome]
        line = words.format(subject=subject, reason=ended.reason)
        return answers.text(status, line, (*headers, *answers.result_digest(ended.digest)))

    def _identity(self, request: web.BaseRequest) -> Identity | None:
        connection = request.protocol
        assert isinstance(connection, Connection)
        if connection.identity is None and connection.transport is not None:
            certificate = connection.transport.get_extra_info("peercert")
            connection.identity = identity_of(certificate, self._run)
        return connection.identity

    def _refused(self, request: web.BaseRequest, target: Target, why: str) -> Answer:
        identity = self._identity(request)
        whose = f"{identity.plugin}/{identity.node}" if identity else ""
        self._observer.refused(target.subject, why, request.remote or "", whose)
        return answers.text(403, f"{target.subject} {why}")


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
