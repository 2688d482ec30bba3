"""What the results of a plugin hold beyond verdicts: facts that differ, what is in a snapshot.

It is read in a process of its own when somebody asks, and once more before the bytes of the results
go into the tarball: after that it is kept.
"""

import asyncio
import contextlib
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

from reporter.aggregator.judging.looking import FACTS, SNAPSHOT
from reporter.aggregator.judging.process import Judge
from reporter.aggregator.store.blobs import BlobStore
from reporter.aggregator.store.kept import KeptDocuments
from reporter.aggregator.store.layout import Layout
from reporter.core.judge.report import PARSED
from reporter.core.launch.snapshot_plugin import PLUGIN
from reporter.core.run.plan import GLOBAL, Key, Plugin
from reporter.core.run.record import Rank, Record
from reporter.core.run.results import judging
from reporter.core.run.snapshot import Snapshot

_REMEMBERED: Final = 4  # documents, of at most 1 MiB each
_FAILED: Final = 60.0  # seconds for which what could not be read is not read again
_NONE: Final = b"null"


class Missing(Enum):
    """Why there is no document."""

    NOT_YET = "no result with this content has been received yet"
    NOTHING = "the results do not contain it"
    GONE = "the results are in the tarball, and it was not kept"
    UNREADABLE = "the results cannot be read"
    JUDGING = "results are still being judged"


class Contents:
    """Reads the results of one run. Documents are JSON, ready to be sent."""

    def __init__(
        self,
        layout: Layout,
        blobs: BlobStore,
        judge: Judge,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._layout, self._blobs, self._judge, self._kept = (
            layout,
            blobs,
            judge,
            KeptDocuments(layout),
        )
        self._clock = clock
        self._turn = asyncio.Lock()
        self._work: asyncio.Future[bytes | Missing] | None = None
        self._last: dict[tuple[str, str, str], bytes] = {}
        self._failed: dict[tuple[str, str, str], float] = {}  # when it may be read again

    async def differences(self, snapshot: Snapshot, plugin: str) -> bytes | Missing:
        """Return which facts differ between the nodes of a plugin."""
        return await self._document(FACTS, snapshot, plugin)

    async def contents(self, snapshot: Snapshot, plugin: str) -> bytes | Missing:
        """Return what the cluster's snapshot of a plugin holds."""
        return await self._document(SNAPSHOT, snapshot, plugin)

    async def keep(self, snapshot: Snapshot) -> None:
        """Keep the documents of all plugins, for when the results are gone.

        Raises `JudgingStopped`.
        """
        for plugin in snapshot.plan.plugins:
            if plugin.result_format in PARSED or not (plugin.nodes or plugin.name == PLUGIN):
                continue
            what = FACTS if plugin.nodes else SNAPSHOT
            with contextlib.suppress(OSError, MemoryError, RuntimeError):
                await self._document(what, snapshot, plugin.name, keep=True)

    async def _document(
        self, what: str, snapshot: Snapshot, plugin: str, *, keep: bool = False
    ) -> bytes | Missing:
        found = snapshot.plan.plugin(plugin)
        if found is None:
            return Missing.NOTHING
        async with self._turn:
            # Who asked for it may have left; its thread is still at work.
            if self._work is not None:
                await asyncio.wait((self._work,))
            work = asyncio.to_thread(self._made, what, snapshot, found, keep)
            self._work = asyncio.ensure_future(work)
            self._work.add_done_callback(lambda done: done.cancelled() or done.exception())
            return await asyncio.shield(self._work)

    # -- in a thread, one at a time --------------------------------------------------------------

    def _made(self, what: str, snapshot: Snapshot, plugin: Plugin, keep: bool) -> bytes | Missing:
        keys = plugin.keys if what == FACTS else (Key(plugin.name, GLOBAL),)
        records = dict(_archives(snapshot, keys))
        if not records:
            over = all(
                key not in snapshot.entries or snapshot.entries[key].terminal for key in keys
            )
            return Missing.NOTHING if over else Missing.NOT_YET
        source = _source(records)
        name = what, plugin.name, source
        document = self._last.get(name)
        if document is None:
            document = self._kept.read(what, plugin.name, source)
        if document is None:
            now = self._clock()
            self._failed = {each: until for each, until in self._failed.items() if now < until}
            if name in self._failed and not keep:
                return Missing.UNREADABLE
            # The run's end waits for verdicts, and one result is read at a time.
            if judging(snapshot):
                return Missing.JUDGING
            document = self._read(what, records)
            if not all(self._blobs.exists(each.blob) for each in records.values()):
                return Missing.GONE  # some may have been gone when they were read
        if document is None:
            self._failed[name] = self._clock() + _FAILED
            return Missing.UNREADABLE
        self._remember(name, document)
        if document == _NONE:
            return Missing.NOTHING
        if keep:
            self._kept.write(what, plugin.name, source, document)
        return document

    def _read(self, what: str, records: dict[str, Record]) -> bytes | None:
        with tempfile.TemporaryFile("w+b", dir=self._layout.staging) as lines:
            for node, record in records.items():
                path = str(self._blobs.local_file(record.blob))
                lines.write(f"{json.dumps([node, path, record.size])}\n".encode())
            lines.flush()
            lines.seek(0)
            return self._judge.look(what, lines)

    def _remember(self, name: tuple[str, str, str], document: bytes) -> None:
        self._last.pop(name, None)
        self._last[name] = document
        while len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]


def _archives(snapshot: Snapshot, keys: tuple[Key, ...]) -> Iterator[tuple[str, Record]]:
    for key in keys:
        entry = snapshot.entries.get(key)
        record = None if entry is None else entry.record
        if record is not None and record.rank is Rank.RESULT and record.archive:
            yield key.node, record


def _source(records: dict[str, Record]) -> str:
    found = hashlib.sha256()
    for node, record in records.items():
        found.update(f"{node} {record.digest}\n".encode())
    return found.hexdigest()
