"""A listening socket: takes connections within limits, gives them TLS, and ends them.

What is served on it is the handler's business.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from reporter.aggregator.http.limits import Limits
from reporter.aggregator.http.observer import Observer
from reporter.aggregator.http.server import Handler, Server
from reporter.aggregator.http.tls_protocol import RECEIVE, TlsProtocol

_AT_ONCE = 64  # taken per turn of the loop, so that a rush leaves time for others
_PAUSE = 0.5  # seconds before the next try when the system gives no more sockets
_CLOSE_NOTIFY = 5.0  # a peer's time to confirm the end of TLS
_GOING = 1.0  # the same, when we go


class Listener:
    """One address that is listened on: plain HTTP, or HTTPS with `ssl_context`.

    Above its number of connections it takes no more: they wait in the backlog.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        ssl_context: ssl.SSLContext | None,
        host: str,
        port: int,
        limits: Limits,
        observer: Observer,
    ) -> None:
        self._handler, self._context, self._address = handler, ssl_context, (host, port)
        self._limits, self._observer = limits, observer
        self._socket: socket.socket | None = None
        self._server: Server | None = None
        self._buffer = bytearray(RECEIVE)
        self._open: dict[asyncio.BaseProtocol, asyncio.Transport | None] = {}
        self._starting: set[asyncio.Task[Any]] = set()
        self._reading = False
        self._closing = False

    @property
    def connections(self) -> int:
        """How many connections there are, those in their handshake included."""
        return len(self._open)

    @property
    def listening(self) -> bool:
        """Whether the socket is there and listens; false when it was closed under us."""
        if self._socket is None:
            return False
        try:
            return bool(self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
        except OSError:
            return False

    async def start(self) -> tuple[str, int]:
        """Listen, and return the address with the port that was given. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        host, port = self._address
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        self._socket = socket.create_server(
            (address[0], address[1]),
            family=family,
            backlog=self._limits.backlog,
            dualstack_ipv6=address[0] == "::" and socket.has_dualstack_ipv6(),
        )
        self._socket.setblocking(False)
        self._server = Server(
            self._handler, self._limits, self._observer, self._crowded, self._lost
        )
        self._resume()
        bound = self._socket.getsockname()
        return bound[0], bound[1]

    async def close(self, grace: float = 5.0) -> None:
        """Take no more connections, give requests at work `grace` seconds, and end the rest."""
        self._closing = True
        if self._socket is not None:
            self._pause()
            self._socket.close()
            self._socket = None
        if self._server is not None:
            self._server.close_idle()
            await _until(lambda: self._server is None or not self._server.busy, grace)
            self._server.pre_shutdown()
            await self._server.shutdown(_GOING)
        await self._gone()
        for transport in self._open.values():
            if transport is not None:
                transport.abort()
        await self._gone()

    async def _gone(self) -> None:
        await _until(lambda: not self._open, _GOING)

    def _crowded(self) -> bool:
        return self._closing or len(self._open) > self._limits.keep_connections

    def _resume(self) -> None:
        if self._socket is not None and not self._reading:
            asyncio.get_running_loop().add_reader(self._socket, self._accept)
            self._reading = True

    def _pause(self) -> None:
        if self._socket is not None and self._reading:
            with suppress(OSError, ValueError):  # closed under us
                asyncio.get_running_loop().remove_reader(self._socket)
            self._reading = False

    def _accept(self) -> None:
        assert self._socket is not None
        for _ in range(_AT_ONCE):
            if len(self._open) >= self._limits.connections:
                self._pause()
                return
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause()
                self._observer.unexpected("accept", error)
                if error.errno != errno.EBADF:  # closed under us, which `listening` shows
                    asyncio.get_running_loop().call_later(_PAUSE, self._resume)
                return
            self._begin(accepted)

    def _begin(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        protocol = self._protocol()
        self._open[protocol] = None
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.connect_accepted_socket(lambda: protocol, accepted))
        self._starting.add(task)

        def begun(task: "asyncio.Task[tuple[asyncio.Transport, Any]]") -> None:
            self._starting.discard(task)
            if task.cancelled() or task.exception() is not None:
                accepted.close()
                self._lost(protocol)
            elif protocol in self._open:
                self._open[protocol] = task.result()[0]

        task.add_done_callback(begun)

    def _protocol(self) -> asyncio.Protocol | asyncio.BufferedProtocol:
        assert self._server is not None
        app = self._server()
        if self._context is None:
            return app
        protocol = TlsProtocol(
            app,
            self._context,
            self._buffer,
            handshake=self._limits.handshake,
            shutdown=_CLOSE_NOTIFY,
            failed=self._observer.tls_failure,
            lost=self._lost,
        )
        app.widen = protocol.widen
        return protocol

    def _lost(self, protocol: asyncio.BaseProtocol) -> None:
        self._open.pop(protocol, None)
        if not self._reading and len(self._open) < self._limits.connections:
            self._resume()


async def _until(true: Callable[[], bool], seconds: float) -> None:
    """Wait until something is true, or for so long."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not true() and loop.time() < end:
        await asyncio.sleep(0.01)
