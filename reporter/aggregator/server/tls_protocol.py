"""TLS on an accepted connection: small buffers, and a handshake whose failure both sides see.

asyncio gives every TLS connection a receive buffer of 256 KiB for itself. Received data is copied
out of it before the call returns, so all connections of a loop can share one.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from typing import Final

RECEIVE: Final = 48 * 1024  # of a body at once; every upload holds several times as much
_RECORD: Final = 16 * 1024
_NARROW: Final = 4 * 1024  # taken at once from a peer whose body is not being read
_HELD: Final = 4 * 1024  # received and not yet decrypted, beyond which the socket is left alone
_CLOSE_NOTIFY: Final = 5.0  # seconds for a peer to confirm the end of TLS

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

    `shaken` is done with the handshake, or has what was wrong with it once the peer is gone.
    """

    max_size = _RECORD  # one read of OpenSSL never returns more than a record

    def __init__(
        self,
        app: asyncio.BaseProtocol,
        context: ssl.SSLContext,
        buffer: bytearray,
        *,
        handshake: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.shaken: asyncio.Future[BaseException | None] = loop.create_future()
        super().__init__(
            loop,
            app,
            context,
            None,  # type: ignore[arg-type]  # typeshed: nobody has to wait
            server_side=True,
            ssl_handshake_timeout=handshake,  # type: ignore[arg-type]  # typeshed: int only
            ssl_shutdown_timeout=_CLOSE_NOTIFY,
        )
        self._ssl_buffer = buffer
        self._ssl_buffer_view = memoryview(buffer)[:_NARROW]
        self._set_read_buffer_limits(high=_HELD)  # type: ignore[attr-defined]  # typeshed

    def widen(self) -> None:
        """Take more at once from now on: a long body comes."""
        self._ssl_buffer_view = memoryview(self._ssl_buffer)

    def _on_handshake_complete(self, handshake_exc: BaseException | None) -> None:
        """Let the peer read why it is refused: asyncio closes without having sent the alert."""
        if handshake_exc is not None:
            self._process_outgoing()  # type: ignore[attr-defined]  # typeshed
        super()._on_handshake_complete(handshake_exc)
        if handshake_exc is None:
            self._over(None)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Let go of OpenSSL's buffers.

        A connection is part of cycles that only the garbage collector ends, late: until then it
        would keep 100 KiB.
        """
        super().connection_lost(exc)
        self._sslobj = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._extra.clear()
        self._over(exc)

    def _over(self, error: BaseException | None) -> None:
        if error is not None:
            error.__traceback__ = None  # one more such cycle
        if not self.shaken.done():
            self.shaken.set_result(error)


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
