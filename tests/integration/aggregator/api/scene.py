"""An aggregator's worker listener at work, with files on the disk."""

import asyncio
import base64
import functools
import hashlib
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from reporter.aggregator.api.worker_app import WorkerApp
from reporter.aggregator.certificates import tls
from reporter.aggregator.intake import Intake
from reporter.aggregator.server.listener import Listener
from reporter.ledger import Store
from reporter.ledger.layout import Layout
from reporter.pki.issuing import Pair
from reporter.run.entry import Entry
from reporter.run.plan import Key, parse_plan
from reporter.run.state import Phase
from reporter.run.upload import Allowance
from tests.aggregators import run_certificates as certs
from tests.aggregators.contexts import context
from tests.aggregators.listening import constants, listening
from tests.aggregators.stores import QuickStore
from tests.archives.packed import packed
from tests.integration.aggregator.api.wire import HANG, Reply, Wire, connected, request

E2E = Key("e2e", "global")
NODE1 = Key("sysd", "node1")
NODE2 = Key("sysd", "node2")
RESULT = {
    E2E: "/api/v1/results/global/e2e",
    NODE1: "/api/v1/results/by-node/node1/sysd",
    NODE2: "/api/v1/results/by-node/node2/sysd",
}
PROGRESS = "/api/v1/progress/global/e2e"
HEALTH = "/api/v1/health/global/e2e"
PLAN = {
    "run": certs.RUN,
    "plugins": [{"name": "e2e"}, {"name": "sysd", "nodes": ["node1", "node2"]}],
}


def server_context() -> ssl.SSLContext:
    """The worker listener's context."""
    return tls.worker_context(certs.authority().certificate, certs.server())


class Seen:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, int]] = []
        self.received: list[int] = []
        self.handshakes: list[tuple[str, str]] = []
        self.refusals: list[tuple[str, str, str, str]] = []
        self.surprises: list[BaseException] = []
        self.changed = asyncio.Event()

    def request(self, route: str, code: int, seconds: float, received: int) -> None:
        assert seconds >= 0
        self.requests.append((route, code))
        self.received.append(received)
        self.changed.set()

    def refused(self, what: str, why: str, peer: str, certificate: str) -> None:
        self.refusals.append((what, why, peer, certificate))

    def tls_failure(self, reason: str, peer: str, text: str) -> None:
        assert text
        self.handshakes.append((reason, peer))
        self.changed.set()

    def unexpected(self, where: str, error: BaseException) -> None:
        self.surprises.append(error)
        self.changed.set()

    async def until(self, done: Callable[[], object]) -> None:
        """Wait for something that comes with an observation."""
        async with asyncio.timeout(HANG):
            while not done():
                self.changed.clear()
                await self.changed.wait()


class Scene:
    """One aggregator. Requests go out with the certificate of their key's plugin."""

    def __init__(
        self, store: Store, listener: Listener, intake: Intake, seen: Seen, layout: Layout
    ) -> None:
        self.store, self.listener, self.intake, self.seen = store, listener, intake, seen
        self.layout = layout
        self.address = ("", 0)

    def connect(self, pair: Pair | None = None, *, context: ssl.SSLContext | None = None) -> Any:
        """Connect as e2e, or with a certificate or context of one's own."""
        chosen = context or certs.client_context(pair or certs.client("e2e"))
        return connected(self.address, chosen)

    async def ask(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *headers: str,
        pair: Pair | None = None,
    ) -> Reply:
        """Make one request on a connection of its own."""
        if pair is None:
            pair = certs.client("sysd" if "/sysd" in target else "e2e")
        async with self.connect(pair) as wire:
            await wire.send(request(method, target, body, *headers))
            return await wire.reply(method=method)

    async def put(self, key: Key, body: bytes, *headers: str) -> Reply:
        """Upload a result."""
        return await self.ask("PUT", RESULT[key], body, *headers)

    async def post(self, body: bytes, *headers: str) -> Reply:
        """Send progress of e2e."""
        return await self.ask("POST", PROGRESS, body, *headers)

    def entry(self, key: Key) -> Entry:
        """What the run knows of a key."""
        return self.store.snapshot().entries[key]

    def files(self) -> dict[str, bytes]:
        """Every file that the tarball would have."""
        return packed(self.layout, self.store.snapshot())

    async def close_run(self) -> None:
        """Bring the run to its end, with whatever is held."""
        await self.store.advance_run(Phase.POST_PROCESSING)

    async def holds(self, wire: Wire, want: bool = True) -> None:
        """Wait until uploads are being read, or none is."""
        async with asyncio.timeout(HANG):
            while bool(self.intake.uploads.active) is not want:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    limits: dict[str, Any] | None = None,
    allowance: Allowance | None = None,
    store: Store | None = None,
    plan: dict[str, Any] | None = None,
    taker: Any = None,
    **listener_options: Any,
) -> AsyncIterator[Scene]:
    """Serve one run until the end of the block; nothing unexpected may have happened.

    `limits` are settings and constants by name; `taker` takes uploads in the intake's place.
    """
    given = limits or {}
    settings = {name: value for name, value in given.items() if name.islower()}
    stack = ExitStack()
    stack.enter_context(constants(**{name: given[name] for name in given if name.isupper()}))
    seen, store = Seen(), store or QuickStore()
    shared = context(parse_plan(plan or PLAN), folder, store=store, metrics=seen, settings=settings)
    await store.open_run(shared.plan, now=time.time())
    shared.layout.prepare()
    intake = Intake(shared, allowance)
    await intake.recover(store.snapshot())
    app = WorkerApp(shared, taker or intake)
    listener = listening(app, seen, ssl_context=server_context(), **listener_options)
    scene = Scene(store, listener, intake, seen, shared.layout)
    scene.address = await listener.start()
    try:
        yield scene
    finally:
        await listener.close(grace=1.0)
        await intake.close()
        await store.close()
        stack.close()
    assert [] == seen.surprises, seen.surprises
    assert 0 == listener.connections


def situation(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test's coroutine on a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 3 * HANG))

    return run


def digest_header(body: bytes) -> str:
    """A digest as headers show it."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
