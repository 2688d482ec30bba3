"""The small HTTP server: what goes wrong inside of it, and clients that never stop."""

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable
from typing import Any

from reporter.common.http_request import Request, Response
from reporter.common.http_server import Server, listen


def listening(
    at_head: Callable[[Request], Response | None],
    at_body: Callable[[bytes], Response] | None = None,
    **wished: Any,
) -> tuple[Server, Any]:
    """Return a server that is to be started, and its address."""
    usual = {"most": 4, "patience": 30.0, "most_ignored": 1024, "longest_body": 2**30}
    server = Server("test", at_head, at_body, **{"on_error": print, **usual, **wished})
    listener = listen(socket.AF_INET, ("127.0.0.1", 0), only_ipv6=False)
    server.add(listener)
    return server, listener.getsockname()


def test_a_handler_that_raises_costs_its_connection_alone() -> None:
    """It is told, the client is not left waiting, and the next one is answered."""
    told: list[Exception] = []

    def answer(request: Request) -> Response:
        if request.path == "/bad":
            raise ZeroDivisionError("inside")
        return Response(200, b"fine")

    server, address = listening(answer, on_error=told.append)
    server.start()
    seen = []
    try:
        for path in ("/bad", "/good", "/bad", "/good"):
            client = http.client.HTTPConnection(*address, timeout=30)
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


def test_a_client_that_always_has_bytes_does_not_keep_the_others_out() -> None:
    """Its next piece waits until all others had their turn, and what is due was looked at."""
    seen: list[str] = []
    done = threading.Event()

    def at_head(request: Request) -> Response | None:
        seen.append(request.path)
        return None if request.path == "/large" else Response(200)

    def at_body(_: bytes) -> Response:
        seen.append("body")
        done.set()
        return Response(200)

    server, address = listening(at_head, at_body, tick=lambda: seen.append("tick"))
    size = 2**18  # fits the buffers of a socket, and is read in several pieces
    with (
        socket.create_connection(address, timeout=30) as greedy,
        socket.create_connection(address, timeout=30) as other,
    ):
        greedy.sendall(b"POST /large HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        other.sendall(b"GET /small HTTP/1.1\r\n\r\n")
        server.start()
        assert done.wait(30)
        server.close()

    meanwhile = seen[seen.index("/large") : seen.index("body")]
    assert "/small" in meanwhile
    assert meanwhile.count("tick") > 1


def test_closing_does_not_wait_for_a_client_that_always_has_bytes() -> None:
    """It is cut off in the middle of what it sends."""
    begun, cut = threading.Event(), threading.Event()
    server, address = listening(lambda _: begun.set())

    def send() -> None:
        with socket.create_connection(address, timeout=30) as client:
            client.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(200):
                    client.sendall(b"1\r\nx\r\n" * 10_000)
            except OSError:
                cut.set()

    sender = threading.Thread(target=send)
    server.start()
    sender.start()
    assert begun.wait(30)
    server.close()
    sender.join()

    assert cut.is_set()


def test_what_a_request_takes_to_be_read_is_its_own_time() -> None:
    """It costs the others nothing, and buys the client no more."""
    now = [0.0]

    def at_head(request: Request) -> Response | None:
        if request.path == "/quick":
            return Response(200)
        now[0] += 60.0
        return None

    server, address = listening(at_head, clock=lambda: now[0])
    server.start()
    with (
        socket.create_connection(address, timeout=30) as other,
        socket.create_connection(address, timeout=30) as slow,
    ):
        slow.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n")
        assert b"" == slow.recv(1)
        other.sendall(b"GET /quick HTTP/1.1\r\n\r\n")
        assert other.recv(1024).startswith(b"HTTP/1.1 200 ")
    server.close()
