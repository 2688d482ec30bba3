"""Connections that end when they should: within their bounds, or when another thread says so.

urllib3's connections with these differences: a timeout bounds all that is read, a socket can be cut
off from its first moment, a request on its way ends soon after the process was asked to end, and
every connection reads the CA anew. No `kubernetes` here.
"""

import errno
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from urllib3 import HTTPSConnectionPool
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context, resolve_cert_reqs

from reporter.common.dialing import SLICE_SECONDS, dial

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")

CONNECT_SECONDS = 3.0
"""Longest time for name, TCP connect and TLS handshake together."""

HASTE_SECONDS = 0.4
"""How long a request may still take that was on its way when the process was asked to end.

A healthy server answers in a tenth of it, and of the 2 s that the kubelet may give us there must be
enough left for a new connection, a read and a write.
"""


class Haste:
    """Until when the request of the calling thread may go on, in monotonic seconds."""

    def __init__(self) -> None:
        self.stopped: Callable[[], float | None] = lambda: None  # None before it
        self.writes_end: Callable[[], float] = lambda: 0.0  # after the stop; never less than haste
        self._request = threading.local()

    def begin(self, *, write: bool) -> None:
        """Say that the thread begins a request."""
        self._request.began, self._request.write = time.monotonic(), write

    def until(self) -> float:
        """Return the time; requests that began after the stop have their own bounds."""
        stopped = self.stopped()
        if stopped is None or self._request.began > stopped:
            return float("inf")
        end = stopped + HASTE_SECONDS
        return max(end, self.writes_end()) if self._request.write else end


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


@dataclass(frozen=True)
class Bounds:
    """What ends the connections of a pool: those of many requests have `haste`, a stream's not."""

    relax_x509_strict: bool
    haste: Haste | None = None
    cutoff: Cutoff | None = None


def _socket_class(haste: Haste | None) -> type[ssl.SSLSocket]:
    """Return sockets whose timeout bounds everything that is read since it was set, not each read.

    urllib3 sets it once a request: a peer that sends one byte at a time cannot stretch the request.
    The handshake is bounded too, in which nobody but the class can be told of `haste`.
    """

    class BoundedSocket(ssl.SSLSocket):
        _until: float | None = None

        def settimeout(self, value: float | None) -> None:
            self._until = None if value is None else time.monotonic() + value
            super().settimeout(value)

        def do_handshake(self, block: bool = False) -> None:
            self._in_time(partial(super().do_handshake, block))

        def recv_into(
            self, buffer: "WriteableBuffer", nbytes: int | None = None, flags: int = 0
        ) -> int:
            return self._in_time(partial(super().recv_into, buffer, nbytes, flags))

        def _in_time(self, wait: Callable[[], T]) -> T:
            """Wait in slices. Raises TimeoutError when there is no time left."""
            until = self._until
            while until is not None:
                left = until - time.monotonic()
                if haste is not None:
                    left = min(left, haste.until() - time.monotonic())
                if left <= 0:
                    raise TimeoutError("timed out")
                super().settimeout(left if haste is None else min(left, SLICE_SECONDS))
                try:
                    return wait()
                except TimeoutError:
                    continue
                finally:
                    self._until = until  # a handshake sets the timeout that it found
            return wait()

        def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
            try:
                return super().recv(buflen, flags)
            except OSError as error:
                # Before the handshake the standard library asks a peer that has gone for its last
                # words, and forgets this socket, still open, when the answer is a reset.
                if error.errno not in {errno.ENOTCONN, errno.EINVAL}:
                    self.close()
                raise

    return BoundedSocket


_Unhurried = _socket_class(None)  # of every stream: a class costs a kilobyte


class _Connection(HTTPSConnection):
    bounds: Bounds
    socket_class: type[ssl.SSLSocket]

    def connect(self) -> None:
        # A context for each connection: a rotated ca.crt counts from the next connection on, and
        # the one before is no longer trusted.
        context = create_urllib3_context(cert_reqs=resolve_cert_reqs(self.cert_reqs))
        if not (self.ca_certs or self.ca_cert_dir or self.ca_cert_data):
            # As kubectl does for a cluster without a CA of its own.
            context.load_default_certs()
        context.sslsocket_class = self.socket_class
        if self.bounds.relax_x509_strict:
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self.ssl_context = context
        super().connect()

    def _new_conn(self) -> socket.socket:
        """Connect as urllib3 does, but within our bounds and in the reach of the cutoff."""
        haste, cutoff = self.bounds.haste, self.bounds.cutoff
        patience = self.timeout if isinstance(self.timeout, int | float) else CONNECT_SECONDS
        until = time.monotonic() + min(patience, CONNECT_SECONDS)

        def left() -> float:
            if cutoff is not None and cutoff.done:
                return 0.0
            end = until if haste is None else min(until, haste.until())
            return end - time.monotonic()

        try:
            sock = dial(self._dns_host, self.port, left, self.socket_options or ())
        except socket.gaierror as error:
            raise NewConnectionError(self, f"cannot resolve {self.host}: {error}") from error
        except OSError as error:
            raise NewConnectionError(self, f"cannot connect to {self.host}: {error}") from error
        try:
            if cutoff is not None:
                cutoff.hold(sock)
            # The rest of the time is the handshake's.
            sock.settimeout(max(left(), 0.001))
        except OSError as error:
            sock.close()
            raise NewConnectionError(self, f"cannot connect to {self.host}: {error}") from error
        return sock


class Pool(HTTPSConnectionPool):
    """The connections to one server: of a single stream with a cutoff, else of many requests."""

    ConnectionCls = _Connection

    def __init__(self, bounds: Bounds, *args: Any, **kw: Any):
        super().__init__(*args, **kw)
        self._bounds = bounds
        self._socket_class = _socket_class(bounds.haste) if bounds.haste else _Unhurried

    def dial(self, timeout: float) -> Any:
        """Return a TLS socket to the server, for another protocol than HTTP. Raises as urllib3."""
        connection = self._new_conn()
        connection.timeout = timeout
        connection.connect()
        return connection.sock

    def _new_conn(self) -> Any:
        connection = super()._new_conn()
        assert isinstance(connection, _Connection)
        connection.bounds, connection.socket_class = self._bounds, self._socket_class
        return connection
