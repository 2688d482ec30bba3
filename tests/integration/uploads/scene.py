"""An intake over real directories and a store, as the tests of this folder need it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from reporter.aggregator.store.files import Step, no_step
from reporter.aggregator.store.layout import Layout
from reporter.aggregator.uploads import Intake, Limits, Meta, Verdict
from reporter.core.run.entry import Marked
from reporter.core.run.plan import Key, Plan, Plugin
from reporter.core.run.record import Cause, Failure
from tests.aggregators.stores import QuickStore, volatile

E2E = Key("e2e", "global")
NODE1 = Key("sysd", "node1")
NODE2 = Key("sysd", "node2")
PLAN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", ("node1", "node2"))))
NOW = 1_700_000_000.0
LIMITS = Limits(disk_reserve=0)

PLAIN = Meta()
JSON = Meta(content_type="application/json", filename="a.json", disposition=True)
ARCHIVE = Meta(content_type="application/gzip", filename="r.tar.gz", disposition=True)
REPORT = Meta(content_type="application/json", filename="error.json", disposition=True, error=True)


def sha(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    """A body in chunks."""
    for chunk in chunks:
        yield chunk


class Scene:
    """One aggregator's directories, with an intake and a store that are open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.layout = Layout(root / "state", root / "output")
        self.database = volatile(self) / "run.db"
        self.store: Any
        self.intake: Intake

    @contextlib.asynccontextmanager
    async def open(
        self,
        *,
        plan: Plan = PLAN,
        limits: Limits = LIMITS,
        step: Step = no_step,
        before_commit: Callable[[], None] = lambda: None,
        recover: bool = True,
        **options: Any,
    ) -> AsyncIterator[Scene]:
        """Start on what is there; stop cleanly."""
        self.layout.prepare()
        self.store = QuickStore(self.database, before_commit=before_commit)
        await self.store.open_run(plan, now=NOW)
        self.intake = Intake(self.layout, self.store, limits, step=step, **options)
        try:
            if recover:
                self.recovered = await self.intake.recover(self.store.snapshot())
            yield self
        finally:
            await self.intake.close()
            await self.store.close()

    async def put(self, key: Key, body: bytes, meta: Meta = PLAIN, *more: bytes) -> Verdict:
        """Send one body."""
        return await self.intake.take(key, meta, pieces(body, *more), at=NOW)

    async def give_up(self, key: Key, text: str, cause: Cause = Cause.POD_FAILED) -> Marked:
        """An error of the aggregator's own."""
        marked: Marked = await self.store.mark_failed(key, Failure("final", NOW, text, cause))
        await self.intake.settle(key)
        return marked

    def files(self, folder: str = "plugins") -> dict[str, bytes]:
        """Every regular file below a folder of the output directory."""
        top = self.layout.output / folder
        return {
            str(path.relative_to(top)): path.read_bytes()
            for path in sorted(top.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def leftovers(self) -> list[str]:
        """Everything unfinished."""
        layout = self.layout
        return [
            path.name for home in (layout.staging, layout.unfinished) for path in home.iterdir()
        ]

    def blobs(self) -> set[str]:
        """The digests that are kept."""
        return {path.name for path in self.layout.blobs.iterdir()}


def play(root: Path, story: Callable[[Scene], Awaitable[None]], **options: Any) -> Scene:
    """Run a story in an open scene; what is left on the disk is in what is returned."""
    scene = Scene(root)

    async def told() -> None:
        async with scene.open(**options):
            await story(scene)

    asyncio.run(told())
    return scene


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every name below a folder with its type and mode, size, and content or target."""
    return {str(path.relative_to(folder)): _look(path) for path in _below(folder)}


def _below(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        yield from (Path(at, name) for name in (*folders, *files))


def _look(path: Path) -> tuple[int, int, bytes]:
    found = path.lstat()
    if stat.S_ISREG(found.st_mode):
        return found.st_mode, found.st_size, path.read_bytes()
    link = os.fsencode(path.readlink()) if path.is_symlink() else b""
    return found.st_mode, 0, link
