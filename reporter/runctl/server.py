"""The status listener as a client sees it: one connection, GET and POST, what can go wrong; a run.

The standard library's HTTP: importing more would cost the time that people wait for a first line.
"""

import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import SplitResult, urlsplit

from reporter import __version__
from reporter.common.objects import text
from reporter.common.private_file import as_file
from reporter.common.text import clean, is_host
from reporter.run.status import API_VERSION
from reporter.run.view import Look, ReadOutcome, read_document

_CONNECT: Final = 5.0  # seconds for TCP and TLS
ANSWER: Final = 10.0  # seconds for an answer that is kept in memory
LARGEST: Final = 64 * 1024 * 1024
PAUSE: Final = 1.0  # seconds between two looks, or four times as long as one took
AGES: Final = 10.0  # seconds after which a document is asked for anew, changed or not
IDLE: Final = 5.0
"""Seconds after a request in which its connection may be used again.

The aggregator ends one 10 s after the last byte that it has sent, which may be on its way for long.
"""
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where it is and what to show and to trust there.

    `ca` are certificates in PEM; without any, also in an empty text, those of the system count.
    `certificate` is PEM too, and `key` unless it is in it. `server_name` is what the server's
    certificate says where that is not the URL's host. Without `verify` any certificate is taken.
    Plain HTTP uses nothing but `url`.
    """

    url: str
    ca: str | None = None
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    server_name: str = ""
    verify: bool = True


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
        self, address: Address, dial: Callable[[float], socket.socket] | None = None
    ) -> None:
        parts = _parts(address.url)
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        place = self._host, self._port
        self._dial = dial or (lambda patience: socket.create_connection(place, patience))
        self._prefix = parts.path.rstrip("/").removesuffix("/status")
        self._context = _tls_context(address) if parts.scheme == "https" else None
        self._server_name = address.server_name or self._host
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._good_until = 0.0

    def get(self, path: str, *, tag: str = "", timeout: float = ANSWER) -> StatusAnswer:
        """Return the answer, at most 64 MiB also when unpacked; `tag` makes it 304 while unchanged.

        `timeout` in seconds is for all of it. Raises RequestFailed.
        """
        headers = {"Accept-Encoding": "gzip"} | ({"If-None-Match": tag} if tag else {})
        return self._answer(path, headers, None, timeout)

    def post(self, path: str, body: bytes) -> StatusAnswer:
        """Send it. Raises RequestFailed."""
        return self._answer(path, {"Content-Type": "application/json"}, body, ANSWER)

    def _answer(
        self, path: str, headers: dict[str, str], sent: bytes | None, timeout: float
    ) -> StatusAnswer:
        end = time.monotonic() + timeout
        with self.open(path, headers, sent, timeout=timeout) as response:
            with self._deadline(end):
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

        With a `body` it is a POST. Raises RequestFailed, CertificateRefused among them, also for
        what goes wrong while it is read.
        """
        try:
            with self._send(path, headers or {}, body, timeout) as response:
                yield response
                # Before Python 3.12 a body that was read whole is not closed by that.
                if response.length != 0 and not response.isclosed():
                    self.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            kind = CertificateRefused if _is_refusal(error) else RequestFailed
            raise kind(_said(error, self.url)) from error

    def _send(
        self, path: str, headers: dict[str, str], body: bytes | None, timeout: float
    ) -> http.client.HTTPResponse:
        headers = {"User-Agent": f"status-ctl/{__version__}", "Connection": "keep-alive", **headers}
        now = time.monotonic()
        if now > self._good_until:
            self.close()
        self._good_until = now + IDLE
        connection, end = self._connection, now + timeout
        if connection is None or connection.sock is None:  # the server has said that it ends it
            connection = self._connection = self._connect(min(_CONNECT, timeout))
        self._socket = connection.sock
        self._socket.settimeout(timeout)
        with self._deadline(end):
            try:
                connection.request(
                    "GET" if body is None else "POST", self._prefix + path, body, headers
                )
            except OSError:
                # In TLS 1.3 a certificate is refused only now: why may lie there, unread.
                self._socket.recv(1)
                raise
            return connection.getresponse()

    def _connect(self, patience: float) -> http.client.HTTPConnection:
        connected = self._dial(patience)
        made = http.client.HTTPConnection(self._host, self._port)
        made.auto_open = 0
        if self._context is not None:
            connected.settimeout(patience)
            connected = self._context.wrap_socket(connected, server_hostname=self._server_name)
            made.default_port = 443
        made.sock = connected
        return made

    @contextmanager
    def _deadline(self, end: float) -> Iterator[None]:
        """Be done with it by then: a server that sends a byte now and then must not hold us."""
        over, used = threading.Event(), self._socket

        def cut() -> None:
            over.set()
            with suppress(OSError):
                # Not TLS's own shutdown: that is not for a second thread.
                socket.socket.shutdown(cast(socket.socket, used), socket.SHUT_RDWR)

        timer = threading.Timer(max(end - time.monotonic(), 0.0), cut)
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


class ByHttp:
    """The status listener. `name` is what people know it by, its address unless given."""

    def __init__(
        self,
        server: StatusServer,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server, self.name, self._clock = server, name or server.url, clock
        self._tag, self._last, self._until = "", Look(ReadOutcome.UNREACHABLE), 0.0
        self._path, self.pause = "", PAUSE

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask `/status`; while nothing changed, the answer is the last document."""
        path, began = "/status" if entries else "/status?summary=true", self._clock()
        # Ages of heartbeats are no change to the server, but they grow.
        tag = self._tag if path == self._path and began < self._until else ""
        try:
            answer = self.server.get(path, tag=tag, timeout=timeout)
        except RequestFailed as error:
            refused = isinstance(error, CertificateRefused)
            outcome = ReadOutcome.FORBIDDEN if refused else ReadOutcome.UNREACHABLE
            return Look(outcome, detail=str(error))
        match answer.status:
            case 200:
                # Thousands of entries take their time, here and there.
                self.pause = min(max(PAUSE, 4 * (self._clock() - began)), AGES)
                self._path = path
                return self._read(answer)
            case 304 if tag:
                return self._last
            case 401 | 403:
                return self._without(ReadOutcome.FORBIDDEN, refusal(answer.body))
            case 404:
                return self._without(ReadOutcome.NOT_FOUND, "does not serve a run status")
        return self._without(ReadOutcome.UNREACHABLE, f"answered {answer.status}")

    def _without(self, outcome: ReadOutcome, why: str) -> Look:
        return Look(outcome, detail=f"{self.name}: {why}")

    def _read(self, answer: StatusAnswer) -> Look:
        document = read_document(answer.body)
        if document is None:
            self._tag = ""
            return self._without(ReadOutcome.BAD_STATUS, "the response is not a run status")
        version = text(document, "api_version") or API_VERSION
        told = f"{self.name}: status version {version}, but this command supports {API_VERSION}"
        self._last = Look(ReadOutcome.OK, document, warning="" if version == API_VERSION else told)
        self._tag, self._until = answer.tag, self._clock() + AGES
        return self._last


def refusal(body: bytes) -> str:
    """Say why run data was refused, in the server's words where it has any."""
    words = body[:300].decode(errors="replace")
    return clean(words, 300, "it refused access to the run's status")


def _parts(url: str) -> SplitResult:
    """Return what a URL says. Raises ValueError."""
    whole = url.isprintable() and " " not in url
    with suppress(ValueError):
        parts = urlsplit(url if "//" in url else f"https://{url}")
        good = whole and parts.scheme in {"http", "https"} and is_host(parts.hostname or "")
        if good and parts.port != 0:  # which may be no number
            return parts
    raise ValueError(f"not a URL like https://HOST:PORT: {url!r}")


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
        case ssl.SSLError() if _is_refusal(error):
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


def _tls_context(address: Address) -> ssl.SSLContext:
    """Return what TLS needs there. ValueError for certificates that cannot be used, OSError."""
    try:
        context = ssl.create_default_context(cadata=address.ca or None)
        if not address.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if address.certificate is not None:
            key = address.certificate if address.key is None else address.key
            with as_file(address.certificate.encode()) as chain, as_file(key.encode()) as own:
                context.load_cert_chain(chain, own, password=_no_pass_phrase)
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        raise ValueError(f"the certificates cannot be used: {reason}") from None
    return context


def _no_pass_phrase() -> str:
    """Take the place of OpenSSL's question, which a script would wait for."""
    raise ValueError("the key is encrypted: use a key without a passphrase")


def _is_refusal(error: Exception) -> bool:
    """Return whether it is the server's alert about our certificate, or about there being none."""
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLCertVerificationError):
        return False
    return any(word in (error.reason or "") for word in ("CERT", "UNKNOWN_CA"))
