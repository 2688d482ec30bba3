"""A listening socket: accepts connections, counts them, gives them TLS, and ends them.

The handler decides what is served.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from aiohttp import web

from reporter.aggregator import limits
from reporter.aggregator.server.connection import Connection
from reporter.aggregator.server.peers import ConnectionLimits, Handshakes, PendingPeer
from reporter.aggregator.server.tls_protocol import RECEIVE, TlsProtocol, reason_of
from reporter.common.dialing import outlive_silence

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_AT_ONCE = 64  # taken per turn of the loop, so that a rush leaves time for others
_PAUSE = 0.5  # seconds before the next try when the system gives no more sockets
_GOING = 1.0  # a peer's time to confirm the end of TLS when we go
_LEAST = 0.1  # seconds for the handshake of a peer whose turn comes late


class Observer(Protocol):
    """What is told of the HTTP layer's work; who counts or logs it is the caller's business.

    Called on the event loop; must not block and must not raise.
    """

    def request(self, route: str, code: int, seconds: float, received: int) -> None:
        """An answer was made.

        `route` is one of results, progress, heartbeat, status, probe, metrics, other, poll;
        `received` counts the bytes of body that were read.
        """

    def refused(self, what: str, why: str, peer: str, certificate: str) -> None:
        """A worker was refused with 403.

        `what` names it as the answer does, `peer` is an address, `certificate` whom the client's
        stands for (`plugin/node`; empty: nobody of this run).
        """

    def tls_failure(self, reason: str, peer: str, text: str) -> None:
        """A handshake failed.

        `reason` is one of certificate, timeout, closed, protocol, other; `peer` an address without
        its port; `text` what OpenSSL says.
        """

    def unexpected(self, where: str, error: BaseException) -> None:
        """Something failed that should not; the peer got a 500 or lost its connection."""


class Listener:
    """One address that is listened on: plain HTTP, or HTTPS with `ssl_context`.

    A function is asked for the context of each new connection: its certificate may have changed.
    To be made where the loop runs that it is for.

    It always takes connections, so that nobody who says nothing stands before others in the
    system's queue. Which of them go on is decided by `Handshakes` and `ConnectionLimits`.

    Above `connections` each answer closes its connection; one that is kept may be idle for
    `keep_alive` seconds. Beside those, `waiting_handshakes` peers wait for their turn.
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
    ) -> None:
        self.keep_alive, self.observer = keep_alive, observer
        self.server = web.Server(handler)
        self._context, self._address = ssl_context, (host, port)
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._buffer = bytearray(RECEIVE)
        # All that have begun their handshake, each with its transport once there is one.
        self._open: dict[Connection, asyncio.Transport | None] = {}
        self._entering: dict[Connection, PendingPeer] = {}
        self._limits = ConnectionLimits(connections)
        self._handshakes = Handshakes(
            self._begin, self._limits.room, self._failed, waiting_handshakes
        )
        self._closing = False

    @property
    def connections(self) -> int:
        """How many connections there are, those in their handshake included."""
        return len(self._open)

    @property
    def full_seconds(self) -> float:
        """For how long in all there was no place for somebody who wanted to be heard."""
        return self._handshakes.full_seconds

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
        host, port = self._address
        found = await self._loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        self._socket = socket.create_server(
            (address[0], address[1]),
            family=family,
            backlog=limits.BACKLOG,
            dualstack_ipv6=address[0] == "::" and socket.has_dualstack_ipv6(),
        )
        self._socket.setblocking(False)
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
        self._handshakes.close()
        # Not `pre_shutdown`: it makes those with a request deaf to the rest of its body.
        for connection in list(self._open):
            if connection.transport is not None and not connection.at_work:
                connection.force_close()
        await _until(lambda: not any(each.at_work for each in self._open), grace)
        self.server.pre_shutdown()
        await self.server.shutdown(_GOING)
        await _until(lambda: not self._open, _GOING)
        for transport in self._open.values():
            if transport is not None:
                transport.abort()
        await _until(lambda: not self._open, _GOING)

    def entered(self, connection: Connection, transport: asyncio.BaseTransport) -> None:
        """Let a peer in that has proved who it is."""
        if (peer := self._entering.pop(connection, None)) is not None:
            certificate = transport.get_extra_info("peercert") or {}
            serial = str(certificate.get("serialNumber", ""))
            self._limits.enter(connection, (peer.address, serial))
            self._handshakes.leave(peer)

    def lost(self, connection: Connection) -> None:
        """Let somebody else in for a connection that is lost."""
        self._open.pop(connection, None)
        self._limits.leave(connection)
        if not self._closing:
            self._handshakes.admit()

    def crowded(self, connection: Connection) -> bool:
        """Say whether a connection is to end with its next answer."""
        return self._closing or self._limits.crowded(connection)

    def _failed(self, reason: str, peer: str, text: str) -> None:
        if self._context is not None:
            self.observer.tls_failure(reason, peer, text)

    def _resume(self) -> None:
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._accept)

    def _pause(self) -> None:
        assert self._socket is not None
        with suppress(OSError, ValueError):  # closed under us
            self._loop.remove_reader(self._socket)

    def _accept(self) -> None:
        assert self._socket is not None
        for _ in range(_AT_ONCE):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause()
                self.observer.unexpected("accept", error)
                if error.errno != errno.EBADF:  # closed under us, which `listening` shows
                    self._loop.call_later(_PAUSE, self._resume)
                return
            accepted.setblocking(False)
            with suppress(OSError):  # gone already
                outlive_silence(accepted)
            self._handshakes.wait_for_turn(accepted, str(address[0]))

    def _begin(self, peer: PendingPeer) -> asyncio.Task[None]:
        connection = Connection(self)
        self._open[connection] = None
        self._entering[connection] = peer
        task = self._loop.create_task(self._shake_hands(connection, peer))

        def through(_: object) -> None:
            """Count out what has failed, be it that the task was cancelled before it began."""
            if self._entering.pop(connection, None) is not None:
                if self._open.pop(connection) is None:
                    peer.socket.close()
                self._handshakes.leave(peer)

        task.add_done_callback(through)
        return task

    async def _shake_hands(self, connection: Connection, peer: PendingPeer) -> None:
        """Give a connection its peer, which it hears of once that has proved who it is."""
        error: BaseException | None = None
        try:
            tls = None
            if (context := self._context) is not None:
                current = context() if callable(context) else context
                left = max(peer.until - self._loop.time(), _LEAST)
                tls = TlsProtocol(connection, current, self._buffer, handshake=left)
                connection.widen = tls.widen
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: tls or connection, peer.socket
            )
            if connection in self._open:
                self._open[connection] = transport
            if tls is not None:
                error = await tls.shaken
        except asyncio.CancelledError:
            if (begun := self._open.get(connection)) is not None:
                begun.abort()
            raise
        except Exception as failure:
            error = failure
        if error is not None:
            self._failed(reason_of(error), peer.address, str(error) or type(error).__name__)


async def _until(true: Callable[[], bool], seconds: float) -> None:
    """Wait until something is true, or for so long."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not true() and loop.time() < end:
        await asyncio.sleep(0.01)
