"""What the status listener serves: probes and metrics for anyone, run data for its audience."""

import asyncio
import gzip
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from aiohttp import web

from reporter.aggregator.http import answers, page
from reporter.aggregator.http.answers import Answer
from reporter.aggregator.http.audience import Audience
from reporter.aggregator.http.encoded import Moment, encode
from reporter.aggregator.http.events import Events, Stream
from reporter.aggregator.http.files import UNREADABLE, File, ResultFiles
from reporter.aggregator.http.observer import Observer
from reporter.aggregator.http.part import Part, read_part
from reporter.aggregator.http.shown import Shown, asked_for
from reporter.aggregator.store.contract import StoreError
from reporter.core.run.beats import INTERVAL
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Snapshot
from reporter.core.run.status import entry_document
from reporter.core.run.target import path_of, segment
from reporter.metrics.page import Page

_ALLOWED = ("GET", "HEAD")
_NOT_ALLOWED = Answer(405, b"", (("Allow", ", ".join(_ALLOWED)),))
_FORBIDDEN = answers.text(
    403,
    "run data is served only to local clients, or to clients with a trusted certificate if client "
    "certificates are enabled",
)
_RUN_DATA = frozenset({"/status", "/events", "/results", *page.PATHS})
_OF_A_KEY = ("/status/", "/results/", "/facts/")
_PROBES = ("/livez", "/healthz", "/readyz")
_SHARED = 16  # answers that are kept for other readers of the same second


class Health(Protocol):
    """What the probes ask. The answers must come at once and carry no run data."""

    @property
    def alive(self) -> bool:
        """Whether this process makes progress, whatever it depends on."""

    def checks(self) -> Mapping[str, str | None]:
        """Name what is needed to serve workers, each with its problem or nothing."""


class Retrieved(Protocol):
    """Who wants to know that the tarball was downloaded."""

    async def __call__(self, *, at: float) -> None:
        """Note it. Raises StoreError."""


class StatusApp:
    """The handler of the status listener.

    `metrics` gets the `Accept` header. `interval` is that of the heartbeats, `clock` the monotonic
    clock they are measured with, `wall` gives Unix time. Without `events` there is no `/events`,
    without `results` no `/results`, without `shown` nothing that is in results. `retrieved` is told
    of each whole download of the tarball by somebody who keeps it.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        health: Health,
        metrics: Callable[[str], Page],
        audience: Audience,
        observer: Observer,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        events: Events | None = None,
        results: ResultFiles | None = None,
        shown: Shown | None = None,
        retrieved: Retrieved | None = None,
    ) -> None:
        self._snapshot, self._health, self._metrics = snapshot, health, metrics
        self._audience, self._observer = audience, observer
        self._interval, self._clock, self._wall = interval, clock, wall
        self._events, self._results, self._shown = events, results, shown
        self._retrieved = retrieved or _not_noted
        self._made, self._made_of = dict[tuple[Part, bool], Answer](), (-1, -1)
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
        if isinstance(answer, File) and answer.whole and _kept(request):
            with suppress(StoreError):  # the store itself says so and goes on trying
                await self._retrieved(at=self._wall())
        if isinstance(answer, Stream):
            await answer.run(request)
        return answer

    def close(self) -> None:
        """End what would never end by itself."""
        if self._events is not None:
            self._events.close()

    async def _serve(self, request: web.BaseRequest) -> tuple[str, web.StreamResponse]:
        path = path_of(request.raw_path)
        if path in _PROBES:
            return "probe", self._checked(request) or self._probe(request, path)
        if path == "/metrics":
            return "metrics", self._checked(request) or self._scrape(request)
        if path in _RUN_DATA or path.startswith(_OF_A_KEY):
            return "status", await self._run_data(request, path)
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

    async def _run_data(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if refusal := self._checked(request):
            return refusal
        if not self._audience.admits(request):
            return _FORBIDDEN
        if asset := page.answer(path, request):
            return asset
        if path == "/events":
            return self._events.answer(request) if self._events else answers.NOT_FOUND
        snapshot = self._snapshot()
        if asked_for(path):
            if self._shown is None:
                return answers.NOT_FOUND
            return await self._shown.answer(request, path, snapshot)
        key, part = _key(path), Part()
        if path == "/status":
            try:
                part = read_part(request.raw_path.partition("?")[2], snapshot)
            except ValueError as error:
                return answers.text(400, str(error))
        elif path != "/results" and (key is None or key not in snapshot.entries):
            return answers.NOT_FOUND
        if path.startswith("/results"):
            return await self._result(key)
        # Weak: ages and the encoding differ.
        tag = f'W/"{snapshot.plan.run}/{snapshot.revision}"'
        # What is ahead of the revision is news to whoever knows that.
        if not snapshot.ahead and answers.matches(request, tag):
            return answers.not_modified(tag)
        moment = Moment(snapshot, self._wall(), self._clock(), self._interval)
        if key is None:
            return await self._part(moment, part, tag, zipped=answers.takes_gzip(request))
        document = entry_document(
            snapshot, key, now=moment.now, mono=moment.mono, interval=self._interval
        )
        return _json(encode(document), tag)

    async def _result(self, key: Key | None) -> web.StreamResponse:
        if self._results is None:
            return answers.NOT_FOUND
        if key is None:
            return await self._results.tarball(self._snapshot())
        return await self._results.one(self._snapshot, key)

    async def _part(self, moment: Moment, part: Part, tag: str, *, zipped: bool) -> Answer:
        """Make a part of the run's status; many pollers of one second share it.

        In a thread: with thousands of entries it takes longer than a worker should wait.
        """
        snapshot = moment.snapshot
        made_of = snapshot.revision, int(moment.now)
        async with self._making:
            if snapshot.ahead or self._made_of != made_of or len(self._made) >= _SHARED:
                self._made, self._made_of = {}, made_of
            answer = self._made.get((part, zipped))
            if answer is None:
                answer = await asyncio.to_thread(_encoded, moment, part, tag, zipped)
                self._made[part, zipped] = answer
            return answer


def _kept(request: web.BaseRequest) -> bool:
    """Whether a download is of the tarball, by somebody who does not only look into it."""
    return path_of(request.raw_path) == "/results" and request.headers.get("Results-Kept") != "no"


async def _not_noted(*, at: float) -> None:
    """Do nothing: nobody wants to know."""


def _encoded(moment: Moment, part: Part, tag: str, zipped: bool) -> Answer:
    body = part.encode(moment)
    return _json(gzip.compress(body, 1) if zipped else body, tag, zipped=zipped)


def _json(body: bytes, tag: str, *, zipped: bool = False) -> Answer:
    encoding = (("Content-Encoding", "gzip"),) if zipped else ()
    more = (("ETag", tag), ("Cache-Control", "no-cache"), ("Vary", "Accept-Encoding"))
    return Answer(200, body, (*answers.JSON, *more, *encoding))


def _key(path: str) -> Key | None:
    match path.split("/"):
        case ["", _, raw_plugin, raw_node]:
            plugin, node = segment(raw_plugin), segment(raw_node)
            return None if plugin is None or node is None else Key(plugin, node)
    return None
