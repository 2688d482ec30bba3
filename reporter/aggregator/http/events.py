"""`GET /events`: the run as server-sent events, for many readers who all see the same.

A stream begins with a `snapshot`, with a `summary` where there are too many entries for that, or
with what its reader has missed. Then come `entry` events, one for each entry that changed, and a
`run` event that ends what belongs together and has the run and its revision as its id: a reader
that is cut off in between gets all of it again. After `end` nothing follows.

Streams are told by one look at the run, twice a second at most. Each remembers only which entries
it owes, so a slow reader gets the newest state late, never an old one, and costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.encoded import Moment
from reporter.aggregator.http.sse import Pace, Reader, Told
from reporter.core.run.beats import INTERVAL
from reporter.core.run.changes import Changes, History
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
        self._told = Told(self._moment())
        self._heard: dict[Key, None] = {}
        self._readers: set[Reader] = set()
        self._unsubscribe: Callable[[], None] | None = None
        self._flushing: asyncio.TimerHandle | None = None
        self._hearing: asyncio.TimerHandle | None = None
        self._looking, self._looked = asyncio.Lock(), -1.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def answer(self, request: web.BaseRequest) -> Answer:
        """Answer a request. What is a `Stream` still has to be run."""
        if request.method == "HEAD":
            return _BEGIN
        await self._look()
        known = self._revision(request.headers.get("Last-Event-ID", ""))
        if self._closed or len(self._readers) >= self._pace.streams:
            return answers.text(
                503, "no more event streams: ask /status", (answers.retry_later(5),)
            )
        if known is not None and self._history.told_end(known):
            return _OVER
        return Stream(self, known)

    def close(self) -> None:
        """End all streams, and let none begin."""
        self._closed = True
        for reader in self._readers:
            reader.stop()

    # -- looking at the run ----------------------------------------------------------------------

    def _moment(self) -> Moment:
        return Moment(self._snapshot(), self._wall(), self._clock(), self._interval)

    async def _look(self) -> None:
        """See what has changed, and tell the streams; those who wait for a look share it."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        async with self._looking:
            if self._looked > asked:
                return
            self._looked, moment = loop.time(), self._moment()
            self._history, changes, self._told = await asyncio.to_thread(
                _follow, self._history, moment
            )
            self._heard.update(dict.fromkeys(changes.heard))
            for reader in self._readers:
                reader.owe(changes.entries)

    async def _hear(self) -> None:
        """Tell the ages of those that were heard; they change all the time."""
        await self._look()
        for reader in self._readers:
            reader.owe(self._heard)
        self._heard.clear()

    def _changed(self) -> None:
        if self._flushing is None:
            loop = asyncio.get_running_loop()
            self._flushing = loop.call_later(self._pace.flush, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        self._start(self._look())

    def _await_beats(self) -> None:
        self._hearing = asyncio.get_running_loop().call_later(self._pace.heard, self._beaten)

    def _beaten(self) -> None:
        self._await_beats()
        self._start(self._hear())

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- streams ---------------------------------------------------------------------------------

    async def run(self, request: web.BaseRequest, known: int | None) -> None:
        """Write to one reader until it is gone, or the run is over."""
        reader = Reader(request, self._pace)
        if not self._readers:
            self._unsubscribe = self._subscribe(self._changed)
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
        self._heard.clear()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    async def _write(self, reader: Reader, known: int | None) -> None:
        _BEGIN.send(reader.request)
        missed = None if known is None else self._history.since(known, self._pace.history)
        if missed is None:
            told = self._told
            reader.told = told.revision
            await reader.write(_RETRY + await told.begin(self._pace.largest))
        else:
            reader.told = -1 if known is None else known
            reader.owe(missed)
            await reader.write(_RETRY)
        while not reader.stopped:
            told = self._told
            data = await reader.due(told)
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
        return int(revision) if number and run == self._history.snapshot.plan.run else None


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


def _follow(history: History, moment: Moment) -> tuple[History, Changes, Told]:
    """Look at the run. For a thread: with thousands of entries a worker would wait for it."""
    return *history.follow(moment.snapshot, moment.mono, moment.interval), Told(moment)
