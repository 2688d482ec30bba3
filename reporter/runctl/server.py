"""The status listener as a client sees it: one connection, GET and POST, and what can go wrong.

The standard library's HTTP: importing more would cost the time that people wait for a first line.
The meaning of the paths is not known here.
"""

import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import SplitResult, urlsplit

from reporter import __version__
from reporter.common.host_name import is_host
from reporter.runctl.tls import Address, is_refusal, tls_context

CONNECT: Final = 5.0  # seconds for TCP and TLS
ANSWER: Final = 10.0  # seconds for an answer that is kept in memory
LARGEST: Final = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


class RequestFailed(Exception):
    """The server could not be asked, or its answer did not come whole."""


class CertificateRefused(RequestFailed):
    """The server does not accept our certificate; asking again changes nothing."""


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A whole answer; `tag` is its ETag."""

    status: int
    body: bytes
    tag: str


class StatusServer:
    """One server. ValueError for an address that is none, or certificates that cannot be used.

    `dial` connects in another way than by the address: it gets a timeout and raises OSError.
    """

    def __init__(
        self,
        address: Address,
        clock: Callable[[], float] = time.monotonic,
        dial: Callable[[float], socket.socket] | None = None,
    ) -> None:
        parts, self._host, port = _parts(address.url)
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._clock, self._dial = clock, dial
        self._port = port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/").removesuffix("/status")
        self._context = tls_context(address) if parts.scheme == "https" else None
        self._server_name = address.server_name or self._host
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None

    def get(self, path: str, *, tag: str = "", timeout: float = ANSWER) -> StatusAnswer:
        """Return the answer, at most 64 MiB also when unpacked; `tag` makes it 304 while unchanged.

        `timeout` in seconds is for all of it. Raises RequestFailed.
        """
        headers = {"Accept-Encoding": "gzip"} | ({"If-None-Match": tag} if tag else {})
        return self._answer(path, headers, None, timeout)

    def post(self, path: str, body: bytes) -> StatusAnswer:
        """Send it; nothing must happen twice if it comes twice. Raises RequestFailed."""
        return self._answer(path, {"Content-Type": "application/json"}, body, ANSWER)

    def _answer(
        self, path: str, headers: dict[str, str], sent: bytes | None, timeout: float
    ) -> StatusAnswer:
        end = self._clock() + timeout
        with self.open(path, headers, sent, timeout=timeout) as response:
            with self._within(end):
                body = b"".join(_pieces(response))
            if response.headers.get("Content-Encoding", "") == "gzip":
                body = _unpacked(body)
            return StatusAnswer(response.status, body, response.headers.get("ETag", ""))

    @contextmanager
    def open(
        self,
        path: str,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        *,
        timeout: float = ANSWER,
    ) -> Iterator[http.client.HTTPResponse]:
        """Give the answer, its body unread; `timeout` is for the head and for each read.

        With a `body` it is a POST.

        Raises RequestFailed, CertificateRefused among them, also for what goes wrong while
        it is read.
        """
        try:
            with self._asked(path, headers or {}, body, timeout) as response:
                yield response
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            kind = CertificateRefused if is_refusal(error) else RequestFailed
            raise kind(_said(error, self.url)) from error

    @contextmanager
    def _asked(
        self, path: str, headers: dict[str, str], body: bytes | None, timeout: float
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"User-Agent": f"status-ctl/{__version__}", "Connection": "keep-alive", **headers}
        end = self._clock() + timeout
        fresh = self._connection is None
        connection = self._connection or self._connect(timeout)
        self._connection = connection
        try:
            response = self._send(connection, path, headers, body, timeout=timeout, end=end)
        except (ConnectionError, http.client.BadStatusLine, *_ENDED):
            # An idle connection may have ended since; that says nothing about the server.
            self.close()
            if fresh:
                raise
            self._connection = connection = self._connect(timeout)
            response = self._send(connection, path, headers, body, timeout=timeout, end=end)
        with response:
            yield response
            if not response.isclosed():
                self.close()

    def _send(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        *,
        timeout: float,
        end: float,
    ) -> http.client.HTTPResponse:
        if connection.sock is None:
            connection.connect()
        self._socket = connection.sock
        self._socket.settimeout(timeout)
        with self._within(end):
            try:
                method = "GET" if body is None else "POST"
                connection.request(method, self._prefix + path, body, headers)
            except OSError:
                # In TLS 1.3 a certificate is refused only now: why may lie there, unread.
                self._socket.recv(1)
                raise
            return connection.getresponse()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        patience = min(CONNECT, timeout)
        address = self._host, self._port
        dial = self._dial or (lambda seconds: socket.create_connection(address, seconds))
        made = _Dialled(
            *address, patience, dial=dial, context=self._context, server_name=self._server_name
        )
        if self._context is not None:
            made.default_port = 443
        return made

    @contextmanager
    def _within(self, end: float) -> Iterator[None]:
        """Be done with it by then: a server that sends a byte now and then must not hold us."""
        over, used = threading.Event(), self._socket

        def cut() -> None:
            over.set()
            with suppress(OSError):
                # Not TLS's own shutdown: that is not for a second thread.
                socket.socket.shutdown(cast(socket.socket, used), socket.SHUT_RDWR)

        timer = threading.Timer(max(end - self._clock(), 0.0), cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError):
            if not over.is_set():
                raise
        finally:
            timer.cancel()
        if over.is_set():
            raise TimeoutError("timed out")

    def close(self) -> None:
        """End the connection; the next request makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _parts(url: str) -> tuple[SplitResult, str, int | None]:
    """Return what a URL says, its host and its port, if it has one. Raises ValueError."""
    try:
        parts = urlsplit(url if "//" in url else f"https://{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    whole = url.isprintable() and " " not in url
    if not (whole and is_host(host) and parts.scheme in {"http", "https"}):
        raise ValueError(f"not a URL like https://HOST:PORT: {url!r}")
    return parts, host, port


class _Dialled(http.client.HTTPConnection):
    """A connection that `dial` makes, with TLS where there is a context."""

    def __init__(
        self,
        host: str,
        port: int,
        timeout: float,
        *,
        dial: Callable[[float], socket.socket],
        context: ssl.SSLContext | None,
        server_name: str,
    ) -> None:
        super().__init__(host, port, timeout=timeout)
        self._patience, self._dial = timeout, dial
        self._tls, self._server_name = context, server_name

    def connect(self) -> None:
        """Have it made."""
        self.sock = self._dial(self._patience)
        if self._tls is not None:
            self.sock.settimeout(self._patience)
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    left = LARGEST
    while piece := response.read1(_CHUNK):
        left -= len(piece)
        if left < 0:
            raise ValueError(f"the response is larger than {LARGEST} bytes")
        yield piece
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)


def _unpacked(body: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(body, LARGEST)
    except zlib.error as error:
        raise ValueError(f"the response is not gzip ({error})") from None
    if unpacking.unconsumed_tail:
        raise ValueError(f"the response is larger than {LARGEST} bytes")
    if not unpacking.eof:
        raise http.client.IncompleteRead(b"")
    return unpacked


def _said(error: Exception, url: str) -> str:
    """Say in words what is between us and the server."""
    match error:
        case ssl.SSLCertVerificationError():
            why = f"certificate not trusted: {error.verify_message}"
        case ssl.SSLError() if is_refusal(error):
            why = f"the server rejected our certificate ({(error.reason or '').lower()})"
        case ssl.SSLError():
            why = f"TLS handshake failed: {(error.reason or str(error)).lower()}"
        case TimeoutError():
            why = "timed out"
        case socket.gaierror():
            why = f"cannot resolve its host name: {error.strerror}"
        case OSError():
            why = error.strerror or str(error)
        case http.client.IncompleteRead():
            why = "the response was truncated"
        case http.client.HTTPException():
            why = f"not an HTTP response ({type(error).__name__})"
        case _:
            why = str(error)
    return f"{url}: {why}"
