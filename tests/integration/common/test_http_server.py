"""The small HTTP server: what goes wrong inside of it."""

import contextlib
import http.client
import socket
import threading

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

    server = Server(
        "test",
        at_head,
        at_body,
        most=4,
        patience=30.0,
        most_ignored=1024,
        longest_body=2**20,
        on_error=seen.append,
        tick=lambda: seen.append("tick"),
    )
    listener = listen(socket.AF_INET, ("127.0.0.1", 0), only_ipv6=False)
    server.add(listener)
    size = 2**18  # fits the buffers of a socket, and is read in several pieces
    with (
        socket.create_connection(listener.getsockname(), timeout=30) as greedy,
        socket.create_connection(listener.getsockname(), timeout=30) as other,
    ):
        greedy.sendall(b"POST /large HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        other.sendall(b"GET /small HTTP/1.1\r\n\r\n")
        server.start()
        assert done.wait(30)
        server.close()

    while_read = seen[seen.index("/large") : seen.index("body")]
    assert "/small" in while_read
    assert while_read.count("tick") > 1


def test_closing_does_not_wait_for_a_client_that_always_has_bytes() -> None:
    """It is cut off in the middle of what it sends."""
    begun, cut = threading.Event(), threading.Event()
    server = Server(
        "test",
        lambda _: begun.set(),
        most=4,
        patience=600.0,
        most_ignored=1024,
        longest_body=2**30,
        on_error=print,
    )
    listener = listen(socket.AF_INET, ("127.0.0.1", 0), only_ipv6=False)
    server.add(listener)

    def send() -> None:
        with socket.create_connection(listener.getsockname(), timeout=30) as client:
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
