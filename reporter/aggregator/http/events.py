"""`GET /events`: the run as server-sent events, for many readers who all see the same.

A stream begins with a `snapshot`, or with what its reader has missed. Then come `entry` events, one
for each entry that changed, and a `run` event that ends what belongs together and has the revision
as its id: a reader that is cut off in between gets all of it again. After `end` nothing follows.

Streams are told by one look at the run, twice a second at most. Each remembers only which entries
it owes, so a slow reader gets the newest state late, never an old one, and costs nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from socket import SO_SNDBUF, SOL_SOCKET
from typing import Any, Final

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.connection import Connection
from reporter.core.run.beats import INTERVAL
from reporter.core.run.changes import History
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Snapshot
from reporter.core.run.status import entry_document, run_fields, status_document

_BEGIN: Final = Answer(
    200,
    None,
    (
        ("Content-Type", "text/event-stream; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Accel-Buffering", "no"),  # or a proxy of that make keeps the events for itself
    ),
    close=True,
)
_OVER: Final = Answer(204)
_RETRY: Final = b"retry: 3000\n\n"
_COMMENT: Final = b": still here\n\n"
_PIECE: Final = 64 * 1024  # written at once; what a reader has to take within its patience


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a stream is written to, in seconds, and how many streams there may be.

    `heard` is for ages of heartbeats when nothing else is new. `patience` is the time that a
    reader has to take what was written.
    """

    flush: float = 0.5
    heard: float = 5.0
    comment: float = 15.0
    patience: float = 10.0
    streams: int = 32


class Events:
    """All streams of one run. `snapshot` and `subscribe` are those of the store."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        subscribe: Callable[[Callable[[], None]], Callable[[], None]],
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        interval: float = INTERVAL,
        pace: Pace | None = None,
    ) -> None:
        self._snapshot, self._subscribe = snapshot, subscribe
        self._clock, self._wall, self._interval = clock, wall, interval
        self._pace = pace or Pace()
        self._history = History.begin(snapshot(), clock(), interval)
        self._told = self._tell()
        self._heard: dict[Key, None] = {}
        self._streams: set[_Stream] = set()
        self._unsubscribe: Callable[[], None] | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._hearing: asyncio.TimerHandle | None = None
        self._closed = False

    def answer(self, request: web.BaseRequest) -> Answer:
        """Answer a request. What is a `Stream` still has to be run."""
        if request.method == "HEAD":
            return _BEGIN
        known = _revision(request.headers.get("Last-Event-ID", ""))
        if self._closed or len(self._streams) >= self._pace.streams:
            return answers.text(
                503, "no more event streams: ask /status", (answers.retry_later(5),)
            )
        self._look()
        if known is not None and self._history.told_end(known):
            return _OVER
        return Stream(self, known)

    def close(self) -> None:
        """End all streams, and let none begin."""
        self._closed = True
        for stream in self._streams:
            stream.stop()

    # -- looking at the run ----------------------------------------------------------------------

    def _tell(self) -> _Told:
        return _Told(self._history.snapshot, self._wall(), self._clock(), self._interval)

    def _look(self) -> None:
        """See what has changed, and tell the streams."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._history, changes = self._history.follow(
            self._snapshot(), self._clock(), self._interval
        )
        self._told = self._tell()
        self._heard.update(dict.fromkeys(changes.heard))
        for stream in self._streams:
            stream.owe(changes.entries)

    def _changed(self) -> None:
        if self._looking is None:
            loop = asyncio.get_running_loop()
            self._looking = loop.call_later(self._pace.flush, self._look)

    def _hear(self) -> None:
        """Tell the ages of those that were heard; they change all the time."""
        self._look()
        for stream in self._streams:
            stream.owe(self._heard)
        self._heard.clear()
        self._await_beats()

    def _await_beats(self) -> None:
        self._hearing = asyncio.get_running_loop().call_later(self._pace.heard, self._hear)

    # -- streams ---------------------------------------------------------------------------------

    async def run(self, request: web.BaseRequest, known: int | None) -> None:
        """Write to one reader until it is gone, or the run is over."""
        stream = _Stream(request, self._pace)
        if not self._streams:
            self._unsubscribe = self._subscribe(self._changed)
            self._await_beats()
        self._streams.add(stream)
        try:
            await self._write(stream, known)
        except ConnectionError:
            pass  # its reader is gone
        except TimeoutError:
            stream.abort()
        finally:
            self._streams.discard(stream)
            if not self._streams:
                self._rest()

    def _rest(self) -> None:
        """Do nothing while nobody reads."""
        for timer in (self._looking, self._hearing):
            if timer is not None:
                timer.cancel()
        self._looking = self._hearing = None
        self._heard.clear()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    async def _write(self, stream: _Stream, known: int | None) -> None:
        _BEGIN.send(stream.request)
        missed = None if known is None else self._history.since(known)
        if missed is None:
            stream.told = self._told.revision
            await stream.write(_RETRY + self._told.whole)
        else:
            stream.told = -1 if known is None else known
            stream.owe(missed)
            await stream.write(_RETRY)
        while not stream.stopped:
            told = self._told
            data = stream.due(told)
            if told.final:
                await stream.write(data + told.end)
                return
            if data:
                await stream.write(data)
            await stream.news()


class Stream(Answer):
    """The answer that is a stream: run it, then there is nothing left to send."""

    def __init__(self, events: Events, known: int | None) -> None:
        super().__init__(200, None, close=True)
        self._events, self._known = events, known

    async def run(self, request: web.BaseRequest) -> None:
        """Write until there is no more to say, or nobody to say it to."""
        await self._events.run(request, self._known)

    def send(self, request: web.BaseRequest) -> None:
        """Do nothing: everything was sent by `run`."""


class _Told:
    """What one look shows, each event encoded once for all streams."""

    def __init__(self, snapshot: Snapshot, now: float, mono: float, interval: float) -> None:
        self._snapshot, self._now, self._mono, self._interval = snapshot, now, mono, interval
        self._entries: dict[Key, bytes] = {}
        self.revision = snapshot.revision

    @cached_property
    def _run(self) -> dict[str, Any]:
        return run_fields(self._snapshot, now=self._now)

    @property
    def final(self) -> bool:
        """Whether the run is over."""
        return bool(self._run["final"])

    @cached_property
    def whole(self) -> bytes:
        """The `snapshot` event."""
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


class _Stream:
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

    def due(self, told: _Told) -> bytes:
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


def _revision(header: str) -> int | None:
    return int(header) if header.isascii() and header.isdigit() and len(header) < 20 else None
