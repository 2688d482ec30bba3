"""Reading a request's body with patience that ends.

It knows as which `UploadOutcome` a body ends before it is whole, not what the bytes mean.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final, Self

from aiohttp import web
from aiohttp.http import HttpVersion11

from reporter.aggregator import limits
from reporter.aggregator.server.answers import CONTINUE
from reporter.aggregator.server.connection import Connection
from reporter.run.upload import UploadEnded, UploadOutcome

_TELL_EVERY: Final = 1.0  # seconds between two calls of `heard`
_IN_FLIGHT: Final = 5.0  # seconds in which the end of a sender that has left comes after its bytes


def _never() -> float:
    return -inf


class Body:
    """The body of one request, and who sends it.

    `heard` is called while pieces come, and while their sender waits for us to take them.
    """

    def __init__(self, request: web.BaseRequest, heard: Callable[[], None]) -> None:
        connection = request.protocol
        assert isinstance(connection, Connection)
        self._request, self._content = request, request.content
        self._connection, self._loop = connection, asyncio.get_running_loop()
        self._heard, self._told, self._late = heard, 0.0, _never
        self._left_until = -inf
        self._waited, self._received = 0.0, 0

    @property
    def left(self) -> bool:
        """Whether its sender is gone, or has said that it will be."""
        return self._connection.left

    @contextmanager
    def waiting(self) -> Iterator[asyncio.Future[None]]:
        """Leave it with its sender; what it gives is done once that is gone."""
        self._connection.hold_body(self._heard)
        try:
            yield self._connection.gone()
        finally:
            self._connection.release_body()

    def sending(
        self, late: Callable[[], float] | None = None, *, waited: bool = False
    ) -> AsyncIterator[bytes]:
        """Have its sender begin, and return its pieces as they come.

        They end with `UploadEnded` when the peer is silent too long or too slow on average, or the
        body ends before it is whole. Only time spent waiting for the peer counts. `late` gives the
        seconds by which the time for all of it is over, which may move meanwhile. The sender of a
        body that `waited` before it was read may have left before its turn.
        """
        if late is not None:  # a result, which may be long
            self._late = late
            self._connection.widen()
        if waited:
            self._left_until = self._loop.time() + _IN_FLIGHT
        self._welcome()
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        since = self._loop.time()
        try:
            piece = await self._piece(since)
        except (OSError, RuntimeError, web.RequestPayloadError) as error:
            if self._loop.time() < self._left_until:
                raise self._ended(UploadOutcome.LEFT) from error
            raise self._ended(UploadOutcome.CUT, "upload cut off") from error
        now = self._loop.time()
        self._waited += now - since
        if not piece:
            raise StopAsyncIteration
        if self._received and self._late() >= 0:
            raise self._stalled()
        self._received += len(piece)
        least = limits.UPLOAD_RATE * self._waited
        if self._waited > limits.UPLOAD_RATE_AFTER and self._received < least:
            raise self._stalled()
        if now - self._told >= _TELL_EVERY:
            self._told = now
            self._heard()
        return piece

    def _welcome(self) -> None:
        request, transport = self._request, self._request.transport
        if (
            transport is not None
            and not self._content.is_eof()
            and request.version >= HttpVersion11
            and request.headers.get("Expect", "").lower() == "100-continue"
        ):
            transport.write(CONTINUE)

    async def _piece(self, since: float) -> bytes:
        while True:
            left = min(since + limits.BODY_SILENCE - self._loop.time(), -self._late())
            try:
                async with asyncio.timeout(left) as patience:
                    return await self._content.readany()
            except TimeoutError:
                if not patience.expired():  # but the network's
                    raise
            if self._loop.time() >= since + limits.BODY_SILENCE or self._late() >= 0:
                raise self._stalled()

    def _stalled(self) -> UploadEnded:
        return self._ended(UploadOutcome.STALLED, "upload stalled")

    def _ended(self, outcome: UploadOutcome, reason: str = "") -> UploadEnded:
        self._connection.do_not_linger()  # the rest is not worth the usual patience
        return UploadEnded(outcome, reason)
