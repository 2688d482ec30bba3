"""The HTTP endpoint: `/metrics`, `/livez`, `/healthz`, `/readyz`, on one thread of its own.

The thread sleeps until a socket wants something, and never waits for one client while another is
there: all sockets are non-blocking and every connection has a deadline, so a slow or hostile client
costs a few kilobytes for a few seconds. What is answered is in `answers.py`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable

from reporter.runtime import log
from reporter.runtime.http_server import Connections
from reporter.sidecar.answers import Answer, Site, answer, refusal

PATIENCE_SECONDS = 5.0
MOST_CONNECTIONS = 8
MOST_HEAD_BYTES = 8192
_MOST_IGNORED_BYTES = 65536
_PAUSE_SECONDS = 1.0


class _Request:
    """One request's head, and the answer to it."""

    def __init__(self, site: Site, on_scrape: Callable[[bool], None]) -> None:
        self._site, self._on_scrape = site, on_scrape
        self._head = bytearray()
        self._reply: Answer | None = None

    @property
    def complete(self) -> bool:
        """Whether it is answered."""
        return self._reply is not None

    def feed(self, data: bytes) -> bytes:
        """Answer once the head is whole, or too long."""
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0 and len(self._head) <= MOST_HEAD_BYTES:
            return b""
        fits = 0 <= end <= MOST_HEAD_BYTES
        self._reply = answer(self._site, bytes(self._head[:end])) if fits else refusal(431)
        self._head.clear()
        return self._reply.data

    def taken(self) -> None:
        """Tell of a page that was taken."""
        if self._reply is not None and self._reply.scrape is not None:
            self._on_scrape(self._reply.scrape)


class Endpoint:
    """An HTTP/1.1 server for probes and Prometheus: one thread, one request per connection.

    `on_scrape` is told after a client has taken the whole of a `/metrics` page, with that page's
    own `final`: a page rendered before the verdict never counts as one that showed it. It runs on
    the endpoint's thread and must not block. `patience` is the time in seconds for a request to
    arrive in full, and again for its answer to be taken in full.
    """

    def __init__(
        self,
        address: str,
        port: int,
        site: Site,
        on_scrape: Callable[[bool], None],
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._address, self._port = address, port
        self._site, self._on_scrape = site, on_scrape
        self._patience = patience
        self._resume_at: float | None = None

    def start(self) -> None:
        """Listen and answer from now on; port 0 takes a free one.

        Raises OSError where the address is not available, for instance because the port is in use.
        """
        self._listener = listen(self._address, self._port)
        self._selector = selectors.DefaultSelector()
        self._connections = Connections(
            self._selector,
            lambda: _Request(self._site, self._on_scrape),
            most=MOST_CONNECTIONS,
            patience=self._patience,
            most_ignored=_MOST_IGNORED_BYTES,
            on_error=lambda error: log.get().error("Endpoint gave up on a connection", error=error),
        )
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._closing, self._close = os.pipe()
        self._selector.register(self._closing, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="endpoint", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._listener.getsockname()[1])

    @property
    def thread_id(self) -> int | None:
        """The system's number of the thread, for those who watch what it costs."""
        return self._thread.native_id

    def close(self) -> None:
        """Stop at once, cutting off open connections. Not to be called by `on_scrape`."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._close, b"\0")
        self._thread.join()
        os.close(self._close)

    def _serve(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            self._connections.close()
            self._selector.close()
            self._listener.close()
            os.close(self._closing)

    def _turn(self) -> bool:
        """Do what the sockets ask for; False once the endpoint is to close."""
        for key, _ in self._selector.select(self._until_next()):
            if key.fileobj == self._closing:
                return False
            if key.fileobj is self._listener:
                self._accept()
            else:
                self._connections.ready(key.data)
        self._connections.drop_late()
        if self._resume_at is not None and self._resume_at <= time.monotonic():
            self._resume_at = None
            self._selector.register(self._listener, selectors.EVENT_READ)
        return True

    def _until_next(self) -> float | None:
        ends = self._connections.deadlines()
        if self._resume_at is not None:
            ends.append(self._resume_at)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _accept(self) -> None:
        if not self._connections.accept(self._listener):
            self._selector.unregister(self._listener)
            self._resume_at = time.monotonic() + _PAUSE_SECONDS


def listen(address: str, port: int) -> socket.socket:
    """Return a listening socket; an empty address stands for every interface, IPv4 and IPv6.

    Raises OSError where it is not available.
    """
    if not address:
        try:
            return listen("::", port)
        except OSError as error:
            # IPv6 may be missing from the kernel or turned off; a port in use is another matter.
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT):
                raise
            return listen("0.0.0.0", port)  # noqa: S104
    family, kind, protocol, _, place = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Not left to a sysctl: `::` means both families.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(place)
        listener.listen(4 * MOST_CONNECTIONS)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
