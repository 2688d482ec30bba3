"""The connections of one listener, as aiohttp keeps them: made here, ended here."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from reporter.aggregator.http.connection import Connection

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Server(web.Server):
    """Makes the connections of one listener, and ends them."""

    def __init__(
        self,
        handler: Handler,
        make: Callable[["Server", asyncio.AbstractEventLoop], Connection],
        lost: Callable[[asyncio.BaseProtocol], None],
    ) -> None:
        super().__init__(handler)
        self._make, self._lost = make, lost

    def __call__(self) -> Connection:
        """Make the protocol of a new connection."""
        return self._make(self, self._loop)

    @property
    def busy(self) -> bool:
        """Whether a request is at work."""
        return any(connection.at_work for connection in self._made())

    def close_idle(self) -> None:
        """End the connections that have no request.

        Not aiohttp's `pre_shutdown`: that makes the others deaf to the rest of their bodies.
        """
        for connection in self._made():
            if not connection.at_work:
                connection.force_close()

    def _made(self) -> list[Connection]:
        return [found for found in self.connections if isinstance(found, Connection)]

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Tell the listener, too."""
        super().connection_lost(handler, exc)
        self._lost(handler)

    def _make_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        assert isinstance(protocol, Connection)
        protocol.begin()
        return super()._make_request(message, payload, protocol, writer, task)
