"""Reading a request's body with patience that ends. What the bytes mean is not known here."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final, Self

from aiohttp import web
from aiohttp.http import HttpVersion11

from reporter.aggregator.http.answers import CONTINUE
from reporter.aggregator.http.connection import Connection
from reporter.aggregator.http.limits import Limits
from reporter.aggregator.uploads import UploadCut, UploadStalled

_TELL_EVERY: Final = 1.0  # seconds between two calls of `heard`
_IN_FLIGHT: Final = 5.0  # seconds in which the end of a sender that has left comes after its bytes


class SenderLeft(Exception):
    """The body of an upload that had to wait ends at once: its sender had left before its turn."""


class Body:
    """The body of one request, in pieces as they come: an asynchronous iterator.

    Raises `UploadStalled` when the peer is silent too long or too slow on average, `UploadCut` when
    the body ends before it is whole. Only time spent waiting for the peer counts. `heard` is called
    while pieces come. `late` gives the seconds by which the time for all of it is over, which may
    move meanwhile. For a body that `waited` before it was read, a sender that left meanwhile is no
    `UploadCut` but `SenderLeft`. To be used in a `with` statement, which ends its clock.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        limits: Limits,
        heard: Callable[[], None],
        late: Callable[[], float] = lambda: -inf,
        *,
        waited: bool = False,
    ) -> None:
        self._request, self._content, self._limits = request, request.content, limits
        self._loop = asyncio.get_running_loop()
        self._heard, self._told, self._late = heard, 0.0, late
        self._left_until = self._loop.time() + _IN_FLIGHT if waited else -inf
        self._waiting_since: float | None = None
        self._waited = 0.0
        self._received = 0
        self._watch: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._watch is None:
            self._begin()
        since = self._waiting_since = self._loop.time()
        try:
            piece = await self._content.readany()
        except UploadStalled:
            self._hang_up()
            raise
        except (OSError, RuntimeError, web.RequestPayloadError) as error:
            self._hang_up()
            if self._loop.time() < self._left_until:
                raise SenderLeft from error
            raise UploadCut(str(error)) from error
        self._waiting_since = None
        now = self._loop.time()
        self._waited += now - since
        if not piece:
            raise StopAsyncIteration
        self._received += len(piece)
        if self._slow():
            self._hang_up()
            raise UploadStalled("too slow")
        if now - self._told >= _TELL_EVERY:
            self._told = now
            self._heard()
        return piece

    def _begin(self) -> None:
        first = min(self._limits.body_silence, max(-self._late(), 0.0))
        self._watch = self._loop.call_later(first, self._look)
        request, transport = self._request, self._request.transport
        if (
            transport is not None
            and not self._content.is_eof()
            and request.version >= HttpVersion11
            and request.headers.get("Expect", "").lower() == "100-continue"
        ):
            transport.write(CONTINUE)

    def _look(self) -> None:
        """See whether the peer has been silent for too long; one timer per body, not per piece."""
        silence, since = self._limits.body_silence, self._waiting_since
        now = self._loop.time()
        if since is not None and now >= since + silence:
            self._content.set_exception(UploadStalled("silent"))
            return
        if (left := -self._late()) <= 0:
            self._content.set_exception(UploadStalled("too late"))
            return
        look = min((now if since is None else since) + silence, now + left)
        self._watch = self._loop.call_at(look, self._look)

    def _slow(self) -> bool:
        limits = self._limits
        return self._waited > limits.rate_after and self._received < limits.rate * self._waited

    def _hang_up(self) -> None:
        # The rest of such a body is not worth the usual patience.
        connection = self._request.protocol
        assert isinstance(connection, Connection)
        connection.do_not_linger()
