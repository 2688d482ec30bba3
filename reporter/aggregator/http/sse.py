"""Server-sent events of a run: what one look at it shows, encoded once; and one reader of it.

When is looked, and how many readers there may be, is decided in `events`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from socket import SO_SNDBUF, SOL_SOCKET
from typing import Any, Final

from aiohttp import web

from reporter.aggregator.http.connection import Connection
from reporter.core.run.changes import WINDOW
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Snapshot
from reporter.core.run.status import entry_document, run_fields, status_document

_COMMENT: Final = b": still here\n\n"
_PIECE: Final = 64 * 1024  # written at once; what a reader has to take within its patience


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a stream is written to, in seconds, and how many streams there may be.

    `heard` is for ages of heartbeats when nothing else is new. `patience` is the time that a
    reader has to take what was written, `history` the revisions it may miss and still go on.
    """

    flush: float = 0.5
    heard: float = 5.0
    comment: float = 15.0
    patience: float = 10.0
    streams: int = 32
    history: int = WINDOW


class Told:
    """What one look shows, each event encoded once for all streams."""

    def __init__(self, snapshot: Snapshot, now: float, mono: float, interval: float) -> None:
        self._snapshot, self._now, self._mono, self._interval = snapshot, now, mono, interval
        self._entries: dict[Key, bytes] = {}
        self._whole: asyncio.Future[bytes] | None = None
        self.revision = snapshot.revision

    @cached_property
    def _run(self) -> dict[str, Any]:
        return run_fields(self._snapshot, now=self._now)

    @property
    def final(self) -> bool:
        """Whether the run is over."""
        return bool(self._run["final"])

    async def whole(self) -> bytes:
        """The `snapshot` event.

        Made once and in a thread: with thousands of entries it takes longer than a worker should
        wait, and after a restart all readers come at the same time.
        """
        if self._whole is None:
            self._whole = asyncio.ensure_future(asyncio.to_thread(self._make_whole))
        return await asyncio.shield(self._whole)

    def _make_whole(self) -> bytes:
        document = status_document(
            self._snapshot, now=self._now, mono=self._mono, interval=self._interval
        )
        return _event("snapshot", document, self.revision)

    @cached_property
    def run(self) -> bytes:
        """The `run` event."""
        return _event("run", self._run, self.revision)

    @cached_property
    def end(self) -> bytes:
        """The `end` event."""
        return _event("end", {"revision": self.revision}, self.revision)

    def entry(self, key: Key) -> bytes:
        """The `entry` event of a key; the `run` event after it has the id for both."""
        event = self._entries.get(key)
        if event is None:
            document = entry_document(
                self._snapshot,
                key,
                now=self._now,
                mono=self._mono,
                full=False,
                interval=self._interval,
            )
            event = self._entries[key] = _event("entry", document)
        return event


class Reader:
    """One reader: what it owes it, and the connection."""

    def __init__(self, request: web.BaseRequest, pace: Pace) -> None:
        assert isinstance(request.protocol, Connection)
        self.request, self.told, self.stopped = request, -1, False
        self._pace, self._loop = pace, asyncio.get_running_loop()
        self._owed: dict[Key, None] = {}
        self._woken = asyncio.Event()
        self._written = self._commented = self._loop.time()
        # Else the kernel would hold megabytes of old news for a reader that is slow.
        if (transport := request.transport) is not None:
            transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_SNDBUF, _PIECE)
        request.protocol.gone().add_done_callback(lambda _: self.stop())

    def owe(self, keys: Iterable[Key]) -> None:
        """Remember entries of which it knows no longer the newest; it looks at the run as well."""
        self._owed.update(dict.fromkeys(keys))
        self._woken.set()

    def stop(self) -> None:
        """Write no more."""
        self.stopped = True
        self._woken.set()

    def abort(self) -> None:
        """End the connection although its reader has not taken everything."""
        if (transport := self.request.protocol.transport) is not None:
            transport.abort()

    def due(self, told: Told) -> bytes:
        """Take what has to be written now."""
        self._woken.clear()
        events = [told.entry(key) for key in self._owed]
        self._owed.clear()
        if told.revision != self.told:
            self.told = told.revision
            events.append(told.run)
        if self._loop.time() >= self._commented + self._pace.comment:
            self._commented = self._loop.time()
            events.append(_COMMENT)
        return b"".join(events)

    async def news(self) -> None:
        """Wait until there may be something to write, and it is time for it."""
        try:
            async with asyncio.timeout_at(self._commented + self._pace.comment):
                await self._woken.wait()
        except TimeoutError:
            return
        if not self.stopped:
            await asyncio.sleep(self._written + self._pace.flush - self._loop.time())

    async def write(self, data: bytes) -> None:
        """Write, and wait until it is taken.

        Raises TimeoutError when its reader has no use for it, ConnectionError when it is gone.
        """
        self._written = self._loop.time()
        for start in range(0, len(data), _PIECE):
            transport = self.request.protocol.transport
            if transport is None or transport.is_closing():
                raise ConnectionResetError("the reader is gone")
            transport.write(data[start : start + _PIECE])
            async with asyncio.timeout(self._pace.patience):
                await self.request.writer.drain()


def _event(name: str, document: object, revision: int | None = None) -> bytes:
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    number = "" if revision is None else f"id: {revision}\n"
    return f"event: {name}\n{number}data: {data}\n\n".encode()
