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
from typing import Any

from reporter.link.delivery import Event
from reporter.link.forwarding import Client, Forwarding
from reporter.link.relay_http import CONTINUE, Answer, Incoming
from reporter.runtime.http_server import Connections

ADDRESSES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
READ_SECONDS = 5.0
RETRY_PORT_SECONDS = 10.0
PAUSE_SECONDS = 1.0
"""While the system has no room for another connection."""
MOST_CONNECTIONS = 16
_MOST_IGNORED_BYTES = 1024 * 1024
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


class _Update:
    """One update as it comes from the plugin, and the aggregator's answer to it."""

    def __init__(self, forward: Callable[[bytes], Answer]) -> None:
        self._forward, self._incoming = forward, Incoming()

    @property
    def complete(self) -> bool:
        """Whether it is whole or refused."""
        return self._incoming.complete

    def feed(self, data: bytes) -> bytes:
        """Forward it once it is whole."""
        incoming = self._incoming
        incoming.feed(data)
        if incoming.expects:
            incoming.expects = False
            return CONTINUE
        if not incoming.complete:
            return b""
        return (incoming.refusal or self._forward(incoming.body or b"")).encode()

    def taken(self) -> None:
        """Nobody wants to know."""


class Relay:
    """`http://localhost:PORT/progress`, for POST and PUT; `start` it and `close` it.

    Who is not on this machine cannot reach it. While another process has the port it tries again
    every ten seconds. The plugin gets the aggregator's own answer, or a 500 where there is none.

    `on_event` is called with a word and its facts, the last three at most once:

    - `relay_listens`: the port is ours (`port`);
    - `relay_gave_up`: a connection was dropped for what should not happen (`trouble`);
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
        self._connections = Connections(
            self._selector,
            lambda: _Update(self._forwarding.take),
            most=MOST_CONNECTIONS,
            patience=self._patience,
            most_ignored=_MOST_IGNORED_BYTES,
            on_error=lambda error: self._on_event("relay_gave_up", {"trouble": repr(error)}),
            clock=self._clock,
        )
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
            self._connections.close()
            self._stop_listening()
            self._selector.close()
            os.close(self._closing)

    def _turn(self) -> bool:
        for key, _ in self._selector.select(self._until_next()):
            if key.fileobj == self._closing:
                return False
            if key.data is None:
                self._accept(key.fileobj)
            else:
                self._connections.ready(key.data)
        self._connections.drop_late()
        now = self._clock()
        if self._listen_at is not None and self._listen_at <= now:
            self._listen()
        resend_at = self._forwarding.resend_at
        if resend_at is not None and resend_at <= now:
            self._forwarding.resend()
        return True

    def _until_next(self) -> float | None:
        moments = self._connections.deadlines()
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

    def _accept(self, listener: Any) -> None:
        if not self._connections.accept(listener):
            self._stop_listening()
            self._listen_at = self._clock() + PAUSE_SECONDS


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
