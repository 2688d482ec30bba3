"""A TLS socket that keeps its own time and notices an answer that comes while a body is being sent.

No HTTP in here.
"""

import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from errno import EINVAL, ENOTCONN
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_RECORD = 16 * 1024
_SLICE_SECONDS = 0.5
"""How often a wait looks whether its end has moved: a signal shortens what is left."""
_INTERIM = b"HTTP/1.1 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Seconds that the parts of a try may take.

    `connect` and `handshake` as a whole; `send` without a byte being taken; `answer` from the last
    byte sent to the last byte read: an aggregator with many uploads leaves ours unread for up to
    half an hour, and then answers that it was busy. TCP detects a peer that is gone meanwhile.
    `progress` and `heartbeat` are for one update or heartbeat with all its parts. A connection is
    kept `idle` so long while no heartbeat was answered: aggregators of Sonobuoy keep it longer.
    """

    connect: float = 5.0
    handshake: float = 10.0
    send: float = 1860.0
    answer: float = 1860.0
    progress: float = 10.0
    heartbeat: float = 5.0
    idle: float = 8.0


class Socket(ssl.SSLSocket):
    """A socket made by a context whose `sslsocket_class` it is; `shake_hands` comes first."""

    _limits: TimeLimits
    _left: Callable[[], float]
    _answer_until = 0.0
    _early = b""
    received = 0

    def shake_hands(self, limits: TimeLimits, left: Callable[[], float]) -> None:
        """Do the TLS handshake; `left` gives the seconds left for all there is to do."""
        self._limits, self._left = limits, left
        super().settimeout(0)
        until = time.monotonic() + limits.handshake
        while True:
            try:
                self.do_handshake()
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, until)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, until)
            else:
                return

    def expect(self, left: Callable[[], float]) -> None:
        """Begin a new exchange."""
        self._left, self.received = left, 0
        self._answer_until = time.monotonic() + self._limits.answer

    def settimeout(self, value: float | None) -> None:
        """Ignore urllib3's one timeout for everything."""

    def sendall(self, data: "ReadableBuffer", flags: int = 0) -> None:
        """Send all of it. Raises BrokenPipeError when the answer is there already."""
        view = memoryview(data).cast("B")
        if _ready(self, select.POLLIN, 0) and self._answered():
            raise BrokenPipeError("answered early")
        silent_until = time.monotonic() + self._limits.send
        while view:
            try:
                sent = super().send(view[:_RECORD])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                events = self._wait(select.POLLIN | select.POLLOUT, silent_until)
                if events & ~select.POLLOUT and self._answered():
                    raise BrokenPipeError("answered early") from None
            else:
                view = view[sent:]
                silent_until = time.monotonic() + self._limits.send
        self._answer_until = time.monotonic() + self._limits.answer

    def recv_into(
        self, buffer: "WriteableBuffer", nbytes: int | None = None, flags: int = 0
    ) -> int:
        """Read what there is. Raises TimeoutError when the answer has taken too long."""
        view = memoryview(buffer).cast("B")[: nbytes or None]
        if self._early:
            taken = min(len(view), len(self._early))
            view[:taken], self._early = self._early[:taken], self._early[taken:]
            return taken
        while time.monotonic() < self._answer_until:
            try:
                taken = super().recv_into(view)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, self._answer_until)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, self._answer_until)
            else:
                self.received += taken
                return taken
        raise TimeoutError("timed out")

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Read without waiting."""
        try:
            return super().recv(buflen, flags)
        except OSError as error:
            # Before the handshake the standard library asks a peer that has gone for its last
            # words, and forgets this socket, still open, when the answer is a reset.
            if getattr(self, "_sslobj", None) is None and error.errno not in {ENOTCONN, EINVAL}:
                self.close()
            raise

    def _answered(self) -> bool:
        """Return whether the peer has answered or hung up. The bytes that were read are kept."""
        try:
            piece = self.recv(4096)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False  # a session ticket, or a part of a record
        self._early += piece
        self.received += len(piece)
        return not piece or not self._early.startswith(_INTERIM)

    def _wait(self, events: int, until: float) -> int:
        while True:
            left = min(until - time.monotonic(), self._left())
            if left <= 0:
                raise TimeoutError("timed out")
            if ready := _ready(self, events, min(left, _SLICE_SECONDS)):
                return ready


def _ready(sock: socket.socket, events: int, seconds: float) -> int:
    poller = select.poll()  # unlike select() it takes descriptors beyond 1,023
    poller.register(sock, events)
    found = poller.poll(seconds * 1000)
    return found[0][1] if found else 0
