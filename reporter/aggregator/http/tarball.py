"""The results as one file, `GET /results`, for those who may see the run's status.

Sent from the disk piece by piece: it may be larger than the memory. What is in it, and when there
is one, is decided elsewhere.
"""

import asyncio
from pathlib import Path
from typing import BinaryIO, Final

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.core.run.snapshot import Snapshot, Tar, final

NOT_YET: Final = answers.text(404, "there are no results yet: the run is not over")
GIVEN_UP: Final = answers.text(404, "there are no results: packing was given up")
_GONE: Final = answers.text(503, "the results cannot be read", close=True)
_PIECE = 256 * 1024
_PATIENCE = 60.0  # seconds for a reader to take a piece


def answer(output: Path | None, snapshot: Snapshot) -> Answer:
    """Return the file that lies in `output`; 404 where there is none, or none yet."""
    tar = snapshot.tar
    if output is None or tar is None:
        return GIVEN_UP if final(snapshot) else NOT_YET
    return Tarball(output / tar.name, tar)


class Tarball(Answer):
    """The answer that is a file: run it, then there is nothing left to send."""

    def __init__(self, path: Path, tar: Tar) -> None:
        headers = (
            ("Content-Type", "application/gzip"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Length", str(tar.size)),
            ("Content-Disposition", f'attachment; filename="{tar.name}"'),
            *answers.result_digest(tar.sha256),
        )
        super().__init__(200, None, headers, close=True)
        self._path, self._size = path, tar.size

    async def run(self, request: web.BaseRequest) -> None:
        """Send it; cut the connection when the file is not what was announced."""
        try:
            file = await asyncio.to_thread(self._path.open, "rb")
        except OSError:
            _GONE.send(request)
            return
        try:
            super().send(request)
            if request.method != "HEAD":
                await self._pass_on(file, request)
        except (OSError, TimeoutError):
            _cut(request)
        finally:
            await asyncio.to_thread(file.close)

    async def _pass_on(self, file: BinaryIO, request: web.BaseRequest) -> None:
        left = self._size
        while left > 0:
            piece = await asyncio.to_thread(file.read, min(_PIECE, left))
            transport = request.transport
            if not piece or transport is None or transport.is_closing():
                raise OSError("the file is shorter, or nobody is there any more")
            left -= len(piece)
            transport.write(piece)
            async with asyncio.timeout(_PATIENCE):
                await request.writer.drain()

    def send(self, request: web.BaseRequest) -> None:
        """Do nothing: everything was sent by `run`."""


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
