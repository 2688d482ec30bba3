"""A program's HTTP endpoint: `/metrics`, `/livez`, `/healthz`, `/readyz`."""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reporter.common import log
from reporter.common.http_request import Request, Response, refusal
from reporter.common.http_server import NO_IPV6, Server
from reporter.common.http_server import listen as listen_at
from reporter.common.metrics import Page

PATIENCE_SECONDS = 5.0
MOST_CONNECTIONS = 8
_MOST_IGNORED_BYTES = 65536


@dataclass(frozen=True)
class Site:
    """Where the answers come from; its callables must not block.

    `page` renders the metrics for an `Accept` header. `alive` says whether the main loop still
    turns. `checks` returns each readiness check's name with its problem, or None where all is well.
    `on_scrape` is told after a client has taken the whole of a `/metrics` page, with that page's
    own `final`: a page rendered before the verdict never counts as one that showed it. `on_error`
    hears of what an answer has raised.
    """

    page: Callable[[str], Page]
    alive: Callable[[], bool]
    checks: Callable[[], Mapping[str, str | None]] = dict
    on_scrape: Callable[[bool], None] = lambda _: None
    on_error: Callable[[Exception], object] = lambda error: log.get().error(
        "Endpoint could not answer", error=error
    )

    def answer(self, request: Request) -> Response:
        """Answer one request by its head. Never raises."""
        path = request.path
        if path not in ("/metrics", "/livez", "/healthz", "/readyz"):
            return refusal(404)
        if request.method not in ("GET", "HEAD"):
            return refusal(405, allow="GET, HEAD")
        headers = (
            ("Date", time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())),
            ("Cache-Control", "no-store"),
        )
        try:
            if path == "/metrics":
                page = self.page(",".join(request.fields.get("accept", [])))
                return Response(
                    200,
                    page.body,
                    page.content_type,
                    headers,
                    on_read=lambda: self.on_scrape(page.final),
                )
            if path == "/readyz":
                verbose = "verbose" in request.query.split("&")
                status, text = _readiness(self.checks(), verbose=verbose)
            elif self.alive():
                status, text = 200, "ok"
            else:
                status, text = 503, f"{path[1:]} check failed"
        except Exception as error:
            self.on_error(error)
            return refusal(500)
        body = f"{text}\n".encode("utf-8", "replace")
        return Response(status, body, headers=headers)


def _readiness(checks: Mapping[str, str | None], *, verbose: bool) -> tuple[int, str]:
    """Print checks as Kubernetes does: in full when asked for or when one has failed."""
    ready = all(problem is None for problem in checks.values())
    if ready and not verbose:
        return 200, "ok"
    lines = [
        f"[+]{name} ok" if problem is None else f"[-]{name} failed: {' '.join(problem.split())}"
        for name, problem in checks.items()
    ]
    lines.append(f"readyz check {'passed' if ready else 'failed'}")
    return 200 if ready else 503, "\n".join(lines)


class Endpoint(Server):
    """The server for probes and Prometheus: `start` it and `close` it, but not in `on_scrape`.

    Listens from now on; port 0 is a free one. `patience` is the time in seconds for a request to
    arrive in full, and again for its answer to be taken in full. Raises OSError where the address
    is not available, for instance because the port is in use.
    """

    def __init__(
        self, address: str, port: int, site: Site, patience: float = PATIENCE_SECONDS
    ) -> None:
        listener = listen(address, port)
        self.port = int(listener.getsockname()[1])
        super().__init__(
            "endpoint",
            site.answer,
            most=MOST_CONNECTIONS,
            patience=patience,
            most_ignored=_MOST_IGNORED_BYTES,
            on_error=site.on_error,
        )
        self.add(listener)


def opened(address: str, port: int, site: Site) -> Endpoint | None:
    """Return an endpoint at work; None where it cannot listen, which is logged."""
    try:
        endpoint = Endpoint(address, port, site)
    except OSError as error:
        log.get().error("No metrics: cannot listen on the port", error=error)
        return None
    endpoint.start()
    return endpoint


def listen(address: str, port: int) -> socket.socket:
    """Return a listening socket; an empty address stands for every interface, IPv4 and IPv6.

    Raises OSError where it is not available.
    """
    if not address:
        try:
            return listen("::", port)
        except OSError as error:
            if error.errno not in NO_IPV6:
                raise
            return listen("0.0.0.0", port)  # noqa: S104
    family, _, _, _, place = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
    )[0]
    return listen_at(family, place, only_ipv6=False)
