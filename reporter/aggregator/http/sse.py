"""Server-sent events of a run: what one look at it shows, encoded once; and one reader of it.

When is looked, and how many readers there may be, is decided in `events`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from socket import SO_SNDBUF, SOL_SOCKET
from typing import Final

from aiohttp import web

from reporter.aggregator.http.connection import Connection
from reporter.aggregator.http.encoded import (
    Moment,
    encode,
    encode_entries,
    encode_run,
    with_entries,
)
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import final

_COMMENT: Final = b": still here\n\n"
_PIECE: Final = 64 * 1024  # written at once; what a reader has to take within its patience


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a stream is written to, in seconds, and how many streams there may be.

    `heard` is for ages of heartbeats when nothing else is new. `patience` is the time that a
    reader has to take what was written, `history` the revisions it may miss and still go on,
    `largest` the number of entries up to which a stream begins with all of them.
    """

    flush: float = 0.5
    heard: float = 5.0
    comment: float = 15.0
    patience: float = 10.0
    streams: int = 32
    history: int = 1_000
    largest: int = 5_000


class Told:
    """What one look shows, each event encoded once for all streams."""

    def __init__(self, moment: Moment) -> None:
        snapshot = moment.snapshot
        self._moment, self.revision, self.final = moment, snapshot.revision, final(snapshot)
        self.mono, self.run_id = moment.mono, snapshot.plan.run
        self.id = f"{self.run_id}/{self.revision}"
        self._fields = encode_run(moment)
        self._entries: dict[Key, bytes] = {}
        self._whole = b""
        self._encoding = asyncio.Lock()

    async def begin(self, largest: int) -> bytes:
        """The event that a stream begins with; above so many entries their readers get pages."""
        keys = self._moment.snapshot.entries
        if len(keys) > largest:
            return _event("summary", self._fields, self.id)
        entries = await self.entries(keys)
        self._whole = self._whole or _event(
            "snapshot", with_entries(self._fields, entries), self.id
        )
        return self._whole

    @property
    def run(self) -> bytes:
        """The `run` event."""
        return _event("run", self._fields, self.id)

    @property
    def end(self) -> bytes:
        """The `end` event."""
        return _event("end", encode({"revision": self.revision}), self.id)

    async def entries(self, keys: Collection[Key]) -> list[bytes]:
        """The entries of these keys as they stand in a list.

        Made in a thread: thousands take longer than a worker should wait, and after a restart all
        readers come at the same time.
        """
        async with self._encoding:
            missing = [key for key in keys if key not in self._entries]
            if missing:
                made = await asyncio.to_thread(lambda: list(encode_entries(self._moment, missing)))
                self._entries.update(zip(missing, made, strict=True))
        return [self._entries[key] for key in keys]


class Reader:
    """One reader: up to which revision it was told, the ages it is owed, and the connection."""

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
        """Remember entries whose ages it is to be told."""
        self._owed.update(dict.fromkeys(keys))
        self.wake()

    def wake(self) -> None:
        """Have it look at the run."""
        self._woken.set()

    def stop(self) -> None:
        """Write no more."""
        self.stopped = True
        self.wake()

    def abort(self) -> None:
        """End the connection although its reader has not taken everything."""
        if (transport := self.request.protocol.transport) is not None:
            transport.abort()

    async def due(self, told: Told, changed: Iterable[Key]) -> bytes:
        """Take what has to be written now; `changed` are the entries that are new to it."""
        self._woken.clear()
        owed, self._owed = dict.fromkeys(changed) | self._owed, {}
        # The `run` event after them has the id for all.
        events = [_event("entry", entry) for entry in await told.entries(owed)]
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


def _event(name: str, data: bytes, event_id: str = "") -> bytes:
    number = f"id: {event_id}\n" if event_id else ""
    return b"".join((f"event: {name}\n{number}data: ".encode(), data, b"\n\n"))
