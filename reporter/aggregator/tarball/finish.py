"""What follows the last result: the tarball, and the end of everything it is made from."""

import asyncio
import contextlib
import errno
import hashlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from datetime import UTC, datetime
from itertools import count
from types import MappingProxyType
from typing import IO, Any

from reporter.aggregator.intake import Intake
from reporter.aggregator.tarball.content import PIECE, BodyDamaged, Sources
from reporter.aggregator.tarball.package import BodiesLost, Interrupted, PackageFailed, package
from reporter.common.private_file import sync_directory, write_private
from reporter.ledger.blobs import BlobStore, Step, no_step
from reporter.ledger.layout import Layout
from reporter.results.process import Judge, JudgingStopped
from reporter.run.record import Record
from reporter.run.state import Snapshot, Tar
from reporter.run.status import rfc3339


class Finish:
    """Makes the tarball of a run that takes nothing more.

    `taken_by` names the plugin that took the cluster's snapshot. `log_written` waits, not for long,
    until what was logged is in its file. `wall` gives Unix seconds.
    """

    def __init__(
        self,
        layout: Layout,
        blobs: BlobStore,
        intake: Intake,
        judge: Judge,
        *,
        keep_blobs: bool = False,
        definitions: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        taken_by: str = "",
        log_written: Callable[[], None] = lambda: None,
        wall: Callable[[], float] = time.time,
        step: Step = no_step,
    ) -> None:
        self._layout, self._blobs, self._intake = layout, blobs, intake
        self._keep_blobs = keep_blobs
        self._taken_by, self._wall, self._step = taken_by, wall, step
        self._stopping, self._judge = threading.Event(), judge
        self._definitions, self._log_written = definitions, log_written

    async def package(self, snapshot: Snapshot) -> Tar:
        """Make the tarball, or return the one that was made already.

        Raises `PackageFailed`, after which it may be tried again: everything it is made from is
        still there, except for damaged bodies (`BodiesLost`). A caller that is cancelled gets back
        when the thread is done: see `stop`.
        """
        await self._intake.quiet()
        work = asyncio.ensure_future(asyncio.to_thread(self._package, snapshot))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait((work,))
            raise
        except JudgingStopped as error:
            raise Interrupted(str(error)) from error
        except OSError as error:
            raise PackageFailed(f"the tarball cannot be made: {error.strerror}") from error

    def _package(self, snapshot: Snapshot) -> Tar:
        tar = self._noted()
        if tar is None:
            try:
                tar = self._made(snapshot)
            except BodyDamaged as error:
                raise self._without_damaged(snapshot, str(error)) from error
        # Who put it there may have been killed before its name was durable.
        try:
            self._step("package sync directory")
            sync_directory(self._layout.output)
        except OSError:
            # A second fsync may say nothing of what the first one failed at: it is made again.
            with contextlib.suppress(OSError):
                (self._layout.output / tar.name).unlink()
            raise
        return tar

    def _noted(self) -> Tar | None:
        """Return the tarball that is there and was noted before it was put there.

        Another run may have the same name, start in the same minute and use the same directory.
        """
        try:
            tar = Tar(*json.loads(self._layout.tarball.read_bytes()))
            with (self._layout.output / tar.name).open("rb") as file:
                there = measure(file, self._go_on)
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return tar if there == (tar.sha256, tar.size) else None

    def _made(self, snapshot: Snapshot) -> Tar:
        layout = self._layout
        new = layout.unfinished / "new.tar.gz"
        self._log_written()
        sources = Sources(
            self._blobs.open,
            layout.podlogs,
            layout.unfinished,
            self._judge,
            self._go_on,
            self._definitions,
            self._taken_by,
            layout.run_log,
        )
        try:
            digest, size = package(snapshot, new, sources, self._step)
            names = _names(snapshot.plan.run, snapshot.started_at)
            name = next(name for name in names if not (layout.output / name).exists())
            tar = Tar(name, rfc3339(self._wall()), digest, size)
            write_private(layout.tarball, json.dumps(astuple(tar)).encode())
            self._step("package rename")
            new.rename(layout.output / name)
        finally:
            new.unlink(missing_ok=True)
        return tar

    def _without_damaged(self, snapshot: Snapshot, why: str) -> PackageFailed:
        """Remove the bodies that are damaged: all that is left can be packed.

        They are looked at once more: what went wrong in reading may have passed.
        """
        held = {key: entry.record for key, entry in snapshot.entries.items() if entry.record}
        replaced = [entry.superseded for entry in snapshot.entries.values() if entry.superseded]
        kept = [each for each in replaced if self._blobs.size(each.blob) is not None]
        records = [record for record in (*held.values(), *kept) if record.blob]
        damaged = {record.blob for record in records if not self._sound(record)}
        if not damaged:
            return PackageFailed(f"the tarball cannot be made: {why}")
        for blob in damaged:
            self._step("package lose")
            self._blobs.delete(blob)
        return BodiesLost(why, [key for key in held if held[key].blob in damaged])

    def _sound(self, record: Record) -> bool:
        try:
            with self._blobs.open(record.blob) as body:
                found, _ = measure(body, self._go_on)
            return found == record.digest
        except OSError as error:
            # EIO: a file system with checksums of its own says so where another gives wrong bytes.
            if error.errno in (errno.ENOENT, errno.EIO):
                return False
            raise

    async def clear(self, snapshot: Snapshot) -> None:
        """Remove what a run's tarball was made from, once its row is durable. Raises OSError."""
        if not self._keep_blobs:
            await self._intake.clear()
            await asyncio.to_thread(shutil.rmtree, self._layout.podlogs, ignore_errors=True)

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise Interrupted("stopped while the results were packed")

    def stop(self) -> None:
        """Give up a tarball in the making: the next process makes it."""
        self._stopping.set()
        self._judge.stop()


def measure(file: IO[bytes], go_on: Callable[[], None]) -> tuple[str, int]:
    """Return the SHA-256 of what is in a file, in hexadecimal, and its size.

    Raises OSError, and what `go_on` raises.
    """
    found, size = hashlib.sha256(), 0
    while data := file.read(4 * PIECE):
        go_on()
        found.update(data)
        size += len(data)
    return found.hexdigest(), size


def _names(run: str, started_at: float) -> Iterator[str]:
    """Yield the names that the tarball of a run may have, the first one unless that is taken."""
    name = f"{run}_{datetime.fromtimestamp(started_at, UTC):%Y%m%d%H%M}"
    yield f"{name}.tar.gz"
    yield from (f"{name}-{number}.tar.gz" for number in count(2))
