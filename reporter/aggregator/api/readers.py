"""The run's status as its readers get it: those that wait for news, and answers that they share.

`GET /status?since=REVISION&wait=SECONDS` waits for a newer revision of the run. All who wait see
the run at the same moments, at most twice a second: what is made of a moment is made once, and a
reader that asks again at once has to wait for the next one.
"""

from __future__ import annotations

import asyncio
import gzip
import math
from collections.abc import Mapping
from typing import Final
from weakref import WeakSet

from aiohttp import web

from reporter.aggregator.api.status_document import Moment, Part
from reporter.aggregator.context import Context
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.aggregator.server.connection import Connection
from reporter.run.plan import Key
from reporter.run.state import at_rest

WAITING: Final = 32  # readers; more are answered at once
PACE: Final = 0.5  # seconds between two moments
_MOMENTS: Final = 100  # whose time is remembered
_SHARED: Final = 64  # answers that are kept for other readers of the same revision
_AGE, _LARGE_AGE, _FULL_AGE = 1.0, 10.0, 30.0  # seconds for which they are
_LARGE: Final = 2**20  # bytes
_WHOLE: Final = Part()
_ROOM: Final = 16 * 2**20  # bytes of whole documents that are kept, or on their way to slow readers
_OVER: Final = Answer(204)
_BUSY: Final = answers.text(
    503, "too many large responses are being read slowly", (answers.retry_later(5),)
)


class Readers:
    """Those who read the status of a run."""

    def __init__(self, context: Context) -> None:
        self._context, self._store = context, context.store
        self.moment, self._due = self.look(), 0.0
        """The run as those who wait were last shown it."""
        self._waiting = set[asyncio.Event]()
        self._first_shown = dict[int, float]()  # by revision, on the clock of the heartbeats
        self._closed = False
        self._made = dict[tuple[Part, bool], tuple[int, float, Answer]]()  # of that revision, then
        self._wholes = WeakSet[Answer]()
        self._making = asyncio.Lock()

    def look(self) -> Moment:
        """Return the run as it is now."""
        context = self._context
        interval = context.rhythm.interval
        return Moment(self._store.snapshot(), context.wall(), context.clock(), interval)

    async def part(self, request: web.BaseRequest, part: Part) -> Answer:
        """Answer with the run as it is now or, where that is asked for, once there is news."""
        if part.since is None:
            moment = self.look()
            return unchanged(request, moment) or await self._encoded(request, moment, part)
        assert isinstance(request.protocol, Connection)
        moment = await self.newer(part.since, part.wait, request.protocol.gone())
        if at_rest(moment.snapshot) and moment.snapshot.revision == part.since:
            return _OVER
        return await self._encoded(request, moment, part)

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed = True
        for woken in self._waiting:
            woken.set()

    # -- waiting for news ------------------------------------------------------------------------

    def show(self, known: int) -> Moment:
        """Return the run as it is shown now, and no older than a reader knows it."""
        now = asyncio.get_running_loop().time()
        if now >= self._due or known > self.moment.snapshot.revision:
            self.moment, self._due = self.look(), now + PACE
            self._first_shown.setdefault(self.moment.snapshot.revision, self.moment.mono)
            if len(self._first_shown) > _MOMENTS:
                del self._first_shown[next(iter(self._first_shown))]
        return self.moment

    async def newer(self, since: int, seconds: float, gone: asyncio.Future[None]) -> Moment:
        """Return the run once it is newer than `since`, or as it is when the time is over.

        Nobody waits who is `gone`, nor for a run that is over.
        """
        if at_rest(self.show(since).snapshot) or len(self._waiting) >= WAITING:
            return self.moment
        woken = asyncio.Event()

        def wake(_: object = None) -> None:
            woken.set()

        self._waiting.add(woken)
        gone.add_done_callback(wake)
        unsubscribe = self._store.subscribe(wake)
        try:
            async with asyncio.timeout(seconds):
                while since == self.show(since).snapshot.revision and not (
                    self._closed or gone.done()
                ):
                    woken.clear()
                    if since == self._store.snapshot().revision:
                        await woken.wait()
                    await asyncio.sleep(self._due - asyncio.get_running_loop().time())
        except TimeoutError:
            pass
        finally:
            unsubscribe()
            gone.remove_done_callback(wake)
            self._waiting.discard(woken)
        return self.show(since)

    # -- answers that are shared -----------------------------------------------------------------

    async def _encoded(self, request: web.BaseRequest, moment: Moment, part: Part) -> Answer:
        """Make a part of the run's status, once for all who ask for it while nothing changes.

        In a thread: with thousands of entries it takes longer than a worker should wait.
        """
        wanted, revision = (part, answers.takes_gzip(request)), moment.snapshot.revision
        async with self._making:
            old, made_at, answer = self._made.get(wanted, (-1, -math.inf, _BUSY))
            age, large = moment.mono - made_at, len(answer.content) > _LARGE
            # Anything ahead of the revision is news to a client that asks for the run as it is now.
            same = old == revision and not (moment.snapshot.ahead and part.since is None)
            fresh = same and age < (_LARGE_AGE if large else _AGE)
            if fresh or (self._full(part) and age < _FULL_AGE):
                return answer
            del answer
            shown = revision, self.moment.snapshot.revision
            self._made = {name: made for name, made in self._made.items() if made[0] in shown}
            self._made.pop(wanted, None)
            if self._full(part):
                self._made.clear()  # what nobody reads any more makes room
                if self._full(part):
                    return _BUSY
            since = revision if part.since is None else part.since
            # 0 where it is forgotten since when a reader can have known that revision.
            changed, heard_after = self._store.changes(since), self._first_shown.get(since, 0.0)
            made = await asyncio.to_thread(_made, moment, *wanted, changed, heard_after)
            if len(self._made) < _SHARED:
                self._made[wanted] = revision, moment.mono, made
            if part == _WHOLE:
                self._wholes.add(made)
            return made

    def _full(self, part: Part) -> bool:
        """Whether whole documents, kept or on their way, leave no room for another one."""
        return part == _WHOLE and sum(len(answer.content) for answer in self._wholes) > _ROOM


def _made(
    moment: Moment, part: Part, zipped: bool, changed: Mapping[Key, int], heard_after: float
) -> Answer:
    body = part.encode(moment, changed, heard_after)
    return json_of(gzip.compress(body, 1) if zipped else body, moment, zipped=zipped)


def unchanged(request: web.BaseRequest, moment: Moment) -> Answer | None:
    """Answer a reader that knows the revision, unless there is more than that."""
    known = not moment.snapshot.ahead and answers.matches(request, _tag(moment))
    return answers.not_modified(_tag(moment)) if known else None


def _tag(moment: Moment) -> str:
    # Weak: ages and the encoding differ.
    return f'W/"{moment.snapshot.plan.run}/{moment.snapshot.revision}"'


def json_of(body: bytes, moment: Moment, *, zipped: bool = False) -> Answer:
    """Answer with a document of that moment."""
    encoding = (("Content-Encoding", "gzip"),) if zipped else ()
    more = (("ETag", _tag(moment)), ("Cache-Control", "no-cache"), ("Vary", "Accept-Encoding"))
    return Answer(200, body, (*answers.JSON, *more, *encoding))
