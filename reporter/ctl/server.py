"""The status listener as a client sees it: one connection, GET, and what can go wrong.

The standard library's HTTP: importing more would cost the time that people wait for a first line.
What the paths mean is not known here.
"""

import http.client
import os
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from reporter import __version__

CONNECT: Final = 5.0  # seconds for TCP and TLS
ANSWER: Final = 10.0  # seconds for an answer that is kept in memory
LARGEST: Final = 64 * 1024 * 1024
_CHUNK = 256 * 1024


class NoAnswer(Exception):
    """The server could not be asked, or its answer did not come whole."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where it is and what to show and to trust there.

    `ca` is the CA's certificates in PEM, empty for those of the system. `certificate` and `key` are
    files. Nothing but `url` is used for plain HTTP.
    """

    url: str
    ca: str = ""
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; `tag` is its ETag."""

    status: int
    body: bytes
    tag: str


class StatusServer:
    """One server. ValueError for an address that is none, or certificates that cannot be used."""

    def __init__(self, address: Address, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(address.url if "//" in address.url else f"https://{address.url}")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"not a URL like https://HOST:PORT: {address.url!r}")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host, self._clock = parts.hostname, clock
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/").removesuffix("/status")
        self._context = _context(address) if parts.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, *, tag: str = "", timeout: float = ANSWER) -> Answer:
        """Return the answer, at most 64 MiB; `tag` makes it 304 while nothing changed.

        `timeout` in seconds is for all of it. Raises NoAnswer.
        """
        end = self._clock() + timeout
        headers = {"If-None-Match": tag} if tag else {}
        with self.open(path, headers, timeout=timeout) as response:
            body = b"".join(self._pieces(response, end))
            return Answer(response.status, body, response.headers.get("ETag", ""))

    @contextmanager
    def open(
        self, path: str, headers: dict[str, str] | None = None, *, timeout: float = ANSWER
    ) -> Iterator[http.client.HTTPResponse]:
        """Give the answer, its body unread. `timeout` is for the head and for each read.

        Raises NoAnswer, also for what goes wrong while it is read.
        """
        try:
            with self._asked(path, headers or {}, timeout) as response:
                yield response
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise NoAnswer(_said(error, self.url)) from error

    @contextmanager
    def _asked(
        self, path: str, headers: dict[str, str], timeout: float
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"User-Agent": f"status-ctl/{__version__}", "Connection": "keep-alive", **headers}
        fresh = self._connection is None
        connection = self._connection or self._connect(timeout)
        self._connection = connection
        try:
            response = self._send(connection, path, headers, timeout)
        except (ConnectionError, http.client.BadStatusLine):
            # An idle connection may have ended since; that says nothing about the server.
            self.close()
            if fresh:
                raise
            self._connection = connection = self._connect(timeout)
            response = self._send(connection, path, headers, timeout)
        with response:
            yield response
            if not response.isclosed():
                self.close()

    def _send(
        self,
        connection: http.client.HTTPConnection,
        path: str,
        headers: dict[str, str],
        timeout: float,
    ) -> http.client.HTTPResponse:
        if connection.sock is None:
            connection.connect()
        connection.sock.settimeout(timeout)
        connection.request("GET", self._prefix + path, headers=headers)
        return connection.getresponse()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        patience = min(CONNECT, timeout)
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=patience)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=patience, context=self._context
        )

    def _pieces(self, response: http.client.HTTPResponse, end: float) -> Iterator[bytes]:
        """Read it within its time: a server that sends a byte now and then must not hold us."""
        left = LARGEST
        while piece := response.read1(_CHUNK):
            left -= len(piece)
            if left < 0:
                raise ValueError(f"the answer is larger than {LARGEST} bytes")
            if self._clock() > end:
                raise TimeoutError("timed out")
            yield piece
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)

    def close(self) -> None:
        """End the connection; the next request makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@contextmanager
def as_file(pem: str) -> Iterator[str]:
    """Give the name of a file with this text, for a library that takes only names.

    In memory where the system can do that: a private key has no business on a disk.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "w") as file:
            file.write(pem)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
        return
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as named:
        named.write(pem)
        named.flush()
        yield named.name


def _context(address: Address) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=address.ca or None)
        if address.certificate:
            context.load_cert_chain(
                Path(address.certificate), Path(address.key) if address.key else None
            )
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        raise ValueError(f"the certificates cannot be used: {reason}") from None
    return context


def _said(error: Exception, url: str) -> str:
    """Say in words what is between us and the server."""
    match error:
        case ssl.SSLCertVerificationError():
            why = f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError() if "CERT" in (error.reason or ""):
            why = f"it refused our certificate ({(error.reason or '').lower()})"
        case ssl.SSLError():
            why = f"no TLS with it: {(error.reason or str(error)).lower()}"
        case TimeoutError():
            why = "no answer in time"
        case socket.gaierror():
            why = f"its name cannot be resolved: {error.strerror}"
        case OSError():
            why = error.strerror or str(error)
        case http.client.IncompleteRead():
            why = "the answer was cut off"
        case http.client.HTTPException():
            why = f"no HTTP from it ({type(error).__name__})"
        case _:
            why = str(error)
    return f"{url}: {why}"
