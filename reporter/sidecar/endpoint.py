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
from dataclasses import dataclass, field

from reporter import log
from reporter.sidecar.answers import Answer, Site, answer, refusal

PATIENCE_SECONDS = 5.0
MOST_CONNECTIONS = 8
MOST_HEAD_BYTES = 8192
_MOST_IGNORED_BYTES = 65536
_PAUSE_SECONDS = 1.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(eq=False)
class _Connection:
    socket: socket.socket
    deadline: float
    head: bytearray = field(default_factory=bytearray)
    unsent: memoryview | None = None
    ignored: int = 0
    scrape: bool | None = None


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
        self._connections: list[_Connection] = []
        self._resume_at: float | None = None

    def start(self) -> None:
        """Listen and answer from now on; port 0 takes a free one.

        Raises OSError where the address cannot be had, for instance because the port is in use.
        """
        self._listener = listen(self._address, self._port)
        self._selector = selectors.DefaultSelector()
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
            for connection in self._connections:
                connection.socket.close()
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
            elif key.data in self._connections:
                self._advance(key.data)
        now = time.monotonic()
        for connection in [c for c in self._connections if c.deadline <= now]:
            self._drop(connection)
        if self._resume_at is not None and self._resume_at <= now:
            self._resume_at = None
            self._selector.register(self._listener, selectors.EVENT_READ)
        return True

    def _until_next(self) -> float | None:
        ends = [connection.deadline for connection in self._connections]
        if self._resume_at is not None:
            ends.append(self._resume_at)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError as error:
            if error.errno in _EXHAUSTED:
                # The waiting client keeps the listener readable: without a pause we would spin.
                self._selector.unregister(self._listener)
                self._resume_at = time.monotonic() + _PAUSE_SECONDS
            return
        client.setblocking(False)
        if len(self._connections) >= MOST_CONNECTIONS:
            # The oldest, not the newest: a probe sends its request at once and is answered in the
            # same turn, so only those who hold connections open suffer.
            self._drop(self._connections[0])
        connection = _Connection(client, time.monotonic() + self._patience)
        self._connections.append(connection)
        self._selector.register(client, selectors.EVENT_READ, connection)
        self._advance(connection)

    def _advance(self, connection: _Connection) -> None:
        try:
            if connection.unsent is None:
                self._receive(connection)
            if connection.unsent:
                self._send(connection)
            elif connection.unsent is not None:
                self._see_off(connection)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._drop(connection)
        except Exception as error:
            log.get().error("Endpoint gave up on a connection", error=error)
            self._drop(connection)

    def _receive(self, connection: _Connection) -> None:
        data = connection.socket.recv(MOST_HEAD_BYTES)
        if not data:
            self._drop(connection)
            return
        connection.head += data
        end = connection.head.find(b"\r\n\r\n")
        if end < 0 and len(connection.head) <= MOST_HEAD_BYTES:
            return
        fits = 0 <= end <= MOST_HEAD_BYTES
        reply: Answer = answer(self._site, bytes(connection.head[:end])) if fits else refusal(431)
        connection.head.clear()
        connection.unsent, connection.scrape = memoryview(reply.data), reply.scrape
        connection.deadline = time.monotonic() + self._patience
        self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)

    def _send(self, connection: _Connection) -> None:
        assert connection.unsent is not None
        sent = connection.socket.send(connection.unsent)
        connection.unsent = connection.unsent[sent:]
        if not connection.unsent:
            # Closing now could reset the connection, if the client has sent a body that nobody
            # read, and the reset could overtake the answer: wait for the client to hang up.
            connection.socket.shutdown(socket.SHUT_WR)
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)

    def _see_off(self, connection: _Connection) -> None:
        data = connection.socket.recv(MOST_HEAD_BYTES)
        connection.ignored += len(data)
        if data and connection.ignored <= _MOST_IGNORED_BYTES:
            return
        self._drop(connection)
        if not data and connection.scrape is not None:
            self._on_scrape(connection.scrape)

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._selector.unregister(connection.socket)
            connection.socket.close()


def listen(address: str, port: int) -> socket.socket:
    """Return a listening socket; an empty address stands for every interface, IPv4 and IPv6.

    Raises OSError where it cannot be had.
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
