"""`/events`: what a reader of the run is told, and when it is told no more."""

import asyncio
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pytest

from reporter.aggregator.certificates import tls
from reporter.aggregator.http import Audience, Events, Limits, Listener, Pace, StatusApp
from reporter.aggregator.store import MemoryStore
from reporter.core.run.entry import Rank, Record
from reporter.core.run.plan import Key, parse_plan
from reporter.core.run.progress import Progress
from reporter.core.run.snapshot import Phase
from reporter.metrics.page import Page
from tests.aggregators.served import BOUND, Aggregator, plan
from tests.integration.aggregator_http import certs
from tests.integration.aggregator_http.scene import E2E, NODE1, PLAN, Seen, situation
from tests.integration.aggregator_http.wire import HANG, Wire, head

LOCAL = "localhost:8081"
GRACE = 5.0
"""A stopping process waits so long for requests at work, seconds."""
QUICK = Pace(flush=0.02, heard=0.1, comment=30.0, patience=30.0)
RESULT = Record(Rank.RESULT, 1.0, digest="ab" * 32, size=3)


@dataclass(frozen=True)
class Told:
    """One event as EventSource would dispatch it; `id` is the last that was given."""

    name: str
    id: str
    data: Any


class Reader:
    """One stream: its events in order, comments kept apart."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status, self.headers = 0, dict[str, str]()
        self.comments, self.retry, self.id = 0, "", ""
        self.came: list[float] = []

    async def begin(self) -> None:
        """Read the head."""
        raw = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), HANG)
        status, *lines = raw.decode().strip().split("\r\n")
        self.status = int(status.split()[1])
        self.headers = {
            name.lower(): value for name, value in (line.split(": ", 1) for line in lines)
        }

    async def next(self) -> Told | None:
        """Return the next event, nothing at the end of the stream."""
        while True:
            try:
                block = await asyncio.wait_for(self._reader.readuntil(b"\n\n"), HANG)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            fields: dict[str, str] = {}
            for line in block.decode().strip("\n").split("\n"):
                name, _, value = line.partition(": ")
                self.comments += name == ""
                fields[name] = value
            self.retry = fields.get("retry", self.retry)
            self.id = fields.get("id", self.id)
            if "data" in fields:
                self.came.append(time.monotonic())
                return Told(fields["event"], self.id, json.loads(fields["data"]))

    async def until(self, name: str) -> list[Told]:
        """Return the events up to one of that name."""
        events: list[Told] = []
        while not events or events[-1].name != name:
            event = await self.next()
            assert event is not None, f"ended after {events}"
            events.append(event)
        return events

    async def rest(self) -> list[Told]:
        """Return all events until the stream ends."""
        events = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events

    def cut(self) -> None:
        """Be gone, without a word."""
        self._writer.transport.abort()


class Scene:
    """A status listener with streams."""

    def __init__(self, store: MemoryStore, app: StatusApp, listener: Listener) -> None:
        self.store, self.app, self.listener = store, app, listener
        self.address = ("", 0)
        self.readers: list[Reader] = []
        self.sockets: list[socket.socket] = []

    async def read(
        self, last_id: str | None = None, *, method: str = "GET", host: str = LOCAL
    ) -> Reader:
        """Open a stream and read its head."""
        return await self.hear(await self.dial(last_id, method=method, host=host))

    async def dial(
        self,
        last_id: str | None = None,
        *,
        method: str = "GET",
        host: str = LOCAL,
        buffer: int = 0,
        ask: bool = True,
    ) -> socket.socket:
        """Ask for a stream and read nothing; maybe with a small receive buffer."""
        raw = socket.socket()
        self.sockets.append(raw)
        if buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        raw.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, self.address)
        headers = [f"Last-Event-ID: {last_id}"] if last_id is not None else []
        if not ask:
            return raw
        await loop.sock_sendall(raw, head(method, "/events", *headers, host=host))
        return raw

    async def hear(self, raw: socket.socket, context: ssl.SSLContext | None = None) -> Reader:
        """Read the head of a stream; with a context, shake hands and ask for it first."""
        name = "127.0.0.1" if context else None
        opened = await asyncio.open_connection(
            sock=raw, limit=2**24, ssl=context, server_hostname=name
        )
        reader = Reader(*opened)
        self.readers.append(reader)
        if context is not None:
            opened[1].write(head("GET", "/events", host=LOCAL))
        await reader.begin()
        return reader

    async def status(self) -> Any:
        """Return the document of `/status`."""
        wire = Wire(*await asyncio.open_connection(*self.address))
        await wire.send(head("GET", "/status", host=LOCAL))
        try:
            return json.loads((await wire.reply()).body)
        finally:
            wire.cut()

    async def progress(self, key: Key, msg: str) -> None:
        """Let a plugin say something."""
        await self.store.record_progress(key, Progress(msg=msg), None, at=1.0)

    async def finish(self) -> None:
        """Bring the run to its end."""
        for key in self.store.snapshot().entries:
            await self.store.record_result(key, RESULT)
        await self.store.advance_run(Phase.POST_PROCESSING)
        await self.store.advance_run(Phase.CLOSED)

    async def connections(self, number: int) -> None:
        """Wait until there are so many."""
        async with asyncio.timeout(HANG):
            while self.listener.connections != number:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(
    pace: Pace = QUICK,
    *,
    run_plan: dict[str, Any] | None = None,
    audience: Audience = Audience.LOCAL,
    server: ssl.SSLContext | None = None,
) -> AsyncIterator[Scene]:
    """Serve a run's status until the end of the block."""
    store, seen = MemoryStore(), Seen()
    await store.open_run(parse_plan(run_plan or PLAN), now=time.time())
    events = Events(
        store.snapshot, store.subscribe, clock=time.monotonic, wall=time.time, pace=pace
    )
    app = StatusApp(store.snapshot, Healthy(), _no_metrics, audience, seen, events=events)
    listener = Listener(
        app, ssl_context=server, host="127.0.0.1", port=0, limits=Limits(), observer=seen
    )
    scene = Scene(store, app, listener)
    scene.address = await listener.start()
    try:
        yield scene
    finally:
        app.close()
        await listener.close(grace=1.0)
        await store.close()
        for reader in scene.readers:
            reader.cut()
            with suppress(ConnectionError):
                await reader._writer.wait_closed()
        for raw in scene.sockets:
            raw.close()
    assert [] == seen.surprises
    assert 0 == listener.connections


class Healthy:
    """Nothing is wrong."""

    alive = True

    def checks(self) -> dict[str, str | None]:
        """Name nothing."""
        return {}


def _no_metrics(accept: str) -> Page:
    return Page(b"", "text/plain", False)


def applied(document: dict[str, Any], events: list[Told]) -> dict[str, Any]:
    """A status document after these events, as a page keeps it."""
    for event in events:
        if event.name == "snapshot":
            document = event.data
        elif event.name == "run":
            document = document | event.data
        elif event.name == "entry":
            document["plugins"] = [
                event.data if each["key"] == event.data["key"] else each
                for each in document["plugins"]
            ]
    return document


def without_time(document: dict[str, Any]) -> dict[str, Any]:
    """A status document without what the clock alone changes."""
    plugins = [{**each, "last-heartbeat": None} for each in document["plugins"]]
    return {**document, "time": "", "plugins": plugins}


@situation
async def test_the_first_event_is_the_whole_run():
    """A stream of events, with the time to wait before a reconnect, and the revision as id."""
    async with serving() as scene:
        reader = await scene.read()
        (event,) = await reader.until("snapshot")
        status = await scene.status()

        assert 200 == reader.status
        assert "text/event-stream; charset=utf-8" == reader.headers["content-type"]
        assert "no-store" == reader.headers["cache-control"]
        assert "3000" == reader.retry
        assert (str(status["revision"]), without_time(status)) == (
            event.id,
            without_time(event.data),
        )


@situation
async def test_a_change_is_told():
    """The entry as `/status` lists it, then the run without its entries; the id comes last."""
    async with serving() as scene:
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        await scene.progress(NODE1, "hello\nworld \u2028 ☃")
        entry, run = await reader.until("run")
        status = await scene.status()

        assert ("entry", first.id) == (entry.name, entry.id)
        assert "hello\nworld \u2028 ☃" == entry.data["progress"]["msg"]
        assert status["plugins"][1] == entry.data
        assert str(status["revision"]) == run.id
        del status["plugins"]
        assert status | {"time": ""} == run.data | {"time": ""}


@situation
async def test_many_changes_of_one_entry_are_told_once():
    """Only the newest state of an entry, not one event per update."""
    async with serving(Pace(flush=0.3)) as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        for number in range(200):
            await scene.progress(E2E, f"step {number}")
        events = await reader.until("run")

        assert ["entry", "run"] == [event.name for event in events]
        assert "step 199" == events[0].data["progress"]["msg"]


@situation
async def test_no_more_than_two_flushes_a_second():
    """However often the run changes: here the same with a twentieth of the time."""
    flush = 0.1
    async with serving(Pace(flush=flush)) as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        runs = 0
        began = time.monotonic()
        while runs < 5:
            await scene.progress(E2E, str(time.monotonic()))
            with suppress(TimeoutError):
                async with asyncio.timeout(0.005):
                    await reader.until("run")
                    runs += 1

        assert time.monotonic() - began >= 4 * flush


@situation
async def test_resume():
    """K16: who was away is told what has changed since, and nothing else."""
    async with serving() as scene:
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        await scene.progress(E2E, "before")
        known = applied(first.data, await reader.until("run"))
        reader.cut()
        await scene.connections(0)
        await scene.progress(NODE1, "while away")
        await scene.progress(NODE1, "while away, too")
        again = await scene.read(reader.id)
        events = await again.until("run")
        status = await scene.status()

        assert ["entry", "run"] == [event.name for event in events]
        assert "sysd/node1" == events[0].data["key"]
        assert str(status["revision"]) == again.id
        assert without_time(status) == without_time(applied(known, events))


@situation
async def test_resume_when_nothing_has_changed():
    """K16: silence until something does."""
    async with serving() as scene:
        (first,) = await (await scene.read()).until("snapshot")
        again = await scene.read(first.id)
        await scene.progress(E2E, "now")

        assert ["entry", "run"] == [event.name for event in await again.until("run")]


@pytest.mark.parametrize("last_id", ["", "0", "999999", "-1", "1e3", "x", "٣", "9" * 30])
@situation
async def test_an_id_that_is_not_known(last_id):
    """K16: of another process, another run, or nonsense: the whole run again."""
    async with serving() as scene:
        reader = await scene.read(last_id)

        assert "snapshot" == (await reader.until("snapshot"))[0].name


@situation
async def test_an_id_that_is_too_old():
    """K16: beyond 1,000 revisions the whole run again; 1,000 are still resumed."""
    async with serving() as scene:
        await scene.progress(E2E, "begin")
        (first,) = await (await scene.read()).until("snapshot")
        for number in range(1000):
            await scene.progress(E2E, str(number))
        resumed = await scene.read(first.id)
        assert ["entry", "run"] == [event.name for event in await resumed.until("run")]
        await scene.progress(E2E, "one more")
        too_old = await scene.read(first.id)

        assert "snapshot" == (await too_old.until("snapshot"))[0].name


@situation
async def test_a_reader_that_was_cut_off_in_the_middle():
    """The id comes with the last event of what belongs together, so nothing is lost."""
    async with serving() as scene:
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        await scene.progress(E2E, "one")
        await scene.progress(NODE1, "two")
        cut_after = await reader.until("entry")
        reader.cut()
        again = await scene.read(cut_after[-1].id)
        events = await again.until("run")

        assert first.id == cut_after[-1].id
        assert ["e2e/global", "sysd/node1"] == [event.data["key"] for event in events[:-1]]


@situation
async def test_the_end():
    """K16: everything that was decided, then `end`, then the stream is over."""
    async with serving() as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        await scene.finish()
        events = await reader.rest()
        (run,) = [event for event in events if event.name == "run"][-1:]

        assert "end" == events[-1].name
        assert {"revision": run.data["revision"]} == events[-1].data
        assert (True, "complete") == (run.data["final"], run.data["status"])
        await scene.connections(0)


@situation
async def test_a_reconnect_after_the_end():
    """K16: 204 without a body, which stops EventSource; also when the revision has grown since."""
    async with serving() as scene:
        reader = await scene.read()
        await scene.finish()
        await reader.rest()
        replies = [await scene.read(reader.id)]
        scene.store.renew()
        replies.append(await scene.read(reader.id))

        assert [204, 204] == [reply.status for reply in replies]
        assert not {"content-length", "transfer-encoding"} & set(replies[0].headers)


@situation
async def test_who_missed_the_end():
    """A reader that comes late, or was away, is told how it ended; then it is over for it, too."""
    async with serving() as scene:
        (first,) = await (await scene.read()).until("snapshot")
        await scene.finish()
        new, away = await scene.read(), await scene.read(first.id)
        told = await new.rest(), await away.rest()

        assert ["snapshot", "end"] == [event.name for event in told[0]]
        assert ["entry", "entry", "entry", "run", "end"] == [event.name for event in told[1]]
        assert [204, 204] == [(await scene.read(each.id)).status for each in (new, away)]


@situation
async def test_a_run_that_ended_without_a_tarball():
    """What was impossible is the end, too."""
    async with serving() as scene:
        reader = await scene.read()
        for key in scene.store.snapshot().entries:
            await scene.store.record_result(key, RESULT)
        await scene.store.advance_run(Phase.POST_PROCESSING)
        await scene.store.advance_run(Phase.CLOSED, error="disk full")
        events = await reader.rest()

        assert ("run", "disk full") == (events[-2].name, events[-2].data["error"])
        assert "end" == events[-1].name


@situation
async def test_heartbeats_are_told_without_a_new_revision():
    """Ages change all the time: told seldom, with the id that the reader already has."""
    async with serving() as scene:
        scene.store.record_heartbeat(E2E, time.monotonic() - 60, beat=True)
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        scene.store.record_heartbeat(E2E, time.monotonic(), beat=True)
        (event,) = await reader.until("entry")

        assert (60, 0) == (
            first.data["plugins"][0]["last-heartbeat"],
            event.data["last-heartbeat"],
        )
        assert first.id == event.id


@situation
async def test_comments_when_nothing_happens():
    """So that proxies keep the connection, and a peer that vanished is noticed."""
    async with serving(Pace(comment=0.05)) as scene:
        reader = await scene.read()
        await reader.until("snapshot")
        waiting = asyncio.create_task(reader.next())
        async with asyncio.timeout(HANG):
            while reader.comments < 3:
                await asyncio.sleep(0.01)
        waiting.cancel()


@situation
async def test_the_33rd_stream():
    """K16: 503; a place is free again as soon as a reader is gone."""
    async with serving() as scene:
        readers = [await scene.read() for _ in range(32)]
        for reader in readers:
            await reader.until("snapshot")
        refused = await scene.read()
        readers[7].cut()
        async with asyncio.timeout(HANG):
            while (admitted := await scene.read()).status == 503:
                await asyncio.sleep(0.01)

        assert [200] * 32 == [reader.status for reader in readers]
        assert (503, "5") == (refused.status, refused.headers["retry-after"])
        assert 200 == admitted.status


@situation
async def test_a_reader_that_does_not_read():
    """K16: closed when it takes nothing for its time; others see everything meanwhile."""
    nodes = [f"node-{number}" for number in range(5000)]
    run_plan = {"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}
    async with serving(Pace(flush=0.02, patience=0.5), run_plan=run_plan) as scene:
        await scene.dial(buffer=4096)
        reader = await scene.read()
        (first,) = await reader.until("snapshot")
        key = Key("p", "node-77")
        await scene.progress(key, "news")
        entry, _ = await reader.until("run")
        assert "news" == entry.data["progress"]["msg"]
        await scene.connections(1)
        assert 5000 == len(first.data["plugins"])


@situation
async def test_what_a_slow_reader_gets():
    """It skips states, and in the end it knows what everybody knows."""
    nodes = [f"node-{number}" for number in range(2000)]
    run_plan = {"run": certs.RUN, "plugins": [{"name": "p", "nodes": nodes}]}
    async with serving(Pace(flush=0.01, patience=30.0), run_plan=run_plan) as scene:
        deaf = await scene.dial(buffer=4096)
        for number in range(50):
            for node in nodes[::40]:
                await scene.progress(Key("p", node), f"{number} {'x' * 500}")
            await asyncio.sleep(0.01)
        slow = await scene.hear(deaf)
        revision = scene.store.snapshot().revision
        document: dict[str, Any] = {}
        entries = 0
        while document.get("revision") != revision:
            event = await slow.next()
            assert event is not None
            entries += event.name == "entry"
            document = applied(document, [event])

        assert without_time(await scene.status()) == without_time(document)
        assert entries < 50 * 50 / 2


@situation
async def test_who_may_read():
    """K15: as `/status`."""
    async with serving() as scene:
        assert 403 == (await scene.read(host="evil.example")).status
    async with serving(audience=Audience.ANY) as scene:
        assert 200 == (await scene.read(host="evil.example")).status


@situation
async def test_other_methods():
    """HEAD gets the head alone, the rest 405."""
    async with serving() as scene:
        head_only = await scene.read(method="HEAD")
        refused = await scene.read(method="POST")

        assert (200, "text/event-stream; charset=utf-8") == (
            head_only.status,
            head_only.headers["content-type"],
        )
        assert [] == await head_only.rest()
        assert 405 == refused.status


@situation
async def test_the_service_stops():
    """Streams end at once and without `end`: the run goes on, and readers will come back."""
    async with serving() as scene:
        reader = await scene.read()
        scene.app.close()
        events = await reader.rest()
        refused = await scene.read()

        assert ["snapshot"] == [event.name for event in events]
        assert 503 == refused.status


@situation
async def test_nothing_is_done_for_nobody():
    """When the last reader is gone no timer and no subscription is left."""
    async with serving() as scene:
        for _ in range(2):
            reader = await scene.read()
            await reader.until("snapshot")
            assert 1 == len(scene.store._subscribers)
            reader.cut()
            await scene.connections(0)
            assert 0 == len(scene.store._subscribers)


@situation
async def test_over_tls():
    """K15: with a certificate that the listener knows; without one 403."""
    context = tls.worker_context(certs.authority().pem, certs.server())
    context.verify_mode = ssl.CERT_OPTIONAL
    async with serving(audience=Audience.CERTIFIED, server=context) as scene:
        pair = certs.authority().issue("reader", "reader")
        known, unknown = [
            await scene.hear(await scene.dial(ask=False), certs.client_context(each))
            for each in (pair, None)
        ]
        await scene.progress(E2E, "m")
        events = await known.until("run")

        assert (200, 403) == (known.status, unknown.status)
        assert ["snapshot", "entry", "run"] == [event.name for event in events]


def test_the_settings_of_streams(tmp_path):
    """How many there may be, how often they are written to, and what a reader may have missed."""
    flags = ("--max-event-streams", "1", "--event-comment-seconds", "1", "--event-history", "0")
    with Aggregator(tmp_path, plan("e2e", []), *flags) as aggregator:
        url = f"http://127.0.0.1:{aggregator.status_port}/events"
        with urllib.request.urlopen(url, timeout=BOUND) as stream:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, timeout=BOUND)
            refused.value.close()
            began = time.monotonic()
            lines = list(takewhile(lambda line: line != b": still here\n", stream))
            waited = time.monotonic() - began
        *_, known = [line[4:].strip().decode() for line in lines if line.startswith(b"id: ")]
        aggregator.worker("e2e").post("global/e2e", msg="news")
        again = urllib.request.Request(url, headers={"Last-Event-ID": known})
        end = time.monotonic() + BOUND
        while True:  # until it is noticed that the first reader is gone
            try:
                stream = urllib.request.urlopen(again, timeout=BOUND)
                break
            except urllib.error.HTTPError as error:
                error.close()
                assert time.monotonic() < end
                threading.Event().wait(0.02)
        with stream:
            events = [stream.readline() for _ in range(3)]

    assert 503 == refused.value.code
    assert waited < 10  # the default is 15
    assert b"event: snapshot\n" == events[2]


def test_a_process_that_stops(tmp_path):
    """SIGTERM ends the streams, and the process does not wait for its readers."""
    with Aggregator(tmp_path, plan("e2e", [])) as aggregator:
        url = f"http://127.0.0.1:{aggregator.status_port}/events"
        with urllib.request.urlopen(url, timeout=BOUND) as stream:
            first = [stream.readline() for _ in range(3)]
            began = time.monotonic()
            code = aggregator.stop()
            rest = stream.read()

    assert [b"retry: 3000\n", b"\n", b"event: snapshot\n"] == first
    assert (0, False) == (code, b"event: end" in rest)
    assert time.monotonic() - began < GRACE
