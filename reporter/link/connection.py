"""One HTTP exchange with the aggregator, over before its time is.

urllib3's connection, with a thread beside it that shuts the socket when the time is over: that may
come nearer while something is waited for. Redirects are not followed and proxies not used: urllib3
does both above this level, where there is only our client.
"""

import math
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException

from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError

from reporter.common.dialing import dial, outlive_silence
from reporter.errors import ReporterError
from reporter.link.messages import MAX_BODY, Answer, Request

_SLICE_SECONDS = 0.5
"""How often it is looked whether the end has moved: a signal shortens what is left."""
_LAST_LOOK_SECONDS = 1.0
"""For an answer, when no more of the request is taken."""
_NAGLE_OFF = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]

Left = Callable[[], float]
"""Tells the seconds left; infinite without an end."""
Dial = Callable[[ssl.SSLContext], ssl.SSLSocket]
"""Makes a connection, and shakes hands by the context given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Seconds that the parts of a try may take.

    `connect` with the name's lookup; `silence` without a byte from or to the peer: an aggregator
    with many uploads leaves ours unread for up to half an hour, and then answers that it was busy.
    TCP detects a peer that is gone meanwhile. `progress` and `heartbeat` are for one update or
    heartbeat with all its parts.
    """

    connect: float = 5.0
    handshake: float = 10.0
    silence: float = 1860.0
    progress: float = 10.0
    heartbeat: float = 5.0


class NoAnswer(ReporterError):
    """The aggregator was not reached, or did not answer in time.

    `stale`: a connection that was kept open had been closed by the time it was used again.
    """

    def __init__(self, message: str, *, stale: bool = False) -> None:
        super().__init__(message)
        self.stale = stale


class Connection(HTTPSConnection):
    """A connection to a server: opened with the first exchange, used for one at a time.

    `secure` returns a connection to the right peer, which it makes by the function it is given. It
    raises what that raises, and may refuse the peer by an error of its own.
    """

    def __init__(
        self, host: str, port: int, secure: Callable[[Dial], ssl.SSLSocket], limits: TimeLimits
    ) -> None:
        super().__init__(host, port, timeout=limits.silence)
        self._secure, self._limits = secure, limits
        self._left: Left = lambda: math.inf

    def exchange(self, request: Request, left: Left) -> Answer:
        """Send a request and return the answer, which may come before all of it is sent.

        `left` tells what is left for all of it, which may change meanwhile. After an error, and
        after an answer that says so, the connection is closed. Raises `NoAnswer`, and what `secure`
        and reading the body raise.
        """
        self._left, kept = left, self.sock is not None
        trouble = "" if kept else f"cannot connect to {self.host}: "
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(over,), name="deadline", daemon=True)
        self.timeout = self._limits.silence
        try:
            watch.start()
        except RuntimeError as error:  # no room for a thread, and without it no end
            self.close()
            raise NoAnswer(str(error)) from error
        answer = None
        try:
            if not kept:
                self.connect()
                trouble = ""
            answer = self._converse(request)
        except (OSError, HTTPException, HTTPError) as error:
            late = left() <= 0
            if trouble and isinstance(error, socket.gaierror):
                trouble = f"cannot resolve {self.host}: "
            ended = isinstance(error, ConnectionError | ssl.SSLEOFError | ssl.SSLZeroReturnError)
            cut = late and not isinstance(error, TimeoutError)
            plain = "timed out" if cut else _plain(error)
            raise NoAnswer(trouble + plain, stale=kept and ended and not late) from error
        finally:
            over.set()
            watch.join()
            if answer is None:
                self.close()
        return answer

    def connect(self) -> None:
        """Connect and shake hands. Raises OSError, and what `secure` raises."""
        self.sock = self._secure(self._dial)

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(min(max(self._left(), 0.05), _SLICE_SECONDS)):
            sock = self.sock
            if self._left() <= 0 and sock is not None:
                with suppress(OSError):
                    # Not TLS's own shutdown: that is not for a second thread.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def _converse(self, request: Request) -> Answer:
        method, target, headers, body = request
        whole = True
        try:
            self.request(method, target, body, headers, preload_content=False, decode_content=False)
        except OSError as error:
            whole = False  # the answer may have come all the same
            if isinstance(error, TimeoutError):
                self.timeout = _LAST_LOOK_SECONDS
        response = self.getresponse()
        text = b""
        try:
            text = response.read(MAX_BODY)
        except (OSError, HTTPException, HTTPError, ValueError):  # ValueError: a negative chunk
            whole = False  # the status is what counts
        if not whole or len(text) == MAX_BODY:
            self.close()
        response.close()
        fields = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, fields, text)

    def _dial(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        until, left = time.monotonic() + self._limits.connect, self._left
        tcp = dial(
            self._dns_host, self.port, lambda: min(until - time.monotonic(), left()), _NAGLE_OFF
        )
        outlive_silence(tcp)
        tcp.settimeout(self._limits.handshake)
        # Where it can be shut.
        self.sock = sock = context.wrap_socket(
            tcp, server_hostname=self.host, do_handshake_on_connect=False
        )
        try:
            sock.do_handshake()
        except OSError:
            sock.close()
            raise
        return sock


def _plain(error: BaseException) -> str:
    """Return an error as one line, without the additions of Python and OpenSSL."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return f"TLS: {error.reason.replace('_', ' ').lower()}"
    text = str(getattr(error, "strerror", None) or error) or type(error).__name__
    if text.endswith("operation timed out"):
        return "timed out"
    return " ".join(text.split(" (_ssl.c")[0].split())
