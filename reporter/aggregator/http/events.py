"""`GET /events`: the run as server-sent events, for many readers who all see the same.

A stream begins with a `snapshot`, with a `summary` where there are too many entries for that, or
with what its reader has missed. Then come `entry` events, one for each entry that changed, and a
`run` event that ends what belongs together and has the run and its revision as its id: a reader
that is cut off in between gets all of it again. After `end` nothing follows.

Streams are told by one look at the run, twice a second at most. Each remembers only up to which
revision it was told, so a slow reader gets the newest state late, never an old one, and costs
nothing. A reader that comes back, also to another process, is one that was slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.encoded import Moment
from reporter.aggregator.http.sse import Pace, Reader, Told
from reporter.core.run.beats import INTERVAL, heard_since
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Snapshot

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


class Ledger(Protocol):
    """What is asked of the store."""

    def snapshot(self) -> Snapshot:
        """Return the run as it is now."""

    def changes(self, since: int) -> Sequence[Key]:
        """Return the keys that have changed since a revision."""

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after the revision grew; return what ends that."""


class Events:
    """All streams of one run."""

    def __init__(
        self,
        store: Ledger,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        interval: float = INTERVAL,
        pace: Pace | None = None,
    ) -> None:
        self._store = store
        self._clock, self._wall, self._interval = clock, wall, interval
        self._pace = pace or Pace()
        self._told = self._look()
        self._heard_until = 0.0
        self._readers: set[Reader] = set()
        self._unsubscribe: Callable[[], None] | None = None
        self._flushing: asyncio.TimerHandle | None = None
        self._hearing: asyncio.TimerHandle | None = None
        self._closed = False

    def answer(self, request: web.BaseRequest) -> Answer:
        """Answer a request. What is a `Stream` still has to be run."""
        if request.method == "HEAD":
            return _BEGIN
        if not self._fresh():
            self._told = self._look()
        known = self._revision(request.headers.get("Last-Event-ID", ""))
        if self._closed or len(self._readers) >= self._pace.streams:
            return answers.text(
                503, "too many event streams; poll /status", (answers.retry_later(5),)
            )
        if self._told.final and known == self._told.revision:
            return _OVER
        return Stream(self, known)

    def close(self) -> None:
        """End all streams, and let none begin."""
        self._closed = True
        for reader in self._readers:
            reader.stop()

    # -- looking at the run ----------------------------------------------------------------------

    def _look(self) -> Told:
        return Told(Moment(self._store.snapshot(), self._wall(), self._clock(), self._interval))

    def _fresh(self) -> bool:
        """Say whether a new reader may share the last look: after a restart all come at once."""
        if not self._readers or self._told.revision != self._store.snapshot().revision:
            return False
        return self._clock() - self._told.mono < self._pace.flush

    def _changed(self) -> None:
        if self._flushing is None:
            loop = asyncio.get_running_loop()
            self._flushing = loop.call_later(self._pace.flush, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        self._told = self._look()
        for reader in self._readers:
            reader.wake()

    def _await_beats(self) -> None:
        self._hearing = asyncio.get_running_loop().call_later(self._pace.heard, self._beaten)

    def _beaten(self) -> None:
        """Tell the ages of those that were heard; they change all the time."""
        self._await_beats()
        heard = heard_since(self._store.snapshot().beats, self._heard_until)
        self._heard_until = self._clock()
        if heard:
            self._told = self._look()
            for reader in self._readers:
                reader.owe(heard)

    # -- streams ---------------------------------------------------------------------------------

    async def run(self, request: web.BaseRequest, known: int | None) -> None:
        """Write to one reader until it is gone, or the run is over."""
        reader = Reader(request, self._pace)
        if not self._readers:
            self._unsubscribe = self._store.subscribe(self._changed)
            self._heard_until = self._clock()
            self._await_beats()
        self._readers.add(reader)
        try:
            await self._write(reader, known)
        except ConnectionError:
            pass  # its reader is gone
        except TimeoutError:
            reader.abort()
        finally:
            self._readers.discard(reader)
            if not self._readers:
                self._rest()

    def _rest(self) -> None:
        """Do nothing while nobody reads."""
        for timer in (self._flushing, self._hearing):
            if timer is not None:
                timer.cancel()
        self._flushing = self._hearing = None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    async def _write(self, reader: Reader, known: int | None) -> None:
        _BEGIN.send(reader.request)
        told = self._told
        if known is not None and 0 <= told.revision - known <= self._pace.history:
            reader.told = known
            await reader.write(_RETRY)
        else:
            reader.told = told.revision
            await reader.write(_RETRY + await told.begin(self._pace.largest))
        while not reader.stopped:
            told = self._told
            data = await reader.due(told, self._store.changes(reader.told))
            if told.final:
                await reader.write(data + told.end)
                return
            if data:
                await reader.write(data)
            await reader.news()

    def _revision(self, last_id: str) -> int | None:
        """The revision in the last id that a reader got, if it is one of this run."""
        run, _, revision = last_id.rpartition("/")
        number = revision.isascii() and revision.isdigit() and len(revision) < 20
        return int(revision) if number and run == self._told.run_id else None


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
