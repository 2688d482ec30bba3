"""Results that are served, over an intake that takes them in."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from reporter.aggregator.api import status_app
from reporter.aggregator.api.files import Results
from reporter.aggregator.api.status_app import StatusApp
from reporter.aggregator.intake import Intake
from reporter.aggregator.judging import Judging
from reporter.aggregator.server.listener import Listener
from reporter.aggregator.tarball.finish import Finish
from reporter.ledger.layout import Layout
from reporter.run.plan import Key, Plan
from reporter.run.record import Cause, Failure
from reporter.run.state import Phase
from reporter.run.upload import Meta, UploadConclusion, UploadOutcome
from tests.aggregators.contexts import context
from tests.aggregators.listening import constants, listening
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.api.scene import Seen
from tests.integration.aggregator.api.test_status import Health
from tests.integration.aggregator.api.wire import HANG, Reply, connected, head
from tests.integration.aggregator.intake.scene import Sending, pieces

GONE = Failure("final", 1.0, "pod gone", Cause.POD_FAILED)


@dataclass
class Site:
    """A run whose results are served."""

    plan: Plan
    store: QuickStore
    intake: Intake
    finish: Finish
    layout: Layout
    address: tuple[str, int]
    listener: Listener
    seen: Seen

    async def put(self, key: Key, body: bytes, meta: Meta | None = None, **head: object) -> None:
        """Take a result in."""
        sender = Sending(pieces(body))
        ended: UploadConclusion = await self.intake.take(key, meta or Meta(**head), sender)
        assert UploadOutcome.ACCEPTED is ended.outcome, ended

    async def judged(self, key: Key) -> None:
        """Wait for its verdict."""
        changed = asyncio.Event()
        unsubscribe = self.store.subscribe(changed.set)
        async with asyncio.timeout(HANG):
            while not self.store.entry(key).record.verdict:
                changed.clear()
                await changed.wait()
        unsubscribe()

    async def get(
        self, path: str, *headers: str, method: str = "GET", host: str = "localhost"
    ) -> Reply:
        """Ask for something."""
        async with connected(self.address, None) as wire:
            await wire.send(head(method, path, *headers, host=host))
            return await wire.reply(method=method)

    async def confirm(self, body: bytes, host: str = "localhost") -> Reply:
        """Say that the tarball is here."""
        length = f"Content-Length: {len(body)}"
        async with connected(self.address, None) as wire:
            await wire.send(head("POST", "/results/retrieved", length, host=host), body)
            return await wire.reply()

    def blob(self, key: Key) -> Path:
        """The file of what a key has sent."""
        return self.layout.blobs / self.store.entry(key).record.blob

    async def pack(self) -> None:
        """Bring the run to its end."""
        for key in self.plan.keys:
            if not self.store.entry(key).terminal:
                await self.store.mark_failed(key, GONE)
        await self.store.advance_run(Phase.POST_PROCESSING)
        tar = await self.finish.package(self.store.snapshot())
        await self.store.advance_run(Phase.CLOSED, tar=tar)


@asynccontextmanager
async def serving(
    folder: Path,
    plan: Plan,
    *,
    keep_blobs: bool = False,
    judged: bool = False,
    tls: ssl.SSLContext | None = None,
    results: type[Results] = Results,
    before_commit: Callable[[], None] = lambda: None,
    **changed: float,
) -> AsyncIterator[Site]:
    """Serve a run until the end of the block, and maybe have its results judged."""
    store, seen = QuickStore(before_commit=before_commit), Seen()
    await store.open_run(plan, now=time.time())
    shared = context(plan, folder, store=store, metrics=seen)
    shared.layout.prepare()
    intake = Intake(shared)
    await intake.recover(store.snapshot())
    with patch.object(status_app, "Results", results):
        app = StatusApp(shared, Health())
    listener = listening(app, seen, ssl_context=tls)
    finish = Finish(shared.layout, shared.blobs, intake, shared.judge, keep_blobs=keep_blobs)
    judging = asyncio.create_task(Judging(shared).run()) if judged else None
    try:
        with constants(**changed):
            address = await listener.start()
            yield Site(plan, store, intake, finish, shared.layout, address, listener, seen)
    finally:
        if judging is not None:
            judging.cancel()
            await asyncio.wait((judging,))
        await listener.close(grace=1.0)
        await intake.close()
        await store.close()
    assert [] == seen.surprises
