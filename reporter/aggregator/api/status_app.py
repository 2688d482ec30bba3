"""What the status listener serves: probes and metrics for anyone, run data for its audience."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web

from reporter.aggregator.api import page
from reporter.aggregator.api.files import UNREADABLE, File, Results
from reporter.aggregator.api.readers import Readers, json_of, unchanged
from reporter.aggregator.api.status_document import read_part
from reporter.aggregator.api.target import path_of, segment
from reporter.aggregator.context import Context
from reporter.aggregator.health import Health
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.ledger import StoreError
from reporter.run.entry import Marked
from reporter.run.plan import Key
from reporter.run.record import stopped

_ALLOWED: Final = ("GET", "HEAD")
_NOT_ALLOWED: Final = Answer(405, b"", (("Allow", ", ".join(_ALLOWED)),))
_ONLY_POST: Final = Answer(405, b"", (("Allow", "POST"),))
_FORBIDDEN: Final = answers.text(
    403,
    "run data is served only to local clients, or to clients with a trusted certificate if client "
    "certificates are enabled",
)
_ALIVE: Final = answers.text(200, "ok")
_NOT_YET: Final = answers.text(
    503, "[-]start: the run is being opened\nnot ready", (answers.retry_later(1),)
)
_PROBES: Final = ("/livez", "/healthz", "/readyz")
_CONFIRMED: Final = "/results/retrieved"
_STOP: Final = "/stop"
_ONLY_LOCAL: Final = answers.text(403, "a run can be stopped only through a port-forward")
_ONLY_JSON: Final = answers.text(415, "expected Content-Type: application/json")
_ONLY_PLUGIN: Final = answers.text(400, "the only parameter is plugin, and it may be given once")
_NOT_STOPPED: Final = answers.text(
    503, "the stop cannot be stored, try again", (answers.retry_later(2),)
)
_RUN_DATA: Final = frozenset({"/status", "/results", *page.PATHS})
_OF_A_KEY: Final = ("/status/", "/results/")
_LOOPBACK_PEERS: Final = ("127.0.0.1", "::1", "::ffff:127.0.0.1")  # the last: of a dual socket
_LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")


class StartupGate:
    """The handler of the status listener: a probe must not kill a long start.

    Until the run is open it serves only that we live, afterwards what its `app` says.
    """

    app: StatusApp | None = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. That it is answered shows that the loop goes round."""
        if self.app is not None:
            return await self.app(request)
        return _ALIVE if path_of(request.raw_path) in ("/livez", "/healthz") else _NOT_YET


class StatusApp:
    """What is served of an open run."""

    def __init__(self, context: Context, health: Health) -> None:
        self._context, self._health = context, health
        self._readers, self._results = Readers(context), Results(context)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        began = self._context.clock()
        route, answer = await self._serve(request)
        seconds = self._context.clock() - began
        if isinstance(answer, File) and not await answer.send(request):
            # Its bytes may have gone into the tarball since.
            _, answer = await self._serve(request)
            answer = UNREADABLE if isinstance(answer, File) else answer
        self._context.metrics.request(route, answer.status, seconds, request.content.total_bytes)
        return answer

    def close(self) -> None:
        """Let no reader wait any more."""
        self._readers.close()

    async def _serve(self, request: web.BaseRequest) -> tuple[str, web.StreamResponse]:
        """Return the answer, with the name of its route in the metrics."""
        path = path_of(request.raw_path)
        wrong = None if request.method in _ALLOWED else _NOT_ALLOWED
        if path in _PROBES:
            return "probe", wrong or self._probe(request, path)
        if path == "/metrics":
            return "metrics", wrong or self._scrape(request)
        if path == _STOP:
            return "status", await self._stop(request)
        if path not in _RUN_DATA and not path.startswith(_OF_A_KEY):
            return "other", answers.NOT_FOUND
        if path == _CONFIRMED:
            wrong = None if request.method == "POST" else _ONLY_POST
        if wrong is not None:
            return "status", wrong
        if not self._admits(request):
            return "status", _FORBIDDEN
        if path == "/status":
            try:
                part = read_part(_query(request), self._context.store.snapshot())
            except ValueError as error:
                return "status", answers.text(400, str(error))
            route = "status" if part.since is None else "poll"
            return route, await self._readers.part(request, part)
        return "status", await self._one(request, path)

    def _probe(self, request: web.BaseRequest, path: str) -> Answer:
        if path != "/readyz":
            live = self._health.alive
            return answers.text(200 if live else 503, "ok" if live else "not live")
        checks = self._health.checks()
        ready = not any(checks.values())
        if ready and "verbose" not in _query(request).split("&"):
            return answers.text(200, "ok")
        lines = [
            f"[-]{name}: {problem}" if problem else f"[+]{name} ok"
            for name, problem in checks.items()
        ]
        lines.append("ready" if ready else "not ready")
        return answers.text(200 if ready else 503, "\n".join(lines))

    def _scrape(self, request: web.BaseRequest) -> Answer:
        found = self._health.scrape(request.headers.get("Accept", ""))
        return Answer(200, found.body, (("Content-Type", found.content_type),))

    async def _one(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """Answer for what has a path of its own: the page, an entry, a result, the tarball."""
        if asset := page.answer(path, request):
            return asset
        if path == _CONFIRMED:
            return await self._results.confirm(request)
        if path == "/results":
            return await self._results.tarball()
        _, what, *names = path.split("/")
        key = _key(names[:2])
        if key is None or key not in self._context.store.snapshot().entries:
            return answers.NOT_FOUND
        if what == "results" and names[2:] == ["report"]:
            return await self._results.report(request, key)
        if names[2:]:
            return answers.NOT_FOUND
        if what == "results":
            return await self._results.one(key)
        moment = self._readers.look()
        return unchanged(request, moment) or json_of(moment.entry(key, full=True), moment)

    async def _stop(self, request: web.BaseRequest) -> Answer:
        """Give up the open entries, or those of a plugin: what came is kept, and packed soon."""
        if request.method != "POST":
            return _ONLY_POST
        if not _local(request):  # a certificate is for reading, and so is a wide scope
            return _ONLY_LOCAL
        # A page from elsewhere can have a browser send a form to our port, but not this.
        if request.headers.get("Content-Type") != "application/json":
            return _ONLY_JSON
        given = parse_qsl(_query(request), keep_blank_values=True)
        if [name for name, _ in given] not in ([], ["plugin"]):  # a misspelt name would be all
            return _ONLY_PLUGIN
        store, named = self._context.store, dict(given).get("plugin")
        if named is not None and self._context.plan.plugin(named) is None:
            return answers.text(404, "the run has no such plugin")
        failure, entries = stopped(self._context.now()), store.snapshot().entries.values()
        wanted = [each.key for each in entries if not each.terminal]
        wanted = [key for key in wanted if named in (None, key.plugin)]
        try:
            marked = await store.mark_all_failed(dict.fromkeys(wanted, failure))
        except StoreError:
            return _NOT_STOPPED
        count = sum(each is Marked.RECORDED for each in marked.values())
        self._context.log.info("Stopped on request", plugin=named, stopped=count)
        return Answer(200, json.dumps({"stopped": count}).encode(), answers.JSON)

    def _admits(self, request: web.BaseRequest) -> bool:
        """Say whether the sender of a request may see run data.

        Those behind a port-forward, and who has shown a client certificate that the listener's
        context has verified.
        """
        settings, transport = self._context.settings, request.transport
        if settings.status_scope == "any":
            return True
        if settings.status_tls_client_ca and transport and transport.get_extra_info("peercert"):
            return True
        return _local(request)


def _local(request: web.BaseRequest) -> bool:
    """Say whether a request comes through a port-forward.

    Its peer is exactly 127.0.0.1 or ::1, which is what `kubectl port-forward` looks like and a
    mesh's proxy does not, and it asks for a loopback host, which a browser that was lured here by
    DNS does not.
    """
    if request.transport is None:
        return False
    peer = request.transport.get_extra_info("peername")
    return bool(peer) and peer[0] in _LOOPBACK_PEERS and _loopback(request.headers.get("Host"))


def _loopback(host: str | None) -> bool:
    if host is None:
        return False
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):  # no port; the colons are the address's own
        return host.lower() in _LOOPBACK_HOSTS
    return name.lower() in _LOOPBACK_HOSTS and port.isascii() and (port == "" or port.isdigit())


def _query(request: web.BaseRequest) -> str:
    return request.raw_path.partition("?")[2]


def _key(names: list[str]) -> Key | None:
    plugin, node = [segment(name) for name in names] if len(names) == 2 else (None, None)
    return None if plugin is None or node is None else Key(plugin, node)
