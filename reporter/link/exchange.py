"""One HTTP exchange with the aggregator, each part of it within its time limit.

urllib3's connection with our own socket below it (`sockets.py`). Redirects are not followed and
proxies not used: urllib3 does both above this level, where there is only our client.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Protocol

from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError

from reporter.common.dialing import dial, outlive_silence
from reporter.errors import ReporterError
from reporter.link.answers import MAX_BODY, AggregatorAnswer
from reporter.link.request import Request
from reporter.link.sockets import Socket, TimeLimits


class Secures(Protocol):
    """Who says which peer is the right one."""

    def secure(self, dial: Callable[[ssl.SSLContext], Socket]) -> Socket:
        """Return a connection that `dial` makes by a context. Raises what that raises."""


class NoAnswer(ReporterError):
    """The aggregator was not reached, or did not answer in time.

    `stale`: the connection was closed without a byte of answer, as it happens to one that was kept
    idle for too long.
    """

    def __init__(self, message: str, *, stale: bool = False) -> None:
        super().__init__(message)
        self.stale = stale


class AggregatorConnection(HTTPSConnection):
    """A connection to the aggregator: opened with the first exchange, used for one at a time."""

    def __init__(self, host: str, port: int, trust: Secures, limits: TimeLimits) -> None:
        super().__init__(host, port, timeout=None)
        self._trust, self._limits = trust, limits
        self._left: Callable[[], float] = lambda: float("inf")

    def exchange(self, request: Request, left: Callable[[], float]) -> AggregatorAnswer:
        """Send a request and return the answer, which may come before all of it is sent.

        `left` gives the seconds left for all of it, which may change meanwhile. After an error, and
        after an answer that says so, the connection is closed. Raises `NoAnswer`, `TrustError`, and
        what reading the body raises.
        """
        self._left = left
        answered = False
        try:
            sock = self._opened()
            sock.expect(left)
            try:
                answer = self._converse(request)
            except (OSError, HTTPException, HTTPError) as error:
                closed = not isinstance(error, TimeoutError) and not sock.received
                raise NoAnswer(_plain(error), stale=closed) from error
            answered = True
            return answer
        finally:
            if not answered:
                self.close()

    def connect(self) -> None:
        """Connect and shake hands. Raises OSError and `TrustError`."""
        self.sock = self._trust.secure(self._dial)
        self.is_verified = True

    def _opened(self) -> Socket:
        if self.sock is None:
            try:
                self.connect()
            except OSError as error:
                raise NoAnswer(f"cannot connect to {self.host}: {_plain(error)}") from error
        assert isinstance(self.sock, Socket)
        return self.sock

    def _converse(self, request: Request) -> AggregatorAnswer:
        method, target, headers, body = request
        unsent: OSError | None = None
        try:
            self.request(method, target, body, headers, preload_content=False, decode_content=False)
        except TimeoutError:
            raise
        except OSError as error:
            unsent = error  # the answer may have come all the same
        try:
            response = self.getresponse()
        except (OSError, HTTPException, HTTPError) as error:
            # The peer's alert is read only once: with the first error, or else with this one.
            if isinstance(unsent, ssl.SSLError) and not isinstance(error, ssl.SSLError):
                raise unsent from None
            raise
        whole = unsent is None
        text = b""
        try:
            text = response.read(MAX_BODY)
        except (OSError, HTTPException, HTTPError, ValueError):  # ValueError: a negative chunk
            whole = False  # the status is what counts
        if not whole or len(text) == MAX_BODY:
            self.close()
        response.close()
        fields = {name.lower(): value for name, value in response.headers.items()}
        return AggregatorAnswer(response.status, fields, text)

    def _dial(self, context: ssl.SSLContext) -> Socket:
        context.sslsocket_class = Socket
        tcp = self._reach()
        try:
            sock = context.wrap_socket(
                tcp, server_hostname=self.host, do_handshake_on_connect=False
            )
        except BaseException:
            tcp.close()
            raise
        assert isinstance(sock, Socket)
        try:
            sock.shake_hands(self._limits, self._left)
        except BaseException:
            sock.close()
            raise
        return sock

    def _reach(self) -> socket.socket:
        """Connect to the first address that answers. The limit includes the name lookup."""
        until = time.monotonic() + self._limits.connect
        options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
        left = self._left
        sock = dial(
            self._dns_host, self.port, lambda: min(until - time.monotonic(), left()), options
        )
        outlive_silence(sock)
        return sock


class KeptConnection:
    """The idle connections of a client, each for `seconds`, which may change meanwhile."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._idle: list[tuple[AggregatorConnection, float]] = []
        self._closed = False

    def take(self) -> AggregatorConnection | None:
        """Return a connection that was still open a moment ago."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection, since = self._idle.pop()
            if time.monotonic() < since + self.seconds and connection.is_connected:
                return connection
            connection.close()

    def give(self, connection: AggregatorConnection) -> None:
        """Keep a connection, unless it was closed with its last answer."""
        if connection.is_closed:
            return
        with self._lock:
            if not self._closed:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()

    def close(self) -> None:
        """Close all idle connections, and every one that is given back later."""
        with self._lock:
            self._closed, idle, self._idle = True, self._idle, []
        for connection, _ in idle:
            connection.close()


def _plain(error: BaseException) -> str:
    """Return an error as one line, without the additions of Python and OpenSSL."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS: {error.reason.replace('_', ' ').lower()}"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split(" (_ssl.c")[0].split())
