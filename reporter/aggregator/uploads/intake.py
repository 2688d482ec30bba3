"""Taking in bodies: from chunks to a durable blob, a row and a tree; and what follows at the end.

The order is the promise: blob on the disk, then the row, then the tree, then the answer. So what
was answered survives a kill and a loss of power, and what was not leaves nothing that a restart
does not remove. Rows and blobs are the truth, trees are derived. No HTTP in here.
"""

import contextlib
import errno
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

from reporter.aggregator.finish.package import PackageFailed, measure, package, package_name
from reporter.aggregator.store import Received, StoreBusy, StoreError, StoreFull
from reporter.aggregator.store.blobs import Blobs
from reporter.aggregator.store.files import Step, no_step, remove_tree
from reporter.aggregator.store.layout import Layout
from reporter.aggregator.store.staging import MOST_PIECES, StagedBody
from reporter.aggregator.uploads import recovery
from reporter.aggregator.uploads.limits import Limits
from reporter.aggregator.uploads.meta import Meta
from reporter.aggregator.uploads.outcomes import (
    Closed,
    Failed,
    Held,
    Oversize,
    Refused,
    Stored,
    TooLarge,
    Verdict,
    failed,
)
from reporter.aggregator.uploads.quarantine import Quarantine
from reporter.aggregator.uploads.recovery import Recovered
from reporter.aggregator.uploads.settling import Settling
from reporter.aggregator.uploads.threads import Threads
from reporter.aggregator.uploads.trees import Trees
from reporter.aggregator.uploads.upload import Upload
from reporter.core.run.entry import Entry, Marked, Outcome
from reporter.core.run.plan import Key
from reporter.core.run.record import Failure, Record
from reporter.core.run.snapshot import Phase, Snapshot, Tar
from reporter.core.run.status import rfc3339
from reporter.errors import InvalidPayload, ReporterError
from reporter.runtime import log
from reporter.untar import BadArchive

PIECE: Final = 256 * 1024  # bytes of one body in memory; also what is written and hashed at once
_CHECK_BYTES: Final = 16 * 1024 * 1024  # of one body between two looks at the free space


class Ledger(Protocol):
    """What an intake asks of the store."""

    async def record_result(self, key: Key, record: Record) -> Received:
        """Offer a record whose bytes are durable."""

    async def mark_failed(self, key: Key, failure: Failure) -> Marked:
        """Note a failed upload."""

    async def lose(self, key: Key, text: str, *, at: float) -> bool:
        """Note that the bytes of a record are gone."""

    def entry(self, key: Key) -> Entry:
        """One entry as it is now."""


class Intake:
    """Everything between a body's chunks and the disk, for one run.

    All methods are called on one event loop and none blocks it. `clock` is monotonic, `wall` gives
    Unix seconds; `step` is told each step that is about to be final. `recover` comes first.
    """

    def __init__(
        self,
        layout: Layout,
        store: Ledger,
        limits: Limits | None = None,
        *,
        keep_blobs: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        step: Step = no_step,
    ) -> None:
        self._layout, self._store, self._limits = layout, store, limits or Limits()
        self._keep_blobs, self._clock, self._wall, self._step = keep_blobs, clock, wall, step
        self._blobs = Blobs(layout, step)
        self._trees = Trees(layout, self._limits, step, clock)
        self._quarantine = Quarantine(layout, self._limits, step)
        self._threads = Threads(self._limits.unpack_threads)
        self._settling = Settling(self._trees, self._threads, store.entry)
        self._recovered = False
        self._stopping = threading.Event()

    def free_for(self, length: int) -> bool:
        """Whether a body of `length` bytes leaves the reserve free."""
        try:
            return self._layout.free() >= self._limits.disk_reserve + length
        except OSError:
            return False

    async def take(
        self, key: Key, meta: Meta, chunks: AsyncIterator[bytes], *, at: float
    ) -> Verdict:
        """Take in one body that began to arrive at `at` (Unix seconds).

        `chunks` may raise `UploadStalled` and `UploadCut`. A failed try is noted in the store. A
        caller that is cancelled after the last chunk leaves the upload running to its end.
        """
        body = StagedBody(self._layout.new_body(), self._step)
        upload = Upload(key, meta, body, at=at, clock=self._clock)
        work: Coroutine[Any, Any, Verdict]
        try:
            work = self._keep(upload, await self._read(upload, chunks))
        except (ReporterError, OSError) as error:
            work = self._fail(upload, error)
        except BaseException:
            await self._threads.disk(body.discard)
            raise
        return await self._threads.to_the_end(work)

    async def settle(self, key: Key) -> None:
        """Bring the trees of a key in line with its row, after an error was written there.

        Never raises for the disk: what could not be done is done before the tarball is made.
        """
        await self._threads.to_the_end(self._settling.settle(key))

    async def recover(self, snapshot: Snapshot) -> Recovered:
        """Get the disk in order; nothing may be taken in before. Raises OSError, `StoreError`.

        Entries whose bytes are gone are told to the store.
        """
        unfinished = await self._threads.disk(recovery.sweep, self._layout)
        if snapshot.phase is Phase.CLOSED and snapshot.tar is not None:
            await self.clear()
            return Recovered((), 0, unfinished, rebuilt=False)
        clean = await self._threads.disk(recovery.was_clean_stop, self._layout)
        await self._threads.disk(self._quarantine.resume)
        entries = snapshot.entries.values()
        lost, unknown = await self._threads.disk(recovery.resume_blobs, self._blobs, entries)
        for key in lost:
            log.get().error("Bytes of a result are gone", key=str(key))
            await self._store.lose(key, "the bytes of this result are gone", at=self._wall())
        if not clean:
            await self._threads.disk(self._trees.remove_strangers, snapshot.plan)
        for key in lost if clean else snapshot.plan.keys:
            await self._settling.settle(key)
        self._recovered = True
        return Recovered(lost, unknown, unfinished, rebuilt=not clean)

    async def package(self, snapshot: Snapshot) -> Tar:
        """Make the tarball of a run that takes nothing more, or measure the one that is there.

        Raises `PackageFailed`; then everything it is made from is still there, and it may be tried
        again.
        """
        await self._threads.quiet()
        self._quarantine.close()
        target = self._layout.output / package_name(snapshot.plan.run, snapshot.started_at)
        stopping, step = self._stopping.is_set, self._step
        try:
            if not target.exists():
                make = partial(
                    package,
                    snapshot,
                    target,
                    open_blob=lambda digest: self._layout.blob(digest).open("rb"),
                    quarantine=self._layout.quarantine,
                    unfinished=self._layout.unfinished,
                    stopping=stopping,
                    step=step,
                )
                await self._threads.disk(make)
            digest, size = await self._threads.disk(measure, target, stopping)
        except (OSError, InvalidPayload, BadArchive) as error:
            raise PackageFailed(f"the tarball cannot be made: {failed(error).reason}") from error
        return Tar(target.name, rfc3339(self._wall()), digest, size)

    async def clear(self) -> None:
        """Remove blobs and trees, once the tarball and its row are durable. Raises OSError."""
        if not self._keep_blobs:
            await self._threads.disk(self._trees.clear)
            await self._threads.disk(self._blobs.clear)

    async def close(self) -> None:
        """Finish what has begun and note whether every tree is in line with its row.

        A tarball in the making is given up. Nothing may be asked of the intake afterwards; the
        call may be repeated.
        """
        if self._stopping.is_set():
            return
        self._stopping.set()
        await self._threads.quiet()
        if self._recovered and self._settling.done:
            with contextlib.suppress(OSError):
                await self._threads.disk(recovery.mark_clean_stop, self._layout)
        self._threads.close()

    # -- one upload ------------------------------------------------------------------------------

    async def _read(self, upload: Upload, chunks: AsyncIterator[bytes]) -> list[bytes]:
        """Stage the body, all but the last pieces: the thread of the next step writes them."""
        pieces: list[bytes] = []
        held = total = checked = 0
        limit = self._limits.max_result_bytes
        async for chunk in chunks:
            if held >= PIECE or len(pieces) >= MOST_PIECES:
                await self._threads.disk(upload.body.write, pieces)
                pieces, held = [], 0
                if total >= checked + _CHECK_BYTES:
                    checked = total
                    await self._threads.disk(self._check_room)
            pieces.append(chunk)
            held += len(chunk)
            total += len(chunk)
            if total > limit:
                await self._threads.disk(upload.body.write, pieces)
                raise Oversize(limit)
        return pieces

    async def _keep(self, upload: Upload, rest: list[bytes]) -> Verdict:
        try:
            await self._threads.disk(self._finish, upload, rest)
            if upload.archive:
                await self._threads.unpack(self._unpack, upload)
                await self._threads.disk(self._blobs.keep, upload.body)
        except (ReporterError, BadArchive, OSError) as error:
            return await self._fail(upload, error)
        record = upload.record()
        async with self._settling.lock(upload.key):
            self._step("commit")
            try:
                received = await self._store.record_result(upload.key, record)
            except StoreError as error:
                if isinstance(error, (StoreFull, StoreBusy)):
                    await self._release(record.digest)
                # Else the row may be on the disk all the same; a restart knows.
                return await self._fail(upload, error)
            self._step("committed")
            if received.outcome is Outcome.ACCEPTED:
                await self._settling.place(upload.key, upload.tree)
                self._step("answer")
                return Stored(record.digest)
        await self._release(record.digest)
        await self._threads.disk(self._remove_tree_of, upload)
        held = received.held
        if received.outcome is Outcome.DUPLICATE and held is not None:
            return Held(held.digest)
        return Closed()

    def _finish(self, upload: Upload, rest: list[bytes]) -> None:
        upload.finish(rest)
        if not upload.archive:
            self._blobs.keep(upload.body)

    def _unpack(self, upload: Upload) -> None:
        upload.unpack(self._layout.new_tree(), self._limits, self._check_room, self._step)

    def _check_room(self) -> None:
        if not self.free_for(0):
            raise OSError(errno.ENOSPC, "No space left above the reserve")

    async def _fail(self, upload: Upload, error: Exception) -> Failed:
        verdict = failed(error)
        await self._threads.disk(self._put_away, upload, verdict)
        failure = Failure("attempt", upload.now(), verdict.reason)
        try:
            await self._store.mark_failed(upload.key, failure)
        except StoreError as trouble:
            log.get().error("Failed upload was not noted", key=str(upload.key), error=str(trouble))
        return verdict

    def _put_away(self, upload: Upload, verdict: Failed) -> None:
        """Leave nothing but what is worth looking at."""
        body, meta = upload.body, upload.meta
        self._remove_tree_of(upload)
        try:
            if isinstance(verdict, Refused | TooLarge) and self.free_for(0):
                why = {
                    "key": str(upload.key),
                    "reason": verdict.reason,
                    "at": rfc3339(upload.now()),
                    "sha256": body.digest,
                    "filename": meta.filename,
                    "content_type": meta.content_type,
                    "certificate": meta.serial,
                }
                self._quarantine.put(upload.key, body, why)
        except OSError as error:
            log.get().warning("Refused upload was not kept", key=str(upload.key), error=str(error))
        finally:
            with contextlib.suppress(OSError):
                body.discard()

    def _remove_tree_of(self, upload: Upload) -> None:
        if upload.tree is not None:
            with contextlib.suppress(OSError):
                remove_tree(upload.tree)

    async def _release(self, digest: str) -> None:
        with contextlib.suppress(OSError):
            await self._threads.disk(self._blobs.release, digest)
