"""What one process has in memory of a run, over any engine; it belongs to the event loop.

What is shown of the entries follows what the engine has committed; progress and heartbeats go the
other way and reach the disk by `write_behind`. No SQL, no thread and no file lives here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from reporter.aggregator.store import operations
from reporter.aggregator.store.contract import ProgressTaken, Received, StoreBusy, StoreError
from reporter.aggregator.store.engine import Changes, Engine
from reporter.aggregator.store.operations import REVISIONS, Run, Windows
from reporter.aggregator.store.write_behind import RUN_BYTES, LatestBeats, LatestProgress
from reporter.core.run.entry import Entry, Failure, Marked, Record
from reporter.core.run.launched import LauncherShown, PodShown
from reporter.core.run.plan import Key, Plan
from reporter.core.run.progress import Progress, UpdateId
from reporter.core.run.snapshot import Phase, Snapshot, Tar
from reporter.runtime import log

PACE = 1.0  # seconds between two writes of what is written behind; the most a crash may lose


class CachedStore:
    """`contract.Store` over an engine.

    `clock` gives the monotonic seconds that heartbeats are heard in, `wall` Unix seconds.
    `on_commit` gets the seconds and the number of operations of each transaction. The texts of all
    progress take about `room` bytes.
    """

    _loop: asyncio.AbstractEventLoop
    _run: Run
    _progress: LatestProgress
    _beats: LatestBeats

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        on_commit: Callable[[float, int], None] | None = None,
        windows: Windows | None = None,
        pace: float = PACE,
        room: int = RUN_BYTES,
    ) -> None:
        self._engine, self._clock, self._wall, self._pace = engine, clock, wall, pace
        self._on_commit, self._windows, self._room = on_commit, windows or Windows(), room
        self._alive_at: float | None = None  # Unix time; not yet written
        self._entries: dict[Key, Entry] = {}
        self._revision = self._promised = 0
        self._trouble: StoreError | None = StoreError("the store is not open")
        # What readers share for as long as it is true.
        self._snapshot: Snapshot | None = None
        self._views: dict[str, Mapping[Key, Any]] = {}
        self._pods: Mapping[Key, PodShown] = {}
        self._launcher: LauncherShown | None = None
        self._subscribers: dict[object, Callable[[], None]] = {}
        self._telling = False
        self._wanted, self._writing = asyncio.Event(), asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None

    async def open_run(self, plan: Plan, *, now: float) -> Snapshot:
        """Create or resume the run."""
        self._loop = asyncio.get_running_loop()
        loaded = await self._engine.open(operations.open_run(plan, now), self)
        self._run, self._trouble = loaded.run, None
        self._revision, self._promised = loaded.revision, loaded.run.revision
        self._entries = dict(loaded.entries)
        self._progress = LatestProgress(loaded.progress, self._room)
        self._deciding: Counter[Key] = Counter()
        self._beats = LatestBeats(loaded.armed, self._clock(), self._wall())
        self._snapshot, self._views = None, {}
        self._writer = self._loop.create_task(self._write_behind())
        return self.snapshot()

    # -- decided in a transaction ----------------------------------------------------------------

    async def record_result(self, key: Key, record: Record) -> Received:
        """Offer a record."""
        self.entry(key)
        return await self._engine.commit(operations.record_result(key, record))

    async def mark_failed(self, key: Key, failure: Failure) -> Marked:
        """Note a failure of one key."""
        return (await self.mark_all_failed({key: failure}))[key]

    async def mark_all_failed(self, failures: Mapping[Key, Failure]) -> Mapping[Key, Marked]:
        """Note failures of many keys."""
        known = {key: failure for key, failure in failures.items() if key in self._entries}
        marked = dict.fromkeys(failures, Marked.IGNORED)
        if known:
            marked.update(await self._engine.commit(operations.mark_failed(known, self._windows)))
        return marked

    async def launch(self, plugin: str, *, at: float) -> None:
        """Note the launch of a plugin that nobody watches."""
        await self._engine.commit(operations.launch(plugin, at))

    async def begin_launching(self) -> None:
        """Note that there may be objects of the run."""
        await self._engine.commit(operations.begin_launching())

    async def launch_entries(self, keys: Collection[Key], *, at: float) -> None:
        """Note the launch of entries."""
        if keys:
            await self._engine.commit(operations.launch_entries(keys, at))

    async def start_entries(self, starts: Mapping[Key, float]) -> None:
        """Start the clocks of entries."""
        if starts:
            await self._engine.commit(operations.start_entries(starts))

    async def workers_return(self, *, at: float) -> None:
        """Note that workers can connect again."""
        await self._engine.commit(operations.workers_return(at, self._alive_at))
        self._alive_at = None

    async def packing_failed(self, error: str, *, at: float) -> float:
        """Note why there is no tarball yet."""
        return await self._engine.commit(operations.packing_failed(error, at))

    async def retrieved(self, *, at: float) -> None:
        """Note that the tarball was downloaded."""
        if self._run.retrieved_at is None:
            await self._engine.commit(operations.retrieved(at))

    async def package_again(self) -> bool:
        """Take back that packing was given up."""
        return await self._engine.commit(operations.package_again())

    async def lose(self, key: Key, text: str, *, at: float) -> bool:
        """Note that a record's bytes are gone."""
        self.entry(key)
        return await self._engine.commit(operations.lose(key, text, at))

    async def advance_run(
        self, phase: Phase, *, tar: Tar | None = None, error: str | None = None
    ) -> Snapshot:
        """Go on to the next phase."""
        await self._engine.commit(operations.advance_run(phase, tar, error))
        return self.snapshot()

    async def record_progress(
        self, key: Key, update: Progress, update_id: UpdateId | None, *, at: float
    ) -> ProgressTaken:
        """Take an update; one that replaces does not wait, unless another is being decided."""
        self.entry(key)
        if self._run.phase is not Phase.RUNNING:
            return ProgressTaken.CLOSED
        if update.appending or key in self._deciding:
            unwritten, room = self._progress.unwritten.get(key), self._progress.room(key)
            decision = self._engine.commit(
                operations.take_progress(
                    key, update, update_id, at=at, unwritten=unwritten, room=room
                )
            )
            self._deciding[key] += 1
            decision.add_done_callback(lambda done: self._decided(key, done))
            # The caller may leave; what comes after must be decided after all the same.
            return await asyncio.shield(decision)
        if self._trouble is not None:
            raise type(self._trouble)(str(self._trouble))
        if self._revision >= self._promised:
            raise StoreBusy("the disk is too slow for what comes in")
        taken = self._progress.replace(key, update, update_id, at)
        if taken is ProgressTaken.APPLIED:
            self._views.pop("progress", None)
            self._wanted.set()
            self._changed()
        return taken

    def _decided(self, key: Key, decision: asyncio.Future[ProgressTaken]) -> None:
        self._deciding[key] -= 1
        if not self._deciding[key]:
            del self._deciding[key]
        decision.exception()  # its caller may be gone

    # -- decided here ----------------------------------------------------------------------------

    def record_heartbeat(self, key: Key, mono: float, *, beat: bool) -> None:
        """Note a sign of life."""
        self.entry(key)
        news = self._beats.hear(key, mono, beat=beat)
        self._views.pop("beats", None)
        self._snapshot = None
        self._wanted.set()
        if news:
            self._changed()

    def note_alive(self, at: float) -> None:
        """Note that this process is there."""
        self._alive_at = at
        self._wanted.set()

    def shift_heartbeats(self, seconds: float, now: float) -> None:
        """Let the last `seconds` not count."""
        self._beats.shift(seconds, now)
        self._views.pop("beats", None)
        self._snapshot = None

    def show_launch(self, pods: Mapping[Key, PodShown], launcher: LauncherShown) -> None:
        """Show what the launcher sees."""
        if (pods, launcher) != (self._pods, self._launcher):
            self._pods, self._launcher = pods, launcher
            self.renew()

    def renew(self) -> None:
        """Let the revision grow."""
        self._wanted.set()
        self._changed()

    # -- reading ---------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the run as it is now."""
        if self._snapshot is None:
            self._snapshot = Snapshot(
                plan=self._run.plan,
                revision=self._revision,
                phase=self._run.phase,
                started_at=self._run.started_at,
                entries=self._view("entries", self._entries),
                progress=self._view("progress", self._progress.shown),
                beats=self._view("beats", self._beats.shown),
                tar=self._run.tar,
                error=self._run.error,
                pods=self._pods,
                launcher=self._launcher,
                retrieved_at=self._run.retrieved_at,
            )
        return self._snapshot

    def _view(self, name: str, current: dict[Key, Any]) -> Mapping[Key, Any]:
        # Only what has changed since the last snapshot is copied again.
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = MappingProxyType(current.copy())
        return view

    def entry(self, key: Key) -> Entry:
        """Return one entry."""
        return self._entries[key]

    @property
    def phase(self) -> Phase:
        """The phase of the run."""
        return self._run.phase

    @property
    def launching(self) -> bool:
        """Whether there may be objects of the run."""
        return self._run.launching

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after changes."""
        token = object()
        self._subscribers[token] = callback

        def unsubscribe() -> None:
            self._subscribers.pop(token, None)

        return unsubscribe

    def _changed(self, changes: int = 1) -> None:
        self._revision += changes
        self._snapshot = None
        if not self._telling:
            self._telling = True
            self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._telling = False
        for callback in tuple(self._subscribers.values()):
            callback()

    # -- what the engine says --------------------------------------------------------------------

    def committed(self, changes: Changes) -> None:
        """Publish a transaction."""
        if self._trouble is not None:
            log.get().info("Store is writable again")
            self._trouble = None
        # Also what was only read: a commit that seemed to fail may have reached the disk after all.
        new = [entry for key, entry in changes.entries.items() if entry != self._entries[key]]
        self._entries.update((entry.key, entry) for entry in new)
        number, run = len(new), changes.run
        if run is not None:
            old, self._run = self._run, run
            number += _shown(run) != _shown(old)
        if progressed := self._progress.written(changes.progress):
            self._views.pop("progress", None)
        if number:
            self._views.pop("entries", None)
        if number + progressed:
            self._changed(number + progressed)
        if self._on_commit is not None:
            self._on_commit(changes.seconds, changes.operations)

    def refused(self, error: StoreError) -> None:
        """Remember that writing fails, and go on trying."""
        if self._trouble is None:
            log.get().error("Store is not writable", error=str(error))
        self._trouble = error
        self._wanted.set()

    @property
    def writable(self) -> bool:
        """Whether writing works, as far as is known."""
        return self._trouble is None

    async def probe(self) -> bool:
        """Try to write."""
        await self._write(probing=True)
        return self.writable

    # -- writing behind --------------------------------------------------------------------------

    async def _write_behind(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._write(probing=not self.writable)
            await asyncio.sleep(self._pace)
            if self._progress.unwritten or self._beats.unwritten or not self.writable:
                self._wanted.set()

    async def _write(self, *, probing: bool = False, last: bool = False) -> None:
        async with self._writing:
            progress, beats = dict(self._progress.unwritten), self._beats.claim()
            promise = self._promise(probing, last)
            alive_at, self._alive_at = self._alive_at, None
            if not (progress or beats or alive_at) and promise == self._promised:
                return
            try:
                self._promised = await self._engine.commit(
                    operations.write_behind(progress, beats, promise, alive_at)
                )
            except StoreError:
                self._alive_at = self._alive_at or alive_at
                self._beats.unwritten.update(key for key, *_ in beats)

    def _promise(self, probing: bool, last: bool) -> int:
        """Return the end of the range of revisions that the disk is to know of."""
        if last:
            return self._revision
        if probing or self._promised - self._revision < REVISIONS // 2:
            return max(self._promised + 1, self._revision + REVISIONS)
        return self._promised

    async def close(self) -> None:
        """Write the rest and stop."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writer
        await self._write(last=True)
        await self._engine.close()
        self._trouble = StoreError("the store is closed")


def _shown(run: Run) -> tuple[object, ...]:
    return run.phase, run.tar, run.error, run.retrieved_at
