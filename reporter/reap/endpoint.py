"""The HTTP endpoint of `status-ctl reap --watch`: `/metrics` and `/livez`."""

import socket
import time
from collections.abc import Callable

from reporter.common.http_request import Request, Response, refusal
from reporter.common.http_server import NO_IPV6, Server, listen
from reporter.common.metrics import Page

PATIENCE_SECONDS = 5.0
MOST_CONNECTIONS = 8
_MOST_IGNORED_BYTES = 65536


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
    server.add(_listener(port))
    server.start()
    return server


def _listener(port: int) -> socket.socket:
    try:
        return listen(socket.AF_INET6, ("::", port), only_ipv6=False)
    except OSError as error:
        if error.errno not in NO_IPV6:
            raise
        return listen(socket.AF_INET, ("0.0.0.0", port), only_ipv6=False)  # noqa: S104
