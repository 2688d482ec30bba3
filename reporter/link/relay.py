"""The relay: takes progress from a plugin on a loopback address and sends it to the aggregator.

Updates are forwarded one at a time, in the order in which requests were complete. `forwarding.py`
decides what is forwarded and what is sent again.
"""

import random
import socket
import threading
import time
from collections.abc import Callable

from reporter.common.http_request import Request, Response, refusal
from reporter.common.http_server import NO_IPV6, Server, listen
from reporter.link.delivery import Event
from reporter.link.forwarding import Client, Forwarding

PATH = "/progress"
METHODS = ("POST", "PUT")
ADDRESSES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
READ_SECONDS = 5.0
RETRY_PORT_SECONDS = 10.0
MOST_CONNECTIONS = 16
LONGEST_BODY = 1024 * 1024
_MOST_IGNORED_BYTES = 1024 * 1024


def at_head(request: Request) -> Response | None:
    """Answer what is no update."""
    if request.path != PATH:
        return Response(404, b"404 page not found\n")
    return None if request.method in METHODS else refusal(405, allow=", ".join(METHODS))


class Relay:
    """`http://localhost:PORT/progress`, for POST and PUT; `start` it and `close` it.

    It can be reached from this machine only. While another process has the port it tries again
    every ten seconds. The plugin gets the aggregator's own answer, or a 500 if there is none.
    `on_event` is called with a word and its facts, the last three at most once:

    - `relay_listens`: the port is ours (`port`);
    - `relay_gave_up`: a connection was dropped because of an unexpected error (`trouble`);
    - `relay_port_taken`: another process has it (`port`, `trouble`);
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
        self._listen_at: float | None = None
        self._taken_said = False
        self.listening = threading.Event()
        """Set while the port is ours."""
        self.port = port
        """The port; a free one was taken for 0 once `listening` is set."""

    def start(self) -> None:
        """Listen from now on, or as soon as the port is free. Never raises for a port in use."""
        self._server = Server(
            "relay",
            at_head,
            self._forwarding.take,
            most=MOST_CONNECTIONS,
            patience=self._patience,
            most_ignored=_MOST_IGNORED_BYTES,
            longest_body=LONGEST_BODY,
            on_error=lambda error: self._on_event("relay_gave_up", {"trouble": repr(error)}),
            tick=self._tick,
            clock=self._clock,
        )
        self._listen()
        self._server.start()

    def close(self, *, last_try: bool = False) -> None:
        """Stop: cut off open connections, and wait for an update that is being sent.

        With `last_try` an update that is kept to be sent again is tried once more.
        """
        self._server.close()
        self.listening.clear()
        if last_try:
            self._forwarding.resend()

    def _tick(self) -> float | None:
        """Do what is due on the server's thread; return when more is due."""
        now = self._clock()
        if self._listen_at is not None and self._listen_at <= now:
            self._listen()
        resend_at = self._forwarding.resend_at
        if resend_at is not None and resend_at <= now:
            self._forwarding.resend()
        moments = (self._listen_at, self._forwarding.resend_at)
        return min((moment for moment in moments if moment is not None), default=None)

    def _listen(self) -> None:
        """Take the port on both loopback addresses, or on none and try again later."""
        self._listen_at = None
        port, listeners = self._wanted_port, list[socket.socket]()
        try:
            for family, address in ADDRESSES:
                try:
                    listener = listen(family, (address, port), only_ipv6=True)
                except OSError as error:
                    # A kernel without IPv6 still has a loopback.
                    if family == socket.AF_INET6 and error.errno in NO_IPV6:
                        continue
                    raise
                listeners.append(listener)
                port = int(listener.getsockname()[1])
        except OSError as error:
            for listener in listeners:
                listener.close()
            self._listen_at = self._clock() + self._retry_port
            if not self._taken_said:
                self._taken_said = True
                self._on_event("relay_port_taken", {"port": port, "trouble": str(error)})
            return
        for listener in listeners:
            self._server.add(listener)
        self.port = port
        self.listening.set()
        self._on_event("relay_listens", {"port": port})
