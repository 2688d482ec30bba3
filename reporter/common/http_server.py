"""A small HTTP server: many connections of one request each, on one thread that sleeps.

The thread sleeps until a socket wants something, and never waits for one client while another is
there: a slow or hostile client costs a few kilobytes for a few seconds. `http.server` was tried: a
thread per client, with a time limit for each read only, lets clients that drip, or never hang up,
keep all others out. Requests and answers are the caller's. Standard library only.
"""

import contextlib
import errno
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from reporter.common.http_request import CONTINUE, Incoming, Request, Response

NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})
"""IPv6 is missing from the kernel or turned off; a port in use is another matter."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS = 1.0  # while the system has no room for another connection
_CHUNK = 64 * 1024
_BACKLOG = 32


def listen(family: int, place: Any, *, only_ipv6: bool) -> socket.socket:
    """Return a listening socket. Raises OSError where the address or its port is not available."""
    # IPV6_V6ONLY is set in any case, not left to a sysctl.
    both = family == socket.AF_INET6 and not only_ipv6 and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        # Python adds the address as a tuple, and this is read by people.
        raise OSError(error.errno, os.strerror(error.errno or 0)) from error
    listener.setblocking(False)
    return listener


@dataclass(eq=False)
class _Connection:
    socket: socket.socket
    deadline: float
    steps: Generator[int, None, None] = field(init=False)
    """Each does what the socket allows, and gives the event to wait for."""


class Server:
    """Answers what comes to its listeners: `add` some, `start` it and `close` it.

    `at_head` answers a request by its head; where it returns None, `at_body` gets the body, of at
    most `longest_body` bytes. Both run on the server's thread, one after the other, and may take
    their time. An exception ends the connection and is passed to `on_error`.

    There are at most `most` connections; a newer one pushes out the oldest, since those who send
    their request at once are answered at once and only those who hold connections open suffer.
    `patience` is the time in seconds for a request to arrive in full, and again for its answer to
    be taken in full. `most_ignored` bytes behind a request are read and thrown away.

    `tick` is called before each sleep and returns when to be called again at the latest, by
    `clock`.
    """

    def __init__(
        self,
        name: str,
        at_head: Callable[[Request], Response | None],
        at_body: Callable[[bytes], Response] | None = None,
        *,
        most: int,
        patience: float,
        most_ignored: int,
        longest_body: int = 0,
        on_error: Callable[[Exception], object],
        tick: Callable[[], float | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at_head, self._at_body = at_head, at_body
        self._most, self._patience, self._most_ignored = most, patience, most_ignored
        self._longest_body = longest_body
        self._on_error, self._tick, self._clock = on_error, tick, clock
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._resume_at: float | None = None  # listening again, where it is suspended
        self._open: list[_Connection] = []
        self._closing, self._close = os.pipe()
        self._selector.register(self._closing, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def add(self, listener: socket.socket) -> None:
        """Take connections from `listener` too; before the start, or from `tick`."""
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Stop at once, cutting off open connections. Not to be called on the server's thread."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._close, b"\0")
        self._thread.join()
        os.close(self._close)

    def _serve(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            while self._open:
                self._drop(self._open[0])
            self._selector.close()
            for listener in self._listeners:
                listener.close()
            os.close(self._closing)

    def _turn(self) -> bool:
        """Do what the sockets ask for; False once the server is to close."""
        for key, _ in self._selector.select(self._until_next(self._tick())):
            if key.fileobj == self._closing:
                return False
            if key.data is None:
                self._accept(key.fileobj)
            elif key.data in self._open:  # no newer one has pushed it out meanwhile
                self._advance(key.data)
        now = self._clock()
        for connection in [c for c in self._open if c.deadline <= now]:
            self._drop(connection)
        if self._resume_at is not None and self._resume_at <= now:
            self._resume_at = None
            for listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ)
        return True

    def _until_next(self, tick_at: float | None) -> float | None:
        moments = [connection.deadline for connection in self._open]
        moments += [moment for moment in (tick_at, self._resume_at) if moment is not None]
        return max(0.0, min(moments) - self._clock()) if moments else None

    def _accept(self, listener: Any) -> None:
        try:
            client, _ = listener.accept()
        except OSError as error:
            # The client that waits keeps the listener readable: without a pause this would spin.
            if error.errno in _EXHAUSTED and self._resume_at is None:
                self._resume_at = self._clock() + _PAUSE_SECONDS
                for each in self._listeners:
                    self._selector.unregister(each)
            return
        client.setblocking(False)
        if len(self._open) >= self._most:
            self._drop(self._open[0])
        connection = _Connection(client, self._clock() + self._patience)
        connection.steps = self._converse(connection)
        self._open.append(connection)
        self._selector.register(client, selectors.EVENT_READ, connection)
        self._advance(connection)

    def _advance(self, connection: _Connection) -> None:
        try:
            event = next(connection.steps)
        except (StopIteration, OSError):
            self._drop(connection)
        except Exception as error:
            self._on_error(error)
            self._drop(connection)
        else:
            self._selector.modify(connection.socket, event, connection)

    def _converse(self, connection: _Connection) -> Generator[int, None, None]:
        client, response = connection.socket, None
        with contextlib.closing(Incoming(self._at_head, self._longest_body)) as incoming:
            while response is None:
                data = yield from _received(client)
                if not data:
                    return
                began = self._clock()
                incoming.feed(data)
                del data  # no memory while it waits
                response = incoming.response
                if incoming.body is not None and self._at_body is not None:
                    response = self._at_body(incoming.body)
                # An answer may take its time, in which the others could not be read.
                for other in self._open:
                    if other is not connection:
                        other.deadline += self._clock() - began
                if response is None and incoming.expects:
                    incoming.expects = False
                    client.send(CONTINUE)  # which fits a new connection's buffer
        connection.deadline = self._clock() + self._patience
        unsent = memoryview(response.encode(head_only=incoming.head_only))
        while unsent:
            try:
                unsent = unsent[client.send(unsent) :]
            except BlockingIOError:
                yield selectors.EVENT_WRITE
        # Closing now could reset the connection, if the client has sent more than was read, and
        # the reset could overtake the answer: wait for the client to hang up.
        client.shutdown(socket.SHUT_WR)
        ignored = 0
        while size := len((yield from _received(client))):
            ignored += size
            if ignored > self._most_ignored:
                return
        if response.on_read is not None and not incoming.head_only:
            response.on_read()

    def _drop(self, connection: _Connection) -> None:
        if connection in self._open:
            self._open.remove(connection)
            self._selector.unregister(connection.socket)
            connection.steps.close()
            connection.socket.close()


def _received(client: socket.socket) -> Generator[int, None, bytes]:
    """Let the others have their turn first: a client may send faster than its bytes are read."""
    while True:
        yield selectors.EVENT_READ
        with contextlib.suppress(BlockingIOError):
            return client.recv(_CHUNK)
