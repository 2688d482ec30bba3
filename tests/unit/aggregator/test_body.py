"""The body of a request whose pieces are there before anybody asks for them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from reporter.aggregator.server.body import Body
from reporter.aggregator.server.connection import Connection
from reporter.run.upload import UploadEnded
from tests.aggregators.listening import listening


class Plenty:
    """A body without an end, of a network that is faster than our disk."""

    async def readany(self) -> bytes:
        return b"piece"

    def is_eof(self) -> bool:
        return True


def test_a_body_that_never_lets_us_wait_is_cut_when_its_time_is_over() -> None:
    """No timer tells: nothing is waited for."""
    pieces: list[bytes] = []

    async def read() -> None:
        request: Any = SimpleNamespace(
            protocol=Connection(listening(None, None)), content=Plenty(), transport=None
        )
        async for piece in Body(request, lambda: None).sending(lambda: len(pieces) - 3.0):
            pieces.append(piece)
            assert len(pieces) <= 3, "read on though its time is over"

    with pytest.raises(UploadEnded, match="upload stalled"):
        asyncio.run(read())
