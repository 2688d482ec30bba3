"""What workers are served: the checks that all requests share, results and heartbeats."""

import json
from typing import Final

from aiohttp import web

from reporter.aggregator.api.headers import declared_digest, filename_of, metadata_of
from reporter.aggregator.api.progress import ProgressUpdates
from reporter.aggregator.api.target import Route, Target, parse_target
from reporter.aggregator.context import Context
from reporter.aggregator.intake import Intake
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.aggregator.server.body import Body
from reporter.aggregator.server.connection import Connection
from reporter.common.defaults import ADAPTER_RESULT
from reporter.run.identity import Identity, identity_of
from reporter.run.state import Phase
from reporter.run.upload import Meta, UploadOutcome

FEATURES = "heartbeat, outcome, digest, progress-id"
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
_REMOVED: Final = "the plugin's Job is being deleted; {subject} not accepted"


class WorkerApp:
    """The handler of the worker listener."""

    def __init__(self, context: Context, intake: Intake) -> None:
        self._store, self._clock, self._metrics = context.store, context.clock, context.metrics
        self._run, self._keys = context.plan.run, frozenset(context.plan.keys)
        self._intake = intake
        self._progress = ProgressUpdates(context, intake.free_for)
        rhythm = {"interval_seconds": context.rhythm.interval, "status": "running"}
        self._alive = Answer(
            200,
            json.dumps(rhythm, separators=(",", ":")).encode(),
            (*answers.JSON, ("Cache-Control", "no-store"), ("Aggregator-Features", FEATURES)),
        )

    async def __call__(self, request: web.BaseRequest) -> Answer:
        """Answer one request."""
        began = self._clock()
        target = parse_target(request.raw_path)
        if target is None:
            route, answer = "other", answers.NOT_FOUND
        else:
            route, answer = target.route, await self._serve(request, target, began)
            if route is Route.RESULTS:
                # Most refusals come before the body is read, and a connection that is kept would
                # have to take all of it before its next request.
                answer = answer.closing()
        received = request.content.total_bytes
        self._metrics.request(route, answer.status, self._clock() - began, received)
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

        def heard(*, beat: bool = False) -> None:
            self._store.record_heartbeat(key, self._clock(), beat=beat)

        heard()
        if route is Route.PROGRESS:
            return await self._progress.post(request, key, subject, heard)
        if route is Route.HEARTBEAT:
            if self._store.phase is not Phase.RUNNING:
                return answers.text(410, f"run is closed; {subject} not accepted")
            heard(beat=True)
            return self._alive
        body = Body(request, heard)
        ended = await self._intake.take(key, _meta(request, identity.serial), body)
        status, words, headers = _ANSWERS[ended.outcome]
        if ended.outcome is UploadOutcome.CLOSED and self._store.phase is Phase.RUNNING:
            words = _REMOVED
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
        self._metrics.refused(target.subject, why, request.remote or "", whose)
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
        metadata=metadata_of(headers.get("Result-Metadata", "")),
    )
