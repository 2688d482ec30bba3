"""What one process has in memory of a run, over any engine; it belongs to the event loop.

The view of the entries follows what the engine has committed; progress and heartbeats go the
other way and reach the disk by `write_behind`. No SQL, no thread and no file lives here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from reporter.common import log
from reporter.ledger import operations, progress_operations, run_operations
from reporter.ledger.contract import ProgressTaken, Received, StoreError
from reporter.ledger.engine import Changes, Engine
from reporter.ledger.latest import LatestBeats, LatestProgress
from reporter.ledger.operations import Windows
from reporter.ledger.published import Published
from reporter.ledger.write_behind import PACE, RUN_BYTES, WriteBehind
from reporter.run.clock import RunClock
from reporter.run.entry import Entry, Marked
from reporter.run.plan import Key, Plan
from reporter.run.progress import Progress, UpdateId
from reporter.run.record import Failure, Record, ResultVerdict
from reporter.run.state import LauncherState, Phase, PodState, Snapshot, Tar
from reporter.run.tar_upload import TarUpload


class CachedStore:
    """`contract.Store` over an engine.

    `now` is the run's clock, whose monotonic seconds heartbeats are heard in; with the run open it
    goes on where that was left. `on_commit` gets the seconds and the number of operations of each
    transaction. The texts of all progress take about `room` bytes.
    """

    _beats: LatestBeats
    _behind: WriteBehind

    def __init__(
        self,
        engine: Engine,
        *,
        now: RunClock,
        on_commit: Callable[[float, int], None] | None = None,
        windows: Windows | None = None,
        pace: float = PACE,
        room: int = RUN_BYTES,
    ) -> None:
        self._engine, self._now, self._pace = engine, now, pace
        self._on_commit, self._windows, self._room = on_commit, windows or Windows(), room
        self._published, self._progress = Published(), LatestProgress({}, room)
        self._deciding: Counter[Key] = Counter()
        self._trouble: StoreError | None = StoreError("the store is not open")
        self._pods: Mapping[Key, PodState] = {}
        self._launcher: LauncherState | None = None
        self._open = False

    async def open_run(self, plan: Plan, *, now: float) -> Snapshot:
        """Create or resume the run."""
        self._published, self._progress = Published(), LatestProgress({}, self._room)
        armed = await self._engine.open(run_operations.open_run(plan, now, self._now.wall()), self)
        run = self._published.run
        self._now.resume(run.alive_at, run.alive_wall)
        self._beats = LatestBeats(armed, self._now.clock(), self._now())
        self._behind = WriteBehind(
            self._engine,
            self._progress,
            self._beats,
            pace=self._pace,
            writable=lambda: self.writable,
        )
        self._open = True
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
        known = {key: each for key, each in failures.items() if key in self._published.entries}
        marked = dict.fromkeys(failures, Marked.IGNORED)
        if known:
            marked.update(await self._engine.commit(operations.mark_failed(known, self._windows)))
        return marked

    async def give_up_due(
        self, now: float, excused: Collection[Key] = (), queued: Collection[Key] = ()
    ) -> int:
        """Give up the entries whose time is over; while there are none, the disk is not asked."""
        if self._published.due_at is None or self._published.due_at > now:
            return 0
        return await self._engine.commit(operations.give_up_due(now, excused, queued))

    async def touch(self, keys: Collection[Key]) -> None:
        """Let entries take a new revision."""
        if keys:
            await self._engine.commit(operations.touch(keys))

    async def launch(self, plugin: str, *, at: float) -> None:
        """Note the launch of a plugin that nobody watches."""
        await self._engine.commit(operations.launch(plugin, at))

    async def begin_launching(self) -> None:
        """Note that there may be objects of the run."""
        await self._engine.commit(run_operations.begin_launching())

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
        seen, wall = self._behind.alive, self._now.wall()
        await self._engine.commit(operations.workers_return(at, wall, seen and seen[0]))
        self._behind.alive = None

    async def packing_failed(self, error: str, *, at: float) -> float:
        """Note why there is no tarball yet."""
        return await self._engine.commit(run_operations.packing_failed(error, at))

    async def retrieved(self, *, at: float) -> None:
        """Note that a client has the tarball."""
        if self._published.run.retrieved_at is None:
            await self._engine.commit(run_operations.retrieved(at))

    async def note_upload(self, upload: TarUpload, tar: Tar | None = None) -> None:
        """Note how the upload stands."""
        await self._engine.commit(run_operations.note_upload(upload, tar))

    async def package_again(self) -> bool:
        """Take back that packing was given up."""
        return await self._engine.commit(run_operations.package_again())

    async def judge(self, key: Key, digest: str, said: ResultVerdict) -> bool:
        """Note what a result says."""
        return await self._engine.commit(operations.judge(key, digest, said))

    async def lose(self, key: Key, text: str, *, at: float) -> bool:
        """Note that a record's bytes are gone."""
        self.entry(key)
        return await self._engine.commit(operations.lose(key, text, at))

    async def advance_run(
        self, phase: Phase, *, tar: Tar | None = None, error: str | None = None
    ) -> Snapshot:
        """Go on to the next phase."""
        await self._engine.commit(run_operations.advance_run(phase, tar, error))
        return self.snapshot()

    async def record_progress(
        self, key: Key, update: Progress, update_id: UpdateId | None, *, at: float
    ) -> ProgressTaken:
        """Take an update; one that replaces does not wait, unless another is being decided."""
        self.entry(key)
        if self.phase is not Phase.RUNNING:
            return ProgressTaken.CLOSED
        if update.appending or key in self._deciding:
            unwritten, room = self._progress.unwritten.get(key), self._progress.room(key)
            decision = self._engine.commit(
                progress_operations.take_progress(
                    key, update, update_id, at=at, unwritten=unwritten, room=room
                )
            )
            self._deciding[key] += 1
            decision.add_done_callback(lambda done: self._decided(key, done))
            # The caller may leave; what comes after must be decided after all the same.
            return await asyncio.shield(decision)
        if self._trouble is not None:
            raise type(self._trouble)(str(self._trouble))
        taken = self._progress.replace(key, update, update_id, at)
        if taken is ProgressTaken.APPLIED:
            self._published.forget("progress")
            self._behind.wanted.set()
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
        self._beats.hear(key, mono, beat=beat)
        self._published.forget("beats")
        self._behind.wanted.set()

    def listen(self, callback: Callable[[Key], None]) -> None:
        """Have `callback` called with each key that is heard."""
        self._beats.listener = callback

    def note_alive(self, at: float) -> None:
        """Note that this process is there."""
        self._behind.alive = at, self._now.wall()
        self._behind.wanted.set()

    def shift_heartbeats(self, seconds: float, now: float) -> None:
        """Let the last `seconds` not count."""
        self._beats.shift(seconds, now)
        self._published.forget("beats")

    def show_launch(self, pods: Mapping[Key, PodState], launcher: LauncherState) -> None:
        """Show what the launcher sees."""
        old, self._pods = self._pods, pods
        moved = {key for key in pods.keys() | old.keys() if pods.get(key) != old.get(key)}
        if moved or launcher != self._launcher:
            self._launcher = launcher
            self._behind.shown = moved | (self._behind.shown or set())
            self._published.forget("pods")
            self._behind.wanted.set()

    # -- reading ---------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the run as it is now."""
        return self._published.snapshot(
            self._progress.shown,
            self._beats.shown,
            ahead=bool(self._progress.unwritten) or self._behind.shown is not None,
            pods=self._pods,
            launcher=self._launcher,
            skew=self._now.skew,
        )

    def changes(self, since: int) -> Mapping[Key, int]:
        """Return the keys that have changed since a revision."""
        return self._published.changes(since)

    def entry(self, key: Key) -> Entry:
        """Return one entry."""
        return self._published.entries[key]

    @property
    def open_plugins(self) -> set[str]:
        """The plugins that have open entries."""
        return self._published.open_plugins

    @property
    def phase(self) -> Phase:
        """The phase of the run."""
        return self._published.run.phase

    @property
    def launching(self) -> bool:
        """Whether there may be objects of the run."""
        return self._published.run.launching

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after changes."""
        return self._published.subscribe(callback)

    # -- what the engine says --------------------------------------------------------------------

    def committed(self, changes: Changes) -> None:
        """Publish a transaction."""
        if self._trouble is not None and self._open:
            log.get().info("Store is writable again")
        self._trouble = None
        self._published.apply(changes)
        if changes.progress:
            self._progress.written(changes.progress)
            self._published.forget("progress")
        if self._on_commit is not None and self._open:
            self._on_commit(changes.seconds, changes.operations)

    def refused(self, error: StoreError) -> None:
        """Remember that writing fails, and go on trying."""
        if self._trouble is None:
            log.get().error("Store is not writable", error=str(error))
        self._trouble = error
        self._behind.wanted.set()

    @property
    def writable(self) -> bool:
        """Whether writing works, as far as is known."""
        return self._trouble is None

    async def probe(self) -> bool:
        """Try to write."""
        await self._behind.write(probing=True)
        return self.writable

    async def close(self) -> None:
        """Write the rest and stop."""
        if not self._open:
            return
        self._open = False
        await self._behind.close()
        await self._engine.close()
        self._trouble = StoreError("the store is closed")
