"""The metrics of `status-ctl reap --watch`, and the endpoint: `/metrics` and `/livez`."""

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from reporter.common.http_request import Request, Response, refusal
from reporter.common.http_server import Server
from reporter.common.metrics import Page, Renderer
from reporter.sidecar.endpoint import listen
from reporter.verdict.rows import REASONS

PATIENCE_SECONDS = 5.0
MOST_CONNECTIONS = 8
_MOST_IGNORED_BYTES = 65536
_PREFIX = "status_reporter_reaper_"
FROM_RESULT = "FromResult"
_REASONS = frozenset(REASONS.values()) | {FROM_RESULT}


class ReaperMetrics:
    """Counts what was written and how the passes went. Threads may share it."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry(auto_describe=False)
        self._renderer = Renderer(own)
        said = "Reports written on Jobs, by reason."
        self._reports = Counter(_PREFIX + "reports", said, ["reason"], registry=own)
        said = "Passes over all Jobs, by how they ended."
        self._passes = Counter(_PREFIX + "passes", said, ["result"], registry=own)
        said = "Jobs that could not be read or updated; the next pass tries again."
        self._failures = Counter(_PREFIX + "failures", said, registry=own)
        for reason in sorted(_REASONS):
            self._reports.labels(reason)
        for result in ("done", "failed"):
            self._passes.labels(result)
        said = "When the last complete pass ended."
        self._passed_at = Gauge(_PREFIX + "last_pass_timestamp_seconds", said, registry=None)
        said = "Jobs without a final verdict after the last complete pass."
        self._open = Gauge(_PREFIX + "open_jobs", said, registry=None)
        self._shown = False

    def reaped(self, reason: str) -> None:
        """Count a report that was written."""
        # The reason of a result is the adapter's own: a label takes none from outside.
        self._reports.labels(reason if reason in _REASONS else FROM_RESULT).inc()

    def passed(self, *, done: bool, waiting: int, failures: int, now: float) -> None:
        """Note the end of a pass: Jobs that still wait, requests that failed, epoch seconds."""
        with self._renderer.lock:
            self._passes.labels("done" if done else "failed").inc()
            self._failures.inc(failures)
            if not done:
                return
            self._passed_at.set(now)
            self._open.set(waiting)
            if not self._shown:
                # They say nothing before the first complete pass.
                self._registry.register(self._passed_at)
                self._registry.register(self._open)
                self._shown = True

    def page(self, accept: str) -> Page:
        """Render all of it."""
        with self._renderer.lock:
            body, content_type = self._renderer.render(accept)
        return Page(body, content_type, final=False)

    def _gauges(self) -> tuple[Gauge, Gauge]:
        """Add the families that say nothing before the first complete pass."""
        return (
            Gauge(
                _PREFIX + "last_pass_timestamp_seconds",
                "When the last complete pass ended.",
                registry=self._registry,
            ),
            Gauge(
                _PREFIX + "open_jobs",
                "Jobs without a final verdict after the last complete pass.",
                registry=self._registry,
            ),
        )


def serve(
    port: int,
    page: Callable[[str], Page],
    alive: Callable[[], bool],
    on_error: Callable[[Exception], None],
) -> Server:
    """Answer at this port of every interface from now on. OSError where it cannot listen.

    `on_error` hears of what a request has raised, on the server's thread.
    """

    def answer(request: Request) -> Response:
        whole = request.method != "HEAD"
        if request.path not in ("/metrics", "/livez"):
            return refusal(404, whole=whole)
        if request.method not in ("GET", "HEAD"):
            return refusal(405, allow="GET, HEAD")
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        headers = (("Date", date), ("Cache-Control", "no-store"))
        if request.path == "/livez":
            good = alive()
            body = b"ok\n" if good else b"livez check failed\n"
            return Response(200 if good else 503, body, headers=headers, whole=whole)
        shown = page(",".join(request.fields.get("accept", [])))
        return Response(200, shown.body, shown.content_type, headers, whole)

    server = Server(
        "endpoint",
        answer,
        most=MOST_CONNECTIONS,
        patience=PATIENCE_SECONDS,
        most_ignored=_MOST_IGNORED_BYTES,
        on_error=on_error,
    )
    server.add(listen("", port))
    server.start()
    return server
