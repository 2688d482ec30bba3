"""TLS on an accepted connection: small buffers, and a handshake whose failure is seen.

asyncio gives every TLS connection a receive buffer of 256 KiB for itself. Received data is copied
out of it before the call returns, so all connections of a loop can share one.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Final

RECEIVE: Final = 48 * 1024  # of a body at once; every upload holds several times as much
_RECORD: Final = 16 * 1024
_NARROW: Final = 4 * 1024  # taken at once from a peer whose body is not being read
_HELD: Final = 4 * 1024  # received and not yet decrypted, beyond which the socket is left alone

_CLOSED = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
_PROTOCOL = (
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "NO_SHARED_CIPHER",
    "UNSUPPORTED_PROTOCOL",
    "VERSION_TOO_LOW",
    "WRONG_VERSION_NUMBER",
)


class TlsProtocol(SSLProtocol):
    """The server's side of one TLS connection; `app` gets the plain bytes.

    `failed(reason, peer, text)` is called when the handshake does not come about, `shaken(serial)`
    with the number of the peer's certificate when it has, `lost(self)` when the connection is gone,
    in either case.
    """

    max_size = _RECORD  # one read of OpenSSL never returns more than a record

    def __init__(
        self,
        app: asyncio.BaseProtocol,
        context: ssl.SSLContext,
        buffer: bytearray,
        *,
        handshake: float,
        shutdown: float,
        failed: Callable[[str, str, str], None],
        shaken: Callable[[str], None],
        lost: Callable[["TlsProtocol"], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        super().__init__(
            loop,
            app,
            context,
            waiter,
            server_side=True,
            ssl_handshake_timeout=handshake,  # type: ignore[arg-type]  # typeshed: int only
            ssl_shutdown_timeout=shutdown,
        )
        self._ssl_buffer = buffer
        self._ssl_buffer_view = memoryview(buffer)[:_NARROW]
        self._set_read_buffer_limits(high=_HELD)  # type: ignore[attr-defined]  # typeshed
        self._peer = ""
        self._failed, self._good, self._lost = failed, shaken, lost
        waiter.add_done_callback(self._shaken)

    def widen(self) -> None:
        """Take more at once from now on: a long body comes."""
        self._ssl_buffer_view = memoryview(self._ssl_buffer)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake."""
        self._peer = peer_of(transport)
        super().connection_made(transport)

    def _on_handshake_complete(self, handshake_exc: BaseException | None) -> None:
        """Let the peer read why it is refused: asyncio closes without having sent the alert."""
        if handshake_exc is not None:
            self._process_outgoing()  # type: ignore[attr-defined]  # typeshed
        super()._on_handshake_complete(handshake_exc)
        if handshake_exc is None and self._sslobj is not None:
            certificate = self._extra.get("peercert") or {}
            self._good(str(certificate.get("serialNumber", "")))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell both sides, and let go of OpenSSL's buffers.

        A connection is part of cycles that only the garbage collector ends, late: until then it
        would keep 100 KiB.
        """
        super().connection_lost(exc)
        self._sslobj = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._extra.clear()
        self._lost(self)

    def _shaken(self, waiter: "asyncio.Future[None]") -> None:
        error = waiter.exception() if not waiter.cancelled() else None
        if error is not None:
            self._failed(reason_of(error), self._peer, str(error) or type(error).__name__)


def peer_of(transport: asyncio.BaseTransport) -> str:
    """Return the peer's address without its port; empty when it is gone already."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else ""


def reason_of(error: BaseException) -> str:
    """Return the word for a failed handshake: certificate, timeout, protocol, closed or other."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate"
    if isinstance(error, ConnectionAbortedError):
        return "timeout"  # what asyncio says when its clock ran out
    if isinstance(error, _CLOSED):
        return "closed"
    name = getattr(error, "reason", None) or ""
    if name in _PROTOCOL:
        return "protocol"
    return "certificate" if "CERTIFICATE" in name or "UNKNOWN_CA" in name else "other"
