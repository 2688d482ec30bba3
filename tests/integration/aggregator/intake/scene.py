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

from reporter.aggregator.context import Context
from reporter.aggregator.intake import Intake
from reporter.aggregator.tarball.finish import Finish
from reporter.ledger.blobs import BlobStore, Step, no_step
from reporter.ledger.layout import Layout
from reporter.results.process import Judge
from reporter.run.entry import Marked
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause, Failure
from reporter.run.upload import Meta, UploadConclusion, UploadOutcome
from tests.aggregators.contexts import context
from tests.aggregators.listening import constants
from tests.aggregators.stores import QuickStore, volatile
from tests.archives.packed import packed

E2E = Key("e2e", "global")
NODE1 = Key("sysd", "node1")
NODE2 = Key("sysd", "node2")
PLAN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", ("node1", "node2"))))
NOW = 1_700_000_000.0


PLAIN = Meta()
JSON = Meta(content_type="application/json", filename="a.json", disposition=True)
ARCHIVE = Meta(content_type="application/gzip", filename="r.tar.gz", disposition=True)
REPORT = Meta(content_type="application/json", filename="error.json", disposition=True, error=True)


def sha(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def stored(digest: str) -> UploadConclusion:
    """Taken."""
    return UploadConclusion(UploadOutcome.ACCEPTED, digest=digest)


def held(digest: str) -> UploadConclusion:
    """Not taken: something of the same or a higher rank is there."""
    return UploadConclusion(UploadOutcome.DUPLICATE, digest=digest)


def refused(reason: str) -> UploadConclusion:
    """Not what it says it is."""
    return UploadConclusion(UploadOutcome.REFUSED, reason)


def unwritten(reason: str) -> UploadConclusion:
    """The disk or the store failed."""
    return UploadConclusion(UploadOutcome.UNWRITTEN, reason)


def too_large(limit: int) -> UploadConclusion:
    """Longer than it may be."""
    return UploadConclusion(UploadOutcome.TOO_LARGE, f"exceeds {limit} bytes")


CLOSED = UploadConclusion(UploadOutcome.CLOSED)
CUT = UploadConclusion(UploadOutcome.CUT, "upload cut off")
STALLED = UploadConclusion(UploadOutcome.STALLED, "upload stalled")
DISK_FULL = UploadConclusion(UploadOutcome.DISK_FULL, "no space left")


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    """A body in chunks."""
    for chunk in chunks:
        yield chunk


class Sending:
    """A sender of pieces that has come at once and stays."""

    left = False

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    @contextlib.contextmanager
    def waiting(self) -> Iterator[asyncio.Future[None]]:
        """It waits for as long as it has to."""
        yield asyncio.get_running_loop().create_future()

    def sending(self, late: Callable[[], float], *, waited: bool) -> AsyncIterator[bytes]:
        """Its pieces."""
        return self._chunks


class Scene:
    """One aggregator's directories, with an intake and a store that are open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.layout = Layout(root / "state", root / "output")
        self.database = volatile(self) / "run.db"
        self.store: Any
        self.context: Context
        self.bodies: BlobStore
        self.intake: Intake
        self.finish: Finish

    @contextlib.asynccontextmanager
    async def open(
        self,
        *,
        plan: Plan = PLAN,
        limits: dict[str, Any] | None = None,
        step: Step = no_step,
        before_commit: Callable[[], None] = lambda: None,
        recover: bool = True,
        **options: Any,
    ) -> AsyncIterator[Scene]:
        """Start on what is there; stop cleanly."""
        self.layout.prepare()
        self.store = QuickStore(self.database, before_commit=before_commit)
        await self.store.open_run(plan, now=NOW)
        wall = options.pop("wall", lambda: NOW)
        self.context = context(
            plan, self.root, store=self.store, wall=wall, step=step, settings=limits
        )
        self.layout, self.bodies = self.context.layout, self.context.blobs
        with constants(UPLOADS_PER_KEY=64):  # as many of one key as there are
            self.intake = Intake(self.context)
        self.finish = Finish(
            self.layout, self.bodies, self.intake, Judge(), step=step, wall=wall, **options
        )
        try:
            if recover:
                self.recovered = await self.intake.recover(self.store.snapshot())
            yield self
        finally:
            self.finish.stop()
            await self.intake.close()
            await self.store.close()

    async def put(
        self, key: Key, body: bytes, meta: Meta = PLAIN, *more: bytes
    ) -> UploadConclusion:
        """Send one body."""
        return await self.send(key, meta, pieces(body, *more))

    async def send(self, key: Key, meta: Meta, chunks: AsyncIterator[bytes]) -> UploadConclusion:
        """Send what comes by and by."""
        return await self.intake.take(key, meta, Sending(chunks))

    async def give_up(
        self, key: Key, text: str, cause: Cause = Cause.POD_FAILED, *, verdict: str = ""
    ) -> Marked:
        """An error of the aggregator's own; `verdict` is what the Job's condition says."""
        failure = Failure("final", NOW, text, cause, verdict=verdict)
        marked: Marked = await self.store.mark_failed(key, failure)
        return marked

    def files(self, folder: str = "plugins") -> dict[str, bytes]:
        """Every regular file that the tarball would have below a folder."""
        found = packed(self.layout, self.store.snapshot())
        start = f"{folder}/"
        return {
            name.removeprefix(start): data for name, data in found.items() if name.startswith(start)
        }

    def leftovers(self) -> list[str]:
        """Everything unfinished."""
        layout = self.layout
        return [
            path.name for home in (layout.staging, layout.unfinished) for path in home.iterdir()
        ]

    def blobs(self) -> list[str]:
        """The digests of all blobs, in their order."""
        return sorted(path.name.partition("-")[0] for path in self.layout.blobs.iterdir())

    def blob(self, body: bytes) -> Path:
        """The only blob with these bytes."""
        (path,) = self.layout.blobs.glob(f"{sha(body)}-*")
        return path


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
