"""Connections that end when they should: within their bounds, or when another thread says so.

urllib3's connections with three differences: a timeout bounds all that is read, a socket can be cut
off from its first moment, and every connection reads the CA anew. No `kubernetes` here.
"""

import errno
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from urllib3 import HTTPSConnectionPool
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CONNECT_SECONDS = 3.0
"""Longest time for TCP connect and TLS handshake together."""


class Cutoff:
    """Ends from any thread what a connection waits for: connect, handshake, answer or stream.

    It keeps its own duplicate of the descriptor: the connection's may be closed and its number
    given to another file between the decision to cut and the cut.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: socket.socket | None = None
        self.done = False

    def hold(self, sock: socket.socket) -> None:
        """Watch over this socket from now on. Raises OSError when the cut has already happened."""
        with self._lock:
            self._drop()
            if self.done:
                raise OSError("closed")
            self._held = sock.dup()

    def cut(self) -> None:
        """Wake the thread that waits, now and for good."""
        with self._lock:
            self.done = True
            if self._held is not None:
                with suppress(OSError):
                    self._held.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Give the duplicate back."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


class _Socket(ssl.SSLSocket):
    """Its timeout bounds everything that is read since it was set, not each read.

    urllib3 sets it once a request: a peer that sends one byte at a time cannot stretch the request.
    """

    _until: float | None = None

    def settimeout(self, value: float | None) -> None:
        self._until = None if value is None else time.monotonic() + value
        super().settimeout(value)

    def recv_into(
        self, buffer: "WriteableBuffer", nbytes: int | None = None, flags: int = 0
    ) -> int:
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            super().settimeout(left)
        return super().recv_into(buffer, nbytes, flags)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(buflen, flags)
        except OSError as error:
            # Before the handshake the standard library asks a peer that has gone for its last
            # words, and forgets this socket, still open, when the answer is a reset.
            if error.errno not in {errno.ENOTCONN, errno.EINVAL}:
                self.close()
            raise


class _Connection(HTTPSConnection):
    relax_x509_strict = False
    cutoff: Cutoff | None = None

    def connect(self) -> None:
        # A context for each connection: a rotated ca.crt counts from the next connection on, and
        # the one before is no longer trusted.
        context = create_urllib3_context()
        context.sslsocket_class = _Socket
        if self.relax_x509_strict:
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self.ssl_context = context
        super().connect()

    def _new_conn(self) -> socket.socket:
        """Connect as urllib3 does, but with the socket in `cutoff` from its first moment."""
        patience = self.timeout if isinstance(self.timeout, int | float) else CONNECT_SECONDS
        until = time.monotonic() + min(patience, CONNECT_SECONDS)
        failure: OSError | None = None
        try:
            addresses = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise NewConnectionError(self, f"cannot resolve {self.host}: {error}") from error
        for family, kind, protocol, _, address in addresses:
            sock = socket.socket(family, kind, protocol)
            try:
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                if self.cutoff is not None:
                    self.cutoff.hold(sock)
                sock.settimeout(max(until - time.monotonic(), 0.001))
                sock.connect(address)
                # What is left over is the handshake's.
                sock.settimeout(max(until - time.monotonic(), 0.001))
            except OSError as error:
                sock.close()
                failure = error
            else:
                return sock
        raise NewConnectionError(self, f"cannot connect to {self.host}: {failure}") from failure


class Pool(HTTPSConnectionPool):
    """The connections to one server. `cutoff` is for a pool that serves a single request."""

    ConnectionCls = _Connection

    def __init__(self, relax_x509_strict: bool, cutoff: Cutoff | None, *args: Any, **kw: Any):
        super().__init__(*args, **kw)
        self._relax_x509_strict = relax_x509_strict
        self._cutoff = cutoff

    def _new_conn(self) -> Any:
        connection = super()._new_conn()
        if isinstance(connection, _Connection):
            connection.relax_x509_strict = self._relax_x509_strict
            connection.cutoff = self._cutoff
        return connection
