"""A listening socket: accepts connections, counts them, gives them TLS, and ends them.

The handler decides what is served.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from reporter.aggregator import limits
from reporter.aggregator.server.connection import SENDER_LOOK, Connection
from reporter.aggregator.server.observer import Observer
from reporter.aggregator.server.peers import (
    HANDSHAKES,
    HANDSHAKES_PER_ADDRESS,
    Beginning,
    ConnectionLimits,
    Handshakes,
    PendingPeer,
)
from reporter.aggregator.server.tls_protocol import RECEIVE, TlsProtocol
from reporter.common.dialing import outlive_silence

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_AT_ONCE = 64  # taken per turn of the loop, so that a rush leaves time for others
_PAUSE = 0.5  # seconds before the next try when the system gives no more sockets
_CLOSE_NOTIFY = 5.0  # a peer's time to confirm the end of TLS
_GOING = 1.0  # the same, when we go
_LEAST = 0.1  # seconds for the handshake of a peer whose turn comes late


class Listener:
    """One address that is listened on: plain HTTP, or HTTPS with `ssl_context`.

    A function is asked for the context of each new connection: its certificate may have changed.

    It always takes connections, so that nobody who says nothing stands before others in the
    system's queue. Which of them go on is decided by `handshakes` and `connection_limits`.

    Above `connections` each answer closes its connection; one that is kept may be idle for
    `keep_alive` seconds. Beside those, `handshakes` peers shake hands at one time,
    `handshakes_per_address` of one address while others want to, and `waiting_handshakes` peers
    wait for their turn.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        ssl_context: ssl.SSLContext | Callable[[], ssl.SSLContext] | None,
        host: str,
        port: int,
        connections: int,
        keep_alive: float,
        waiting_handshakes: int,
        observer: Observer,
        handshakes: int = HANDSHAKES,
        handshakes_per_address: int = HANDSHAKES_PER_ADDRESS,
        sender_look: float = SENDER_LOOK,
    ) -> None:
        self._handler, self._context, self._address = handler, ssl_context, (host, port)
        self._observer = observer
        self._socket: socket.socket | None = None
        self._server: web.Server | None = None
        self._buffer = bytearray(RECEIVE)
        self._open: dict[asyncio.BaseProtocol, asyncio.Transport | None] = {}
        self._entering: dict[asyncio.BaseProtocol, PendingPeer] = {}
        self._limited = ConnectionLimits(connections, handshakes)
        self._make_connection = partial(
            Connection,
            keep_alive=keep_alive,
            sender_look=sender_look,
            observer=observer,
            crowded=self._crowded,
            lost=self._lost,
        )
        self._make_handshakes = partial(
            Handshakes,
            most=handshakes,
            share=handshakes_per_address,
            waiting=waiting_handshakes,
            seconds=limits.HANDSHAKE,
        )
        self._handshakes: Handshakes | None = None
        self._starting: set[asyncio.Task[Any]] = set()
        self._reading = False
        self._closing = False

    @property
    def connections(self) -> int:
        """How many connections there are, those in their handshake included."""
        return len(self._open)

    @property
    def full_seconds(self) -> float:
        """For how long in all there was no place for somebody who wanted to be heard."""
        return self._handshakes.full_seconds if self._handshakes is not None else 0.0

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
            backlog=limits.BACKLOG,
            dualstack_ipv6=address[0] == "::" and socket.has_dualstack_ipv6(),
        )
        self._socket.setblocking(False)
        self._handshakes = self._make_handshakes(
            self._begin, lambda: self._limited.room(len(self._entering)), self._sent_away
        )
        self._server = web.Server(self._handler, request_factory=_begun)
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
        if self._handshakes is not None:
            self._handshakes.close()
        if self._server is not None:
            # Not `pre_shutdown`: it makes those with a request deaf to the rest of its body.
            for connection in self._kept():
                if not connection.at_work:
                    connection.force_close()
            await _until(lambda: not any(each.at_work for each in self._kept()), grace)
            self._server.pre_shutdown()
            await self._server.shutdown(_GOING)
        await self._gone()
        for transport in self._open.values():
            if transport is not None:
                transport.abort()
        await self._gone()

    def _kept(self) -> list[Connection]:
        found = self._server.connections if self._server is not None else []
        return [each for each in found if isinstance(each, Connection)]

    async def _gone(self) -> None:
        await _until(lambda: not self._open, _GOING)

    def _crowded(self, connection: Connection) -> bool:
        return self._closing or self._limited.crowded(connection)

    def _sent_away(self, reason: str, peer: str, text: str) -> None:
        if self._context is not None:
            self._observer.tls_failure(reason, peer, text)

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
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause()
                self._observer.unexpected("accept", error)
                if error.errno != errno.EBADF:  # closed under us, which `listening` shows
                    asyncio.get_running_loop().call_later(_PAUSE, self._resume)
                return
            accepted.setblocking(False)
            with suppress(OSError):  # gone already
                outlive_silence(accepted)
            assert self._handshakes is not None
            self._handshakes.wait_for_turn(accepted, str(address[0]))

    def _begin(self, peer: PendingPeer) -> Beginning:
        accepted, beginning = peer.socket, Beginning()
        protocol = self._protocol(peer)
        self._open[protocol] = None
        self._entering[protocol] = peer
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
                beginning.has(task.result()[0])
                if self._context is None:
                    assert isinstance(protocol, Connection)
                    self._enters(protocol, protocol, (peer.address, ""))

        task.add_done_callback(begun)
        return beginning

    def _enters(
        self, protocol: asyncio.BaseProtocol, app: Connection, who: tuple[str, str]
    ) -> None:
        """Let a peer in that has proved who it is."""
        if (peer := self._entering.pop(protocol, None)) is not None:
            self._limited.enter(app, who)
            assert self._handshakes is not None
            self._handshakes.leave(peer)

    def _protocol(self, peer: PendingPeer) -> asyncio.Protocol | asyncio.BufferedProtocol:
        assert self._server is not None
        app = self._make_connection(self._server, asyncio.get_running_loop())
        if self._context is None:
            return app
        left = peer.until - asyncio.get_running_loop().time()
        protocol = TlsProtocol(
            app,
            self._context() if callable(self._context) else self._context,
            self._buffer,
            handshake=max(left, _LEAST),
            shutdown=_CLOSE_NOTIFY,
            failed=self._observer.tls_failure,
            shaken=lambda serial: self._enters(protocol, app, (peer.address, serial)),
            lost=self._lost,
        )
        app.widen = protocol.widen
        return protocol

    def _lost(self, protocol: asyncio.BaseProtocol) -> None:
        self._open.pop(protocol, None)
        assert self._handshakes is not None
        if (peer := self._entering.pop(protocol, None)) is not None:
            self._handshakes.leave(peer)
            return
        if isinstance(protocol, Connection):
            self._limited.leave(protocol)
        if not self._closing:
            self._handshakes.admit()


def _begun(
    message: RawRequestMessage,
    payload: StreamReader,
    connection: RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    """Make a request, as aiohttp does, and have its connection know."""
    assert isinstance(connection, Connection)
    connection.begin()
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, connection, writer, task, loop)


async def _until(true: Callable[[], bool], seconds: float) -> None:
    """Wait until something is true, or for so long."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not true() and loop.time() < end:
        await asyncio.sleep(0.01)
