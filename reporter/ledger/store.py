"""One run and everything known about it: what was expected, what came, and what became of the rest.

All methods are called on one event loop. One that awaits returns when its promise holds, and raises
`StoreError` when it cannot; then neither the disk nor what `snapshot` shows has changed. Each call
may be repeated: with the same arguments it changes nothing more and gives the same class of answer.
A caller that is cancelled while it waits leaves the operation running: it happens or not, as with
an answer that gets lost on its way.

What changes something is decided inside a transaction (`rows`, `writer`), by the rules in
`reporter.run` and `lifecycle`; readers get what is in memory (`view`). Replacing progress and
heartbeats are in memory first, and are written behind.

Times are those of the run's clock, which goes on with `open_run` where it was left. Heartbeats are
heard on this process's monotonic clock, so their ages start anew with each start.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from reporter.common import log
from reporter.ledger import lifecycle
from reporter.ledger.database import Connect
from reporter.ledger.errors import StoreError
from reporter.ledger.lifecycle import Run
from reporter.ledger.rows import Batch, Commit, storable
from reporter.ledger.view import ShownRun
from reporter.ledger.writer import Writer
from reporter.run import entry as rules
from reporter.run.clock import RunClock
from reporter.run.entry import Entry, Marked, State
from reporter.run.plan import Key, Plan
from reporter.run.progress import Progress, UpdateId, fitting, newest, take
from reporter.run.record import Failure, Record, ResultVerdict
from reporter.run.state import LauncherState, Phase, PodState, Snapshot, Tar
from reporter.run.tar_upload import TarUpload
from reporter.run.upload import UploadOutcome

T = TypeVar("T")

PACE = 1.0  # seconds between two writes behind; the most that a crash may lose
RUN_BYTES = 64 * 2**20  # memory for the texts of the progress of all keys
_MOST = 2_000  # rows of a kind in one transaction, which the loop takes in at once


@dataclass(frozen=True)
class Windows:
    """Seconds: how long a failed upload may be retried, and at most after the first failure."""

    retry: float = 120.0
    cap: float = 600.0


class Received(NamedTuple):
    """The answer to a record that was offered. `held` is what stands now."""

    outcome: UploadOutcome
    held: Record | None


class ProgressTaken(Enum):
    """The answer to a progress update."""

    APPLIED = "applied"
    STALE = "stale"
    CLOSED = "closed"


class Store:
    """The store of a run in the database at `path`; its directory must be there.

    `now` is the run's clock, whose monotonic seconds heartbeats are heard in. `on_commit` gets the
    seconds and the number of operations of each transaction. `pace` is the seconds between two
    writes behind, `room` the memory for progress in bytes; `connect` opens the database.
    """

    _view: ShownRun

    def __init__(
        self,
        path: Path,
        *,
        now: RunClock | None = None,
        on_commit: Callable[[float, int], None] | None = None,
        windows: Windows | None = None,
        pace: float = PACE,
        room: int = RUN_BYTES,
        connect: Connect = sqlite3.connect,
    ) -> None:
        self._now = now or RunClock(time.monotonic, time.time)
        self._on_commit, self._windows = on_commit, windows or Windows()
        self._pace, self._room = pace, room
        self._writer = Writer(path, connect, self._committed, self._refused)
        self._deciding: Counter[Key] = Counter()
        self._trouble: StoreError | None = StoreError("the store is not open")
        self._alive: tuple[float, float] | None = None  # not written yet: the run's, the wall clock
        self._behind: asyncio.Task[None] | None = None

    async def open_run(self, plan: Plan, *, now: float) -> Snapshot:
        """Create the run, or resume it where it was, with the plan that it began with.

        Ages of heartbeats start at zero; deadlines and retry windows stay until `workers_return`.
        Raises `WrongRun` when another run is in the store, `StoreLocked` when another process has
        it, and `StoreError` when it is damaged, of another version or cannot be written. Nothing
        is changed then.
        """
        run = Run(started_at=now, alive_at=now, alive_wall=self._now.wall())
        plan, armed, commit = await self._writer.open(plan, run)
        self._now.resume(commit.run.alive_at, commit.run.alive_wall)
        self._view = ShownRun(plan, commit.run, armed, self._now, self._room)
        self._view.apply(commit)
        self._trouble, self._alive = None, None
        self._wanted, self._writing = asyncio.Event(), asyncio.Lock()
        self._behind = asyncio.get_running_loop().create_task(self._write_behind())
        return self.snapshot()

    async def close(self) -> None:
        """Write what is only in memory, stop, and let others open the store. May be repeated."""
        if self._behind is None:
            return
        behind, self._behind = self._behind, None
        behind.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await behind
        await self._write()
        await self._writer.close()
        self._trouble = StoreError("the store is closed")

    # -- entries ---------------------------------------------------------------------------------

    async def record_result(self, key: Key, record: Record) -> Received:
        """Offer a result or a worker's error report whose bytes are already safe.

        Of rivals the first wins, by rank. `ACCEPTED` and `DUPLICATE` survive power loss.
        """
        self.entry(key)
        record = storable(record)

        def rule(run: Run, entry: Entry) -> tuple[Entry, Received]:
            new, outcome = rules.receive(entry, record, closed=not run.running)
            return new, Received(outcome, new.record)

        return (await self._update([key], rule))[key]

    async def judge(self, key: Key, digest: str, said: ResultVerdict) -> bool:
        """Note what the result with that digest says. The first verdict on it stands.

        False if that result is not held, or is judged. On disk when this returns.
        """

        def rule(_: Run, entry: Entry) -> tuple[Entry, bool]:
            new = rules.judge(entry, digest, said)
            return new, new is not entry

        return (await self._update([key], rule))[key]

    async def lose(self, key: Key, text: str, *, at: float) -> bool:
        """Note that the bytes of the record held are gone, so that any upload is welcome again.

        False when no record with bytes is held, or the run is closed. On disk when this returns.
        """
        self.entry(key)

        def rule(run: Run, entry: Entry) -> tuple[Entry, bool]:
            if run.phase is Phase.CLOSED or entry.record is None or not entry.record.digest:
                return entry, False
            return rules.lose(entry, at, text), True

        return (await self._update([key], rule))[key]

    async def mark_failed(self, key: Key, failure: Failure) -> Marked:
        """Note a failed upload (`attempt`) or write an error of the aggregator's own (`final`).

        A key outside the plan is `IGNORED`. On disk when this returns.
        """
        return (await self.mark_all_failed({key: storable(failure)}))[key]

    async def mark_all_failed(self, failures: Mapping[Key, Failure]) -> Mapping[Key, Marked]:
        """Do `mark_failed` for many keys in one step: all of it lasts, or nothing does."""
        window, cap = self._windows.retry, self._windows.cap

        def rule(run: Run, entry: Entry) -> tuple[Entry, Marked]:
            closed, failure = not run.running, failures[entry.key]
            return rules.fail(entry, failure, closed=closed, window=window, cap=cap)

        known = [key for key in failures if key in self._view.entries]
        return dict.fromkeys(failures, Marked.IGNORED) | await self._update(known, rule)

    async def give_up_due(
        self, now: float, excused: Collection[Key] = (), queued: Collection[Key] = ()
    ) -> int:
        """Give up all open entries whose retry window or deadline is over; return how many.

        The windows of those that are `excused` do not count, nor the deadlines of those that are
        `queued`. All of it lasts, or nothing does. While nothing is due, the disk is not asked.
        """
        if self._view.due_at is None or self._view.due_at > now:
            return 0

        def rule(_: Run, entry: Entry) -> tuple[Entry, bool]:
            key = entry.key
            failure = rules.due(entry, now, excused=key in excused, queued=key in queued)
            if failure is None:
                return entry, False
            return rules.fail(entry, failure, closed=False)[0], True

        return sum((await self._update(self._view.plan.keys, rule)).values())

    async def note_plugin_launch(self, plugin: str, *, at: float) -> None:
        """Note that a plugin which nobody watches was started: the clocks of its entries begin.

        The first launch stands, so a restarted aggregator may say it again.
        """
        plan = self._view.plan
        found, timeout = plan.plugin(plugin), plan.timeout_of(plugin)

        def rule(_: Run, entry: Entry) -> tuple[Entry, None]:
            return rules.start(rules.launch(entry, at), at, timeout), None

        await self._update(found.keys if found else (), rule)

    async def note_launches(self, keys: Collection[Key], *, at: float) -> None:
        """Note that the API server took the Jobs of these entries; the first launch stands."""
        await self._update(keys, lambda _, entry: (rules.launch(entry, at), None))

    async def start_entries(self, starts: Mapping[Key, float]) -> None:
        """Start the clock of each entry at that time, which sets its deadline.

        The first start stands. On disk when this returns.
        """

        def rule(_: Run, entry: Entry) -> tuple[Entry, None]:
            timeout = self._view.plan.timeout_of(entry.key.plugin)
            return rules.start(entry, starts[entry.key], timeout), None

        await self._update(starts, rule)

    async def touch(self, keys: Collection[Key]) -> None:
        """Give entries a new revision: time alone has changed what is shown, such as who is stale.

        On disk when this returns.
        """
        if keys:
            await self._writer.submit(lambda batch: batch.touch(keys))

    async def _update(
        self, keys: Collection[Key], rule: Callable[[Run, Entry], tuple[Entry, T]]
    ) -> dict[Key, T]:
        """Apply a rule to entries in one transaction; return what it says of each."""
        if not keys:
            return {}
        return await self._writer.submit(
            lambda batch: batch.update(keys, lambda entry: rule(batch.run, entry))
        )

    # -- progress and heartbeats -----------------------------------------------------------------

    async def record_progress(
        self, key: Key, update: Progress, update_id: UpdateId | None, *, at: float
    ) -> ProgressTaken:
        """Take an update that arrived at `at`.

        A replacing update is visible at once and on disk within a second; this call does not wait
        for the disk. An appending one is on disk when this returns, and so is any that comes while
        one of its key is on its way. `STALE` says that it, or a newer one, is in already.
        """
        self.entry(key)
        if not self._view.run.running:
            return ProgressTaken.CLOSED
        if update.appending or key in self._deciding:
            return await self._decide_progress(key, update, update_id, at)
        if self._trouble is not None:
            raise type(self._trouble)(str(self._trouble))
        new = take(self._view.progress(key), update, update_id, at)
        if new is None:
            return ProgressTaken.STALE
        self._view.show_progress(key, new)
        self._wanted.set()
        return ProgressTaken.APPLIED

    async def _decide_progress(
        self, key: Key, update: Progress, update_id: UpdateId | None, at: float
    ) -> ProgressTaken:
        """Combine an update with what is stored, or with what is newer and was only in memory."""
        unwritten, room = self._view.unwritten_progress.get(key), self._view.room(key)

        def operation(batch: Batch) -> ProgressTaken:
            if not batch.run.running:
                return ProgressTaken.CLOSED
            new = take(newest(batch.progress(key), unwritten), update, update_id, at)
            if new is None:
                return ProgressTaken.STALE
            batch.put_progress(key, fitting(new, room))
            return ProgressTaken.APPLIED

        def decided(done: asyncio.Future[ProgressTaken]) -> None:
            self._deciding[key] -= 1
            if not self._deciding[key]:
                del self._deciding[key]
            done.exception()  # its caller may be gone

        decision = self._writer.submit(operation)
        self._deciding[key] += 1
        decision.add_done_callback(decided)
        # The caller may leave; what comes after must be decided after all the same.
        return await asyncio.shield(decision)

    def record_heartbeat(self, key: Key, mono: float, *, beat: bool) -> None:
        """Note that the worker was heard at `mono`, the clock of this process.

        `beat` is false for any other request of the worker, which is a sign of life but does not
        make it one that has to go on beating. Never blocks; a crash may lose the last second.
        """
        self.entry(key)
        self._view.hear(key, mono, beat=beat)
        self._wanted.set()

    def shift_heartbeats(self, seconds: float, now: float) -> None:
        """Make all ages smaller by `seconds`, in which this process was paused until `now`."""
        self._view.shift_beats(seconds, now)

    # -- the run ---------------------------------------------------------------------------------

    async def begin_launching(self) -> None:
        """Note that there may be objects of the run in the cluster. On disk when this returns."""
        await self._change_run(lambda run: replace(run, launching=True))

    async def workers_return(self, *, at: float) -> None:
        """Note that workers can connect again since `at`; until then they could not.

        Open retry windows and deadlines are moved by the time since the last sign of life, which
        this one replaces.
        """
        seen, wall, timeout_of = self._alive or (0.0,), self._now.wall(), self._view.plan.timeout_of

        def operation(batch: Batch) -> None:
            outage = max(0.0, at - max(seen[0], batch.run.alive_at))

            def rule(entry: Entry) -> tuple[Entry, None]:
                timeout = timeout_of(entry.key.plugin)
                return rules.returned(entry, at, outage, timeout), None

            batch.update(batch.plan.keys, rule)
            batch.run = replace(batch.run, alive_at=at, alive_wall=wall)

        await self._writer.submit(operation)

    def note_alive(self, at: float) -> None:
        """Note that this process is there at `at`, for the next one. On disk within a second."""
        self._alive = at, self._now.wall()
        self._wanted.set()

    async def advance_run(
        self, phase: Phase, *, tar: Tar | None = None, error: str | None = None
    ) -> Snapshot:
        """Bring the run to `phase`, one step at a time and never back.

        Raises `RunNotReady` while an entry is open. For a phase that is reached or over, nothing
        happens. On disk when this returns.
        """

        def operation(batch: Batch) -> None:
            still_open = [entry.key for entry in batch.entries() if not entry.terminal]
            run = lifecycle.advance(batch.run, phase, still_open, tar=tar, error=error)
            if run.phase is Phase.CLOSED and batch.run.phase is not Phase.CLOSED:
                # Results that are missing now count as failed.
                batch.touch([each.key for each in batch.entries() if each.state is State.FAILED])
            batch.run = run

        await self._writer.submit(operation)
        return self.snapshot()

    async def packing_failed(self, error: str, *, at: float) -> float:
        """Note why there is no tarball yet; return since when packing has failed.

        For a run that is closed nothing happens. On disk when this returns.
        """
        run = await self._change_run(lambda run: lifecycle.packing_failed(run, error, at))
        return at if run.packing_failed_since is None else run.packing_failed_since

    async def retrieved(self, *, at: float) -> None:
        """Note that a client has the tarball; the first time stands.

        On disk when this returns.
        """
        if self._view.run.retrieved_at is None:
            await self._change_run(
                lambda run: replace(run, retrieved_at=at) if run.retrieved_at is None else run
            )

    async def note_upload(self, upload: TarUpload, tar: Tar | None = None) -> None:
        """Note how the upload of the tarball stands, and the tarball once there is one.

        An upload that is over stays so. On disk when this returns.
        """
        await self._change_run(lambda run: lifecycle.note_upload(run, upload, tar))

    async def package_again(self) -> bool:
        """Let a run whose packing has failed or was given up be packed once more.

        False for any other run. On disk when this returns.
        """

        def operation(batch: Batch) -> bool:
            run = lifecycle.package_again(batch.run)
            batch.run = run or batch.run
            return run is not None

        return await self._writer.submit(operation)

    async def _change_run(self, rule: Callable[[Run], Run]) -> Run:
        def operation(batch: Batch) -> Run:
            batch.run = rule(batch.run)
            return batch.run

        return await self._writer.submit(operation)

    def show_launch(self, pods: Mapping[Key, PodState], launcher: LauncherState) -> None:
        """Show what the entries' Pods do, and how the launcher is.

        Shown at once, with a new revision within a second; it does not outlive the process.
        """
        self._view.show_launch(pods, launcher)
        self._wanted.set()

    # -- reading ---------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the run as it is now: immutable, from memory, without I/O.

        `revision` is that of the newest change on the disk: of an entry, of progress or of the run.
        It never falls back, not even when the process was killed. Everything up to it is shown;
        while the snapshot is `ahead`, replacing progress that is still to be written is too, or
        what the launcher shows, and gets a revision then. Beats change ages and who is stale, never
        the revision.
        """
        return self._view.snapshot()

    def changes(self, since: int) -> Mapping[Key, int]:
        """Return the keys that have changed since a revision, with the revision of each.

        In its order. Keys that have never changed have 1; no two others have the same one.
        """
        return self._view.changes(since)

    def entry(self, key: Key) -> Entry:
        """Return one entry without building a snapshot. Raises `KeyError` outside the plan."""
        return self._view.entries[key]

    @property
    def open_plugins(self) -> set[str]:
        """The plugins that have open entries, without building a snapshot."""
        return self._view.open_plugins

    @property
    def phase(self) -> Phase:
        """The phase of the run, without building a snapshot."""
        return self._view.run.phase

    @property
    def launching(self) -> bool:
        """Whether `begin_launching` was said, by this process or one before."""
        return self._view.run.launching

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called on the loop soon after the revision grew.

        Several changes may share one call. Returns what ends the subscription.
        """
        return self._view.subscribe(callback)

    # -- the disk --------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether the last attempt to write succeeded. Reading works in any case."""
        return self._trouble is None

    async def probe(self) -> bool:
        """Try to write, and say whether it worked.

        A store that cannot write also tries by itself, once a second.
        """
        await self._write(probing=True)
        return self.writable

    def _committed(self, commit: Commit, seconds: float, operations: int) -> None:
        if self._trouble is not None:
            log.get().info("Store is writable again")
        self._trouble = None
        self._view.apply(commit)
        if self._on_commit is not None:
            self._on_commit(seconds, operations)

    def _refused(self, error: StoreError) -> None:
        if self._trouble is None:
            log.get().error("Store is not writable", error=str(error))
        self._trouble = error
        self._wanted.set()

    async def _write_behind(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._write(probing=not self.writable)
            await asyncio.sleep(self._pace)
            if self._waiting or not self.writable:
                self._wanted.set()

    @property
    def _waiting(self) -> bool:
        view = self._view
        return bool(view.unwritten_progress or view.unwritten_beats) or (
            view.unwritten_pods is not None
        )

    async def _write(self, *, probing: bool = False) -> None:
        """Write what is only in memory; `probing` also when there is nothing."""
        async with self._writing:
            while probing or self._waiting or self._alive is not None:
                if not await self._write_some(probing):
                    return
                probing = False

    async def _write_some(self, probing: bool) -> bool:
        """Write one transaction; return whether it was too small for all."""
        view = self._view
        progress = dict(islice(view.unwritten_progress.items(), _MOST))
        beats = view.claim_beats(_MOST)
        pods = view.unwritten_pods
        alive, self._alive = self._alive, None

        def operation(batch: Batch) -> None:
            batch.touch(pods or ())
            batch.bump_revision |= pods is not None
            for key, new in progress.items():
                batch.put_progress(key, new)
            batch.beats += beats
            batch.force_write |= probing
            if alive is not None and alive[0] > batch.run.alive_at:
                batch.run = replace(batch.run, alive_at=alive[0], alive_wall=alive[1])

        try:
            await self._writer.submit(operation)
        except StoreError:
            self._alive = self._alive or alive
            view.unwritten_beats.update((key, None) for key, *_ in beats)
            return False
        view.pods_written(pods)
        return _MOST in (len(progress), len(beats))
