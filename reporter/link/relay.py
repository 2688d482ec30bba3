"""The relay: progress from a plugin on this machine's own address on to the aggregator.

One thread. Reading never waits for one client while another is there; forwarding is one at a time,
in the order in which requests were complete. What is forwarded, and when once more, is in
`forwarding.py`, what HTTP looks like in `relay_http.py`.
"""

import contextlib
import errno
import os
import random
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reporter.link.delivery import Event
from reporter.link.forwarding import Client, Forwarding
from reporter.link.relay_http import CONTINUE, Incoming

ADDRESSES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
READ_SECONDS = 5.0
RETRY_PORT_SECONDS = 10.0
MOST_CONNECTIONS = 16
_CHUNK = 64 * 1024
_MOST_IGNORED_BYTES = 1024 * 1024
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


@dataclass(eq=False)
class _Connection:
    socket: socket.socket
    deadline: float
    incoming: Incoming = field(default_factory=Incoming)
    unsent: memoryview | None = None
    ignored: int = 0


class Relay:
    """`http://localhost:PORT/progress`, for POST and PUT; `start` it and `close` it.

    Who is not on this machine cannot reach it. While another process has the port it tries again
    every ten seconds. The plugin gets the aggregator's own answer, or a 500 where there is none.

    `on_event` is called with a word and its facts, the last three at most once:

    - `relay_listens`: the port is ours (`port`);
    - `relay_port_taken`: it is somebody else's (`port`, `trouble`);
    - `progress_not_delivered` and `progress_unwanted`: see `Forwarding`.
    """

    def __init__(
        self,
        client: Client,
        port: int,
        *,
        on_event: Event = lambda _event, _facts: None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        retry_port: float = RETRY_PORT_SECONDS,
        patience: float = READ_SECONDS,
    ) -> None:
        self._forwarding = Forwarding(client, on_event=on_event, rng=rng, clock=clock)
        self._wanted_port, self._on_event, self._clock = port, on_event, clock
        self._retry_port, self._patience = retry_port, patience
        self._connections: list[_Connection] = []
        self._listeners: list[socket.socket] = []
        self._listen_at: float | None = None
        self._taken_said = False
        self.listening = threading.Event()
        """Set while the port is ours."""
        self.port = port
        """The port; a free one was taken for 0 once `listening` is set."""

    def start(self) -> None:
        """Listen from now on, or as soon as the port is free. Never raises for a port in use."""
        self._selector = selectors.DefaultSelector()
        self._closing, self._close = os.pipe()
        self._selector.register(self._closing, selectors.EVENT_READ)
        self._listen()
        self._thread = threading.Thread(target=self._serve, name="relay", daemon=True)
        self._thread.start()

    def close(self, *, last_try: bool = False) -> None:
        """Stop; cuts off open connections, waits for an update that is on its way.

        With `last_try` an update that is still to be sent again is sent once more.
        """
        with contextlib.suppress(BrokenPipeError):
            os.write(self._close, b"\0")
        self._thread.join()
        os.close(self._close)
        if last_try:
            self._forwarding.resend()

    # The thread

    def _serve(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            for connection in self._connections:
                connection.socket.close()
            self._stop_listening()
            self._selector.close()
            os.close(self._closing)

    def _turn(self) -> bool:
        for key, _ in self._selector.select(self._until_next()):
            if key.fileobj == self._closing:
                return False
            if key.data is None:
                self._accept(key.fileobj)
            elif key.data in self._connections:
                self._advance(key.data)
        now = self._clock()
        for connection in [c for c in self._connections if c.deadline <= now]:
            self._drop(connection)
        if self._listen_at is not None and self._listen_at <= now:
            self._listen()
        resend_at = self._forwarding.resend_at
        if resend_at is not None and resend_at <= now:
            self._forwarding.resend()
        return True

    def _until_next(self) -> float | None:
        moments = [connection.deadline for connection in self._connections]
        moments += [m for m in (self._listen_at, self._forwarding.resend_at) if m is not None]
        return max(0.0, min(moments) - self._clock()) if moments else None

    # The port

    def _listen(self) -> None:
        """Take the port on both loopback addresses, or none and try later."""
        self._listen_at = None
        port = self._wanted_port
        try:
            for family, address in ADDRESSES:
                try:
                    listener = _listener(family, address, port)
                except OSError as error:
                    # A kernel without IPv6 still has a loopback; a port in use is another matter.
                    if family == socket.AF_INET6 and error.errno in _NO_IPV6:
                        continue
                    raise
                self._listeners.append(listener)
                port = int(listener.getsockname()[1])
        except OSError as error:
            for listener in self._listeners:
                listener.close()
            self._listeners.clear()
            self._listen_at = self._clock() + self._retry_port
            if not self._taken_said:
                self._taken_said = True
                self._on_event("relay_port_taken", {"port": port, "trouble": str(error)})
            return
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ)
        self.port = port
        self.listening.set()
        self._on_event("relay_listens", {"port": port})

    def _stop_listening(self) -> None:
        self.listening.clear()
        for listener in self._listeners:
            self._selector.unregister(listener)
            listener.close()
        self._listeners.clear()

    # One connection

    def _accept(self, listener: Any) -> None:
        try:
            client, _ = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                # The waiting client keeps the listener readable: without a pause we would spin.
                self._stop_listening()
                self._listen_at = self._clock() + 1.0
            return
        client.setblocking(False)
        if len(self._connections) >= MOST_CONNECTIONS:
            self._drop(self._connections[0])
        connection = _Connection(client, self._clock() + self._patience)
        self._connections.append(connection)
        self._selector.register(client, selectors.EVENT_READ, connection)

    def _advance(self, connection: _Connection) -> None:
        try:
            if connection.unsent is None:
                self._receive(connection)
            elif connection.unsent:
                self._send(connection)
            else:
                self._see_off(connection)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._drop(connection)

    def _receive(self, connection: _Connection) -> None:
        data = connection.socket.recv(_CHUNK)
        if not data:
            self._drop(connection)
            return
        incoming = connection.incoming
        incoming.feed(data)
        if incoming.expects:
            incoming.expects = False
            # A new connection's buffer has room for 25 bytes.
            connection.socket.send(CONTINUE)
        if not incoming.complete:
            return
        began = self._clock()
        answer = incoming.refusal or self._forwarding.take(incoming.body or b"")
        # The others could not be read meanwhile.
        for other in self._connections:
            other.deadline += self._clock() - began
        connection.unsent = memoryview(answer.encode())
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
        if not data or connection.ignored > _MOST_IGNORED_BYTES:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._selector.unregister(connection.socket)
            connection.socket.close()


def _listener(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(2 * MOST_CONNECTIONS)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
