"""What the status listener serves: probes and metrics for anyone, run data for its audience."""

import asyncio
import gzip
import math
import time
from collections.abc import Callable, Mapping
from typing import Protocol
from weakref import WeakSet

from aiohttp import web

from reporter.aggregator.api import page
from reporter.aggregator.api.audience import Audience
from reporter.aggregator.api.details import Shown, asked_for
from reporter.aggregator.api.encoded import Moment, encode
from reporter.aggregator.api.files import CONFIRMED, UNREADABLE, File, ResultFiles
from reporter.aggregator.api.part import Part, read_part
from reporter.aggregator.api.readers import Ledger, Readers
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.aggregator.server.connection import Connection
from reporter.aggregator.server.observer import Observer
from reporter.common.metrics import Page
from reporter.ledger import StoreError
from reporter.run.heartbeats import INTERVAL
from reporter.run.plan import Key
from reporter.run.state import final
from reporter.run.status import entry_document
from reporter.run.target import path_of, segment

_ALLOWED = ("GET", "HEAD")
_NOT_ALLOWED = Answer(405, b"", (("Allow", ", ".join(_ALLOWED)),))
_ONLY_POST = Answer(405, b"", (("Allow", "POST"),))
_NOT_NOTED = answers.text(
    503, "the confirmation cannot be stored, try again", (answers.retry_later(2),)
)
_FORBIDDEN = answers.text(
    403,
    "run data is served only to local clients, or to clients with a trusted certificate if client "
    "certificates are enabled",
)
_RUN_DATA = frozenset({"/status", "/results", *page.PATHS})
_OF_A_KEY = ("/status/", "/results/")
_PROBES = ("/livez", "/healthz", "/readyz")
_OVER = Answer(204)
_BUSY = answers.text(
    503, "too many large responses are being read slowly", (answers.retry_later(5),)
)
_SHARED = 64  # answers that are kept for other readers of the same revision
_AGE, _LARGE_AGE, _FULL_AGE = 1.0, 10.0, 30.0  # seconds for which they are
_LARGE = 2**20  # bytes
_WHOLE = Part()
_ROOM = 16 * 2**20  # bytes of whole documents that are kept, or on their way to slow readers


class Health(Protocol):
    """What the probes ask. The answers must come at once and carry no run data."""

    @property
    def alive(self) -> bool:
        """Whether this process makes progress, whatever it depends on."""

    def checks(self) -> Mapping[str, str | None]:
        """Name what is needed to serve workers, each with its problem or nothing."""


class Retrieved(Protocol):
    """Who wants to know that a client has the tarball."""

    async def __call__(self, *, at: float) -> None:
        """Note it. Raises StoreError."""


class StatusApp:
    """The handler of the status listener.

    `metrics` gets the `Accept` header. `interval` is that of the heartbeats, `clock` the monotonic
    clock they are measured with, `wall` gives Unix time. Without `results` there is no `/results`,
    without `shown` nothing that is in results. `retrieved` is told when a client confirms that it
    has the tarball.
    """

    def __init__(
        self,
        store: Ledger,
        health: Health,
        metrics: Callable[[str], Page],
        audience: Audience,
        observer: Observer,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        results: ResultFiles | None = None,
        shown: Shown | None = None,
        retrieved: Retrieved | None = None,
    ) -> None:
        self._store, self._health, self._metrics = store, health, metrics
        self._audience, self._observer = audience, observer
        self._interval, self._clock, self._wall = interval, clock, wall
        self._results, self._shown = results, shown
        self._retrieved = retrieved or _not_noted
        self._readers = Readers(store, self._look)
        self._made = dict[tuple[Part, bool], tuple[int, float, Answer]]()  # of that revision, then
        self._wholes = WeakSet[Answer]()
        self._making = asyncio.Lock()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        began = self._clock()
        route, answer = await self._serve(request)
        seconds = self._clock() - began
        if isinstance(answer, File) and not await answer.send(request):
            # Its bytes may have gone into the tarball since.
            _, answer = await self._serve(request)
            answer = UNREADABLE if isinstance(answer, File) else answer
        self._observer.request(route, answer.status, seconds, request.content.total_bytes)
        return answer

    def close(self) -> None:
        """Let no reader wait any more."""
        self._readers.close()

    async def _serve(self, request: web.BaseRequest) -> tuple[str, web.StreamResponse]:
        path = path_of(request.raw_path)
        if path in _PROBES:
            return "probe", self._checked(request) or self._probe(request, path)
        if path == "/metrics":
            return "metrics", self._checked(request) or self._scrape(request)
        if path in _RUN_DATA or path.startswith(_OF_A_KEY):
            return await self._run_data(request, path)
        return "other", answers.NOT_FOUND

    def _checked(self, request: web.BaseRequest) -> Answer | None:
        return None if request.method in _ALLOWED else _NOT_ALLOWED

    def _probe(self, request: web.BaseRequest, path: str) -> Answer:
        if path != "/readyz":
            live = self._health.alive
            return answers.text(200 if live else 503, "ok" if live else "not live")
        checks = self._health.checks()
        ready = not any(checks.values())
        query = request.raw_path.partition("?")[2]
        if ready and "verbose" not in query.split("&"):
            return answers.text(200, "ok")
        lines = [
            f"[-]{name}: {problem}" if problem else f"[+]{name} ok"
            for name, problem in checks.items()
        ]
        lines.append("ready" if ready else "not ready")
        return answers.text(200 if ready else 503, "\n".join(lines))

    def _scrape(self, request: web.BaseRequest) -> Answer:
        page = self._metrics(request.headers.get("Accept", ""))
        return Answer(200, page.body, (("Content-Type", page.content_type),))

    async def _run_data(
        self, request: web.BaseRequest, path: str
    ) -> tuple[str, web.StreamResponse]:
        confirming = path == CONFIRMED
        if refusal := _not_posted(request) if confirming else self._checked(request):
            return "status", refusal
        if not self._audience.admits(request):
            return "status", _FORBIDDEN
        if confirming:
            return "status", await self._confirm(request)
        if path == "/status":
            try:
                part = read_part(request.raw_path.partition("?")[2], self._store.snapshot())
            except ValueError as error:
                return "status", answers.text(400, str(error))
            if part.since is not None:
                return "poll", await self._poll(request, part, part.since)
            return "status", await self._part(request, part)
        return "status", await self._one(request, path)

    async def _one(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if asset := page.answer(path, request):
            return asset
        snapshot = self._store.snapshot()
        if asked_for(path):
            if self._shown is None:
                return answers.NOT_FOUND
            return await self._shown.answer(request, path, snapshot)
        key = _key(path)
        if path != "/results" and (key is None or key not in snapshot.entries):
            return answers.NOT_FOUND
        if path.startswith("/results"):
            return await self._result(key)
        assert key is not None
        moment = self._look()
        if unchanged := _unchanged(request, moment):
            return unchanged
        document = entry_document(
            snapshot, key, now=moment.now, mono=moment.mono, interval=self._interval
        )
        return _json(encode(document), moment)

    async def _result(self, key: Key | None) -> web.StreamResponse:
        if self._results is None:
            return answers.NOT_FOUND
        if key is None:
            return await self._results.tarball(self._store.snapshot())
        return await self._results.one(self._store.snapshot, key)

    async def _confirm(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._results is None:
            return answers.NOT_FOUND
        refusal = await self._results.refuses(request, self._store.snapshot())
        if refusal is None:
            try:
                await self._retrieved(at=self._wall())
            except StoreError:
                return _NOT_NOTED
        return refusal or answers.EMPTY

    def _look(self) -> Moment:
        return Moment(self._store.snapshot(), self._wall(), self._clock(), self._interval)

    async def _part(self, request: web.BaseRequest, part: Part) -> Answer:
        """Answer with the run as it is now."""
        moment = self._look()
        return _unchanged(request, moment) or await self._encoded(request, moment, part)

    async def _poll(self, request: web.BaseRequest, part: Part, since: int) -> Answer:
        """Answer with what is new, once there is something."""
        assert isinstance(request.protocol, Connection)
        moment = await self._readers.newer(since, part.wait, request.protocol.gone())
        if final(moment.snapshot) and moment.snapshot.revision == since:
            return _OVER
        return await self._encoded(request, moment, part)

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
            shown = revision, self._readers.moment.snapshot.revision
            self._made = {name: made for name, made in self._made.items() if made[0] in shown}
            self._made.pop(wanted, None)
            if self._full(part):
                self._made.clear()  # what nobody reads any more makes room
                if self._full(part):
                    return _BUSY
            since = revision if part.since is None else part.since
            changed, heard_after = self._store.changes(since), self._readers.first_shown(since)
            made = await asyncio.to_thread(_made, moment, *wanted, changed, heard_after)
            if len(self._made) < _SHARED:
                self._made[wanted] = revision, moment.mono, made
            if part == _WHOLE:
                self._wholes.add(made)
            return made

    def _full(self, part: Part) -> bool:
        """Whether whole documents, kept or on their way, leave no room for another one."""
        return part == _WHOLE and sum(len(answer.content) for answer in self._wholes) > _ROOM


def _not_posted(request: web.BaseRequest) -> Answer | None:
    return None if request.method == "POST" else _ONLY_POST


async def _not_noted(*, at: float) -> None:
    """Do nothing: nobody wants to know."""


def _made(
    moment: Moment, part: Part, zipped: bool, changed: Mapping[Key, int], heard_after: float
) -> Answer:
    body = part.encode(moment, changed, heard_after)
    return _json(gzip.compress(body, 1) if zipped else body, moment, zipped=zipped)


def _unchanged(request: web.BaseRequest, moment: Moment) -> Answer | None:
    """Answer a reader that knows the revision, unless there is more than that."""
    known = not moment.snapshot.ahead and answers.matches(request, _tag(moment))
    return answers.not_modified(_tag(moment)) if known else None


def _tag(moment: Moment) -> str:
    # Weak: ages and the encoding differ.
    return f'W/"{moment.snapshot.plan.run}/{moment.snapshot.revision}"'


def _json(body: bytes, moment: Moment, *, zipped: bool = False) -> Answer:
    encoding = (("Content-Encoding", "gzip"),) if zipped else ()
    more = (("ETag", _tag(moment)), ("Cache-Control", "no-cache"), ("Vary", "Accept-Encoding"))
    return Answer(200, body, (*answers.JSON, *more, *encoding))


def _key(path: str) -> Key | None:
    match path.split("/"):
        case ["", _, raw_plugin, raw_node]:
            plugin, node = segment(raw_plugin), segment(raw_node)
            return None if plugin is None or node is None else Key(plugin, node)
    return None
