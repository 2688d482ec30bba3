"""A status listener with streams of events, and their readers."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from reporter.aggregator.http import Audience, Events, Listener, Pace, StatusApp
from reporter.core.run.plan import Key, parse_plan
from reporter.core.run.progress import Progress
from reporter.core.run.record import Rank, Record
from reporter.core.run.snapshot import Phase
from reporter.metrics.page import Page
from tests.aggregators.listening import listening
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator_http.scene import PLAN, Seen
from tests.integration.aggregator_http.wire import HANG, Wire, head

LOCAL = "localhost:8081"


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

    def __init__(self, store: QuickStore, app: StatusApp, listener: Listener) -> None:
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

    async def hear(
        self, raw: socket.socket, context: ssl.SSLContext | None = None, *, host: str = LOCAL
    ) -> Reader:
        """Read the head of a stream; with a context, shake hands and ask for it first."""
        name = "127.0.0.1" if context else None
        opened = await asyncio.open_connection(
            sock=raw, limit=2**24, ssl=context, server_hostname=name
        )
        reader = Reader(*opened)
        self.readers.append(reader)
        if context is not None:
            opened[1].write(head("GET", "/events", host=host))
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
        """Let a plugin say something, and have it written: that is one revision."""
        await self.store.record_progress(key, Progress(msg=msg), None, at=1.0)
        assert await self.store.probe()

    async def finish(self, error: str | None = None) -> None:
        """Bring the run to its end."""
        for key in self.store.snapshot().entries:
            await self.store.record_result(key, RESULT)
        await self.store.advance_run(Phase.POST_PROCESSING)
        if error:
            await self.store.packing_failed(error, at=1.0)
        await self.store.advance_run(Phase.CLOSED, error=error)

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
    instead_of: Scene | None = None,
    audience: Audience = Audience.LOCAL,
    server: ssl.SSLContext | None = None,
) -> AsyncIterator[Scene]:
    """Serve a run's status until the end of the block; `instead_of` a process that ends now."""
    store, seen = QuickStore(), Seen()
    if instead_of is not None:
        await instead_of.store.close()
        store = QuickStore(instead_of.store.path)
    await store.open_run(parse_plan(run_plan or PLAN), now=time.time())
    events = Events(store, clock=time.monotonic, wall=time.time, pace=pace)
    app = StatusApp(store.snapshot, Healthy(), _no_metrics, audience, seen, events=events)
    listener = listening(app, seen, ssl_context=server)
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
