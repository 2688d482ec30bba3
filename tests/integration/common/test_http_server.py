"""The small HTTP server: what goes wrong inside of it."""

import contextlib
import http.client
import socket

from reporter.common.http_request import Request, Response
from reporter.common.http_server import Server, listen


def test_a_handler_that_raises_costs_its_connection_alone() -> None:
    """It is told, the client is not left waiting, and the next one is answered."""
    told: list[Exception] = []

    def answer(request: Request) -> Response:
        if request.path == "/bad":
            raise ZeroDivisionError("inside")
        return Response(200, b"fine")

    server = Server("test", answer, most=4, patience=30.0, most_ignored=1024, on_error=told.append)
    listener = listen(socket.AF_INET, ("127.0.0.1", 0), only_ipv6=False)
    server.add(listener)
    server.start()
    seen = []
    try:
        for path in ("/bad", "/good", "/bad", "/good"):
            client = http.client.HTTPConnection(*listener.getsockname(), timeout=30)
            with contextlib.closing(client):
                client.request("GET", path)
                try:
                    seen.append(client.getresponse().read())
                except http.client.RemoteDisconnected:
                    seen.append(None)
    finally:
        server.close()

    assert [None, b"fine"] * 2 == seen
    assert ["inside", "inside"] == [str(error) for error in told]
