"""A store, a packed run and its upload."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from reporter.aggregator.tarball.upload import TarballUploader
from reporter.common import log
from reporter.link.connection import TimeLimits
from reporter.run.clock import RunClock
from reporter.run.plan import Plan, Plugin
from reporter.run.state import Phase, Tar
from reporter.run.status import tar_upload
from reporter.run.tar_upload import TarUpload
from tests.aggregators.bucket import Bucket
from tests.aggregators.stores import QuickStore

NOW = 1_767_268_800.0  # 2026-01-01T12:00:00Z
BODY = bytes(range(256)) * 8192  # 2 MiB: more than the sockets hold
TAR = Tar("run-1.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, len(BODY))
LIMITS = TimeLimits(connect=10.0, handshake=10.0, silence=30.0)


class World:
    """A store, a packed run and its upload. Delays between tries are none."""

    def __init__(self, folder: Path, bucket: Bucket, **options: object) -> None:
        self.folder, self.bucket, self.options = folder, bucket, options
        self.wall = NOW
        self.events: list[dict] = []
        (folder / TAR.name).write_bytes(BODY)

    def upload(self) -> TarballUploader:
        """Make one, as a new process does."""
        given = {"give_up": 3600.0, "limits": LIMITS, "reached_within": 0.0, **self.options}
        return TarballUploader(
            self.folder,
            self.bucket.url_file,
            str(self.bucket.ca),
            now=self.clock(),
            rng=lambda: 0.0,
            **given,
        )

    def clock(self) -> RunClock:
        """The run's clock in a new process."""
        return RunClock(lambda: self.wall, lambda: self.wall)

    def play(
        self, story: Callable[[QuickStore], Awaitable[None]], plugin: str = "", nodes: Any = ()
    ) -> None:
        """Run a story on the store of a run whose set of results is final; open with a plugin."""
        plugins = (Plugin(plugin, tuple(nodes)),) if plugin else ()

        async def told() -> None:
            store = QuickStore(self.folder / "run.db", now=self.clock())
            await store.open_run(Plan("run-1", plugins, 60), now=self.wall)
            try:
                if store.phase is Phase.RUNNING and not plugins:
                    await store.advance_run(Phase.POST_PROCESSING)
                await story(store)
            finally:
                await store.close()

        with log.capture() as events:
            asyncio.run(told())
        self.events += events

    def to_its_end(self) -> TarUpload:
        """Upload until it is over, and return how it ended."""

        async def story(store: QuickStore) -> None:
            await self.begun(store)

        self.play(story)
        return self.ended

    async def begun(self, store: QuickStore, tar: Tar = TAR) -> None:
        """Do what the aggregator does for an upload, until it is over."""
        upload = self.upload()
        await upload.resume(store, 60.0)
        if store.snapshot().tar is None:
            await upload.begin(store, tar)
        while not await upload.over(store):
            pass
        found = store.snapshot().upload
        assert found is not None
        self.ended = found

    def words(self) -> str:
        """All that anybody could see of it."""
        shown = tar_upload(self.ended)
        return json.dumps([shown, repr(self.ended), self.events], default=str)
