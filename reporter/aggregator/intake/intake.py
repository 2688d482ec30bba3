"""One upload, from its head to its conclusion; and all that are on their way.

The order is the promise: the blob is on the disk, then the row, then the conclusion, from which
`WorkerApp` makes the answer. So what was answered survives a kill and a loss of power, and what was
not leaves nothing that a restart does not remove.
"""

import contextlib
import errno
import shutil
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from reporter.aggregator.context import Context
from reporter.aggregator.intake.incoming import Incoming, caps_of
from reporter.aggregator.intake.slots import Uploads
from reporter.aggregator.intake.threads import Threads
from reporter.aggregator.server.body import Body
from reporter.errors import InvalidPayload, ReporterError
from reporter.ledger import StoreBusy, StoreError, StoreFull
from reporter.ledger.blobs import MOST_PIECES, StagedBody
from reporter.run.entry import receive
from reporter.run.plan import Key
from reporter.run.record import Failure, Rank, Record
from reporter.run.state import Phase, Snapshot
from reporter.run.upload import (
    Allowance,
    Meta,
    Upload,
    UploadConclusion,
    UploadEnded,
    UploadOutcome,
    metadata_dropped,
)
from reporter.untar import BadArchive

PIECE: Final = 256 * 1024  # bytes of one body in memory; also what is written and hashed at once
_CHECK_BYTES: Final = 16 * 1024 * 1024  # of one body between two looks at the free space
_METADATA_OF_ALL: Final = 2**20  # bytes: all of it is in memory and in `/status`
_FAILURES: Final = (ReporterError, BadArchive, OSError)
"""What may be raised on the way of an upload."""


class Recovered(NamedTuple):
    """What a start found: entries whose bytes are gone, unknown blobs and unfinished things that
    were removed."""

    lost: tuple[Key, ...]
    unknown: int
    unfinished: int


class Intake:
    """The uploads of one run. Of several of one key, the first that is stored wins.

    All methods are called on one event loop and none blocks it. `recover` comes first. `uploads`
    are those that are here; `allowance` is what they may take after a deadline.
    """

    def __init__(self, context: Context, allowance: Allowance | None = None) -> None:
        self._context, self._store, self._blobs = context, context.store, context.blobs
        self._settings, self._now, self._step = context.settings, context.now, context.step
        self._threads = Threads()
        self.uploads = Uploads(context, allowance or Allowance())
        self._metadata = 0  # bytes that are kept of it

    # -- one upload ------------------------------------------------------------------------------

    async def take(self, key: Key, meta: Meta, sender: Body) -> UploadConclusion:
        """Take one upload: check, wait for a slot, stage, verify, keep, commit.

        A failed try is noted in the store. A caller that is cancelled after the last piece leaves
        the upload running to its end.
        """
        plugin = self._context.plan.plugin(key.plugin)
        assert plugin is not None, "a key that is not in the plan"
        incoming = Incoming(meta, self._blobs.stage(), plugin)
        # A failed try is noted before the upload is no longer known.
        with ExitStack() as place:
            try:
                self._check(key, meta)
                length = self._settings.max_result_bytes if meta.length is None else meta.length
                upload = Upload(self._now(), length, retry=self._store.entry(key).retrying)
                await self.uploads.enter(key, upload, sender, place)
                self._check_again(key, meta, sender)
                rest = await self._stage(key, incoming.body, sender, upload)
                return await self._threads.to_the_end(self._finish(key, incoming, rest))
            except _FAILURES as error:
                return await self._threads.to_the_end(self._fail(key, incoming, _ended_by(error)))

    def _check(self, key: Key, meta: Meta) -> None:
        """Refuse what cannot be taken however its body turns out."""
        self._check_rank(key, meta)
        if meta.encoding not in ("identity", ""):
            raise UploadEnded(UploadOutcome.ENCODED, "Content-Encoding is not accepted")
        if (meta.length or 0) > self._settings.max_result_bytes:
            raise self._too_large()
        if not self._store.writable:
            raise UploadEnded(UploadOutcome.UNAVAILABLE, "the store cannot be written, try again")

    def _check_again(self, key: Key, meta: Meta, sender: Body) -> None:
        """Do the same when its turn has come: much may have happened meanwhile."""
        if sender.left:
            raise UploadEnded(UploadOutcome.LEFT)
        self._check_rank(key, meta)
        if not self.free_for(meta.length or 0):
            raise UploadEnded(UploadOutcome.NO_ROOM, "not enough disk space")

    def _check_rank(self, key: Key, meta: Meta) -> None:
        entry = self._store.entry(key)
        offered = Record(Rank.WORKER if meta.error else Rank.RESULT, 0.0)
        closed = self._store.phase is not Phase.RUNNING or self.uploads.closed(key)
        _, outcome = receive(entry, offered, closed=closed)
        if outcome is not UploadOutcome.ACCEPTED:
            raise UploadEnded(outcome, digest=_held(outcome, entry.record))

    async def _stage(self, key: Key, body: StagedBody, sender: Body, upload: Upload) -> list[bytes]:
        """Stage all but the last pieces: the thread of the next step writes them."""
        upload.began = self._now()
        pieces: list[bytes] = []
        held = total = checked = 0
        try:
            late = partial(self.uploads.late, key, upload)
            async for chunk in sender.sending(late, waited=upload.waited):
                if held >= PIECE or len(pieces) >= MOST_PIECES:
                    await self._threads.disk(body.write, pieces)
                    pieces, held = [], 0
                    if total >= checked + _CHECK_BYTES:
                        checked = total
                        await self._threads.disk(self._context.layout.check_room, 0)
                pieces.append(chunk)
                held += len(chunk)
                total += len(chunk)
                if total > self._settings.max_result_bytes:
                    await self._threads.disk(body.write, pieces)
                    raise self._too_large()
        except BaseException as error:
            if not isinstance(error, _FAILURES):
                await self._threads.disk(body.discard)
            raise
        return pieces

    async def _finish(self, key: Key, incoming: Incoming, rest: list[bytes]) -> UploadConclusion:
        """Verify, keep and commit: the end of its sender is not the end of this."""
        try:
            await self._threads.disk(self._complete, incoming, rest)
            if incoming.archive or incoming.unread:
                if incoming.archive:
                    await self._threads.verify(incoming.verify, caps_of(self._settings))
                if incoming.unread:
                    await self._threads.read(incoming.read)
                await self._threads.disk(self._blobs.keep, incoming.body)
            return await self._store_row(key, incoming.record(self._now()))
        except _FAILURES as error:
            return await self._fail(key, incoming, _ended_by(error))

    def _complete(self, incoming: Incoming, rest: list[bytes]) -> None:
        incoming.complete(rest)
        if not incoming.archive and not incoming.unread:
            self._blobs.keep(incoming.body)

    async def _store_row(self, key: Key, record: Record) -> UploadConclusion:
        if self._metadata + len(record.metadata) > _METADATA_OF_ALL:
            record = replace(record, metadata=metadata_dropped("more than 1 MiB in this run"))
        else:
            self._metadata += len(record.metadata)
        self._step("commit")
        try:
            received = await self._store.record_result(key, record)
        except StoreError as error:
            if isinstance(error, (StoreFull, StoreBusy)):
                await self._delete(record.blob)
            raise  # else the row may be on the disk all the same; a restart knows
        self._step("committed")
        if received.outcome is not UploadOutcome.ACCEPTED:
            await self._delete(record.blob)
        return UploadConclusion(received.outcome, digest=_held(received.outcome, received.held))

    async def _fail(
        self, key: Key, incoming: Incoming, ended: UploadConclusion
    ) -> UploadConclusion:
        """Remove the body, and note a failed try."""
        if incoming.body.made:
            with contextlib.suppress(OSError):
                await self._threads.disk(incoming.body.discard)
        if ended.outcome.failed_try:
            try:
                failure = Failure("attempt", self._now(), ended.reason)
                await self._store.mark_failed(key, failure)
            except StoreError as error:
                if ended.outcome is not UploadOutcome.UNAVAILABLE:
                    self._context.log.error(
                        "Failed upload could not be recorded", key=str(key), error=str(error)
                    )
        return ended

    async def _delete(self, blob: str) -> None:
        with contextlib.suppress(OSError):
            await self._threads.disk(self._blobs.delete, blob)

    def _too_large(self) -> UploadEnded:
        return UploadEnded(
            UploadOutcome.TOO_LARGE, f"exceeds {self._settings.max_result_bytes} bytes"
        )

    # -- all of them -----------------------------------------------------------------------------

    def free_for(self, length: int) -> bool:
        """Whether a body of `length` bytes leaves the reserve free."""
        try:
            self._context.layout.check_room(length)
        except OSError:
            return False
        return True

    async def recover(self, snapshot: Snapshot) -> Recovered:
        """Clean up what a killed process left; nothing may be taken in before.

        Entries whose bytes are gone are told to the store. Raises OSError, `StoreError`.
        """
        found = await self._threads.disk(self._recover, snapshot)
        for key in found.lost:
            self._context.log.error("Stored result is missing or incomplete", key=str(key))
            text = "the stored result is missing or incomplete"
            await self._store.lose(key, text, at=self._now())
        return found

    def _recover(self, snapshot: Snapshot) -> Recovered:
        """Remove everything unfinished and, unless the run is packed, compare blobs with rows."""
        layout, entries = self._context.layout, snapshot.entries.values()
        self._metadata = sum(len(each.record.metadata) for each in entries if each.record)
        unfinished = _empty(layout.staging) + _empty(layout.unfinished)
        if snapshot.tar is not None:
            return Recovered((), 0, unfinished)
        records = [each for entry in entries for each in (entry.record, entry.superseded) if each]
        sizes = {each.blob: each.size for each in records if each.blob}
        lost, unknown = self._blobs.resume(sizes)
        keys = tuple(entry.key for entry in entries if entry.record and entry.record.blob in lost)
        return Recovered(keys, unknown, unfinished)

    async def quiet(self) -> None:
        """Wait for the uploads that go to their end."""
        await self._threads.quiet()

    async def clear(self) -> None:
        """Remove all that was taken in. Raises OSError."""
        await self._threads.disk(self._blobs.clear)

    async def close(self) -> None:
        """Finish what has begun; nothing may be asked of the intake afterwards."""
        await self._threads.quiet()
        self._threads.close()


def _empty(folder: Path) -> int:
    """Remove everything in a directory; return how many things that were."""
    found = list(folder.iterdir())
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return len(found)


def _held(outcome: UploadOutcome, record: Record | None) -> str:
    """The digest to tell: whoever is told that the run is closed asked for nothing that is held."""
    return "" if record is None or outcome is UploadOutcome.CLOSED else record.digest


def _ended_by(error: Exception) -> UploadConclusion:
    """What an error on the way of a body means for its sender. Repeats no path of ours."""
    match error:
        case UploadEnded():
            return error.ended
        case InvalidPayload() | BadArchive():
            return UploadConclusion(UploadOutcome.REFUSED, str(error))
        case StoreBusy():
            return UploadConclusion(UploadOutcome.UNAVAILABLE, "the store is busy, try again")
        case StoreFull():
            return UploadConclusion(UploadOutcome.DISK_FULL, "no space left")
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return UploadConclusion(UploadOutcome.DISK_FULL, "no space left")
        case OSError():
            return UploadConclusion(UploadOutcome.UNWRITTEN, error.strerror or type(error).__name__)
        case _:
            return UploadConclusion(UploadOutcome.UNWRITTEN, str(error))
