"""Connections that carry one request each, many of them on one thread that sleeps in a selector.

The thread, the listening sockets and what a request means are the caller's. Only modules of the
standard library may be imported here: the link, which others use by itself, stands on this too.
"""

import errno
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_CHUNK = 64 * 1024
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Exchange(Protocol):
    """One request as it comes in, and what is said to it."""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return what is to be said now; the last word if `complete`.

        What is said before must fit a new connection's buffer.
        """

    @property
    def complete(self) -> bool:
        """Whether the request is whole, or refused, and nothing more of it is read."""

    def taken(self) -> None:
        """Hear that the client has taken the whole of the last word."""


def outlive_silence(sock: socket.socket) -> None:
    """Let TCP ask a silent peer whether it is there, and end the connection within a minute.

    Where a system lacks an option, it asks at its own pace.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@dataclass(eq=False)
class _Connection:
    socket: socket.socket
    exchange: Exchange
    deadline: float
    unsent: memoryview | None = None
    ignored: int = 0


class Connections:
    """The connections of one server, registered with `selector` under themselves as data.

    At most `most`; a newer one pushes out the oldest, since those who send their request at once
    are answered at once and only those who hold connections open suffer. `patience` is the time in
    seconds for a request to arrive in full, and again for its answer to be taken in full.
    `most_ignored` bytes behind a request are read and thrown away. An exchange that raises costs
    its connection and is told to `on_error`.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        begin: Callable[[], Exchange],
        *,
        most: int,
        patience: float,
        most_ignored: int,
        on_error: Callable[[Exception], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._selector, self._begin, self._on_error = selector, begin, on_error
        self._most, self._patience, self._most_ignored = most, patience, most_ignored
        self._clock = clock
        self._open: list[_Connection] = []

    def deadlines(self) -> list[float]:
        """Return when connections run out of time."""
        return [connection.deadline for connection in self._open]

    def accept(self, listener: socket.socket) -> bool:
        """Take one connection; False where the system has no room for any.

        The waiting client keeps the listener readable then: without a pause the caller would spin.
        """
        try:
            client, _ = listener.accept()
        except OSError as error:
            return error.errno not in _EXHAUSTED
        client.setblocking(False)
        if len(self._open) >= self._most:
            self._drop(self._open[0])
        connection = _Connection(client, self._begin(), self._clock() + self._patience)
        self._open.append(connection)
        self._selector.register(client, selectors.EVENT_READ, connection)
        self._advance(connection)
        return True

    def ready(self, data: object) -> None:
        """Go on with what the selector found; not ours, or no longer open, is passed over."""
        for connection in self._open:
            if connection is data:
                self._advance(connection)
                return

    def drop_late(self) -> None:
        """Drop those whose time is over."""
        now = self._clock()
        for connection in [c for c in self._open if c.deadline <= now]:
            self._drop(connection)

    def close(self) -> None:
        """Cut all of them off."""
        while self._open:
            self._drop(self._open[0])

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
            self._on_error(error)
            self._drop(connection)

    def _receive(self, connection: _Connection) -> None:
        data = connection.socket.recv(_CHUNK)
        if not data:
            self._drop(connection)
            return
        began = self._clock()
        said = connection.exchange.feed(data)
        # An exchange may take its time, in which the others could not be read.
        for other in self._open:
            other.deadline += self._clock() - began
        if not connection.exchange.complete:
            if said:
                connection.socket.send(said)
            return
        connection.unsent = memoryview(said)
        connection.deadline = self._clock() + self._patience
        self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)

    def _send(self, connection: _Connection) -> None:
        assert connection.unsent is not None
        sent = connection.socket.send(connection.unsent)
        connection.unsent = connection.unsent[sent:]
        if not connection.unsent:
            # Closing now could reset the connection, if the client has sent more than was read,
            # and the reset could overtake the answer: wait for the client to hang up.
            connection.socket.shutdown(socket.SHUT_WR)
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)

    def _see_off(self, connection: _Connection) -> None:
        data = connection.socket.recv(_CHUNK)
        connection.ignored += len(data)
        if data and connection.ignored <= self._most_ignored:
            return
        self._drop(connection)
        if not data:
            connection.exchange.taken()

    def _drop(self, connection: _Connection) -> None:
        if connection in self._open:
            self._open.remove(connection)
            self._selector.unregister(connection.socket)
            connection.socket.close()
