"""The relay: takes progress from a plugin on a loopback address and sends it to the aggregator.

Updates are forwarded one at a time, in the order in which requests were complete. The plugin is
told what happened, so an update that was not accepted is not sent again later. The exception is the
newest update that replaces all before it: until a newer one comes, it can only make the
aggregator's view more accurate.
"""

import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from reporter.common.http_request import Request, Response, refusal
from reporter.common.http_server import NO_IPV6, Server, listen
from reporter.common.retry import next_delay
from reporter.errors import InvalidPayload, ReporterError
from reporter.link.client import AggregatorClient
from reporter.link.delivery import FIRST_STEP, LONGEST_STEP, Event, outcome_of
from reporter.run.progress_body import parse_progress

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
    - `progress_not_delivered`: the aggregator was not reached (`trouble`);
    - `progress_unwanted`: it answers 404, as Sonobuoy's does for the worker of a node (`status`).
    """

    def __init__(
        self,
        client: AggregatorClient,
        port: int,
        *,
        on_event: Event = lambda _event, _facts: None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        retry_port: float = RETRY_PORT_SECONDS,
        patience: float = READ_SECONDS,
    ) -> None:
        self._client, self._wanted_port, self._on_event = client, port, on_event
        self._clock, self._rng = clock, rng
        self._retry_port, self._patience = retry_port, patience
        self._listen_at: float | None = None
        self._kept: bytes | None = None
        self._resend_at: float | None = None
        self._tries = 0
        self._said: set[str] = set()
        self.listening = threading.Event()
        """Set while the port is ours."""
        self.port = port
        """The port; a free one was taken for 0 once `listening` is set."""

    def start(self) -> None:
        """Listen from now on, or as soon as the port is free. Never raises for a port in use."""
        self._server = Server(
            "relay",
            at_head,
            self._forward,
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
            self._resend()

    def _tick(self) -> float | None:
        """Do what is due on the server's thread; return when more is due."""
        now = self._clock()
        if self._listen_at is not None and self._listen_at <= now:
            self._listen()
        if self._resend_at is not None and self._resend_at <= now:
            self._resend()
        moments = (self._listen_at, self._resend_at)
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
            self._say_once("relay_port_taken", port=port, trouble=str(error))
            return
        for listener in listeners:
            self._server.add(listener)
        self.port = port
        self.listening.set()
        self._on_event("relay_listens", {"port": port})

    def _forward(self, body: bytes) -> Response:
        """Forward an update of the plugin and return what the plugin is told."""
        # Whatever comes now is newer; a kept one sent after it could undo it.
        self._keep(None)
        answer, again = self._send(body)
        if again and _replaces(body):
            self._keep(body)
        return answer

    def _resend(self) -> None:
        if self._kept is not None:
            _, again = self._send(self._kept)
            self._keep(self._kept if again else None)

    def _keep(self, body: bytes | None) -> None:
        """Keep an update to be sent again in a while, or none."""
        self._kept, self._resend_at = body, None
        self._tries = self._tries + 1 if body is not None else 0
        if body is not None:
            delay = next_delay(self._tries, self._rng, first=FIRST_STEP, longest=LONGEST_STEP)
            self._resend_at = self._clock() + (delay or 0.0)

    def _send(self, body: bytes) -> tuple[Response, bool]:
        """Return what the plugin is told, and whether another try may succeed."""
        try:
            reply = self._client.post_progress(body)
        except ReporterError as error:
            self._say_once("progress_not_delivered", trouble=str(error))
            return Response(500), True
        if reply.status == 404:
            self._say_once("progress_unwanted", status=404)
        again = outcome_of(reply.status) is None
        return Response(reply.status, reply.body, reply.content_type), again

    def _say_once(self, event: str, **facts: Any) -> None:
        if event not in self._said:
            self._said.add(event)
            self._on_event(event, facts)


def _replaces(body: bytes) -> bool:
    try:
        return not parse_progress(body).appending
    except InvalidPayload:
        return False
