"""The interface of every store, with what each answer promises. No code of an engine lives here.

All methods are called on one event loop. A method that awaits returns when its promise holds, and
raises `StoreError` when it cannot; then neither the disk nor what `snapshot` shows has changed.
Each call may be repeated: with the same arguments it changes nothing more and gives the same class
of answer. A caller that is cancelled while it waits leaves the operation running: it happens or
not, as with an answer that gets lost on its way.

Times are those of the run's clock, which goes on with `open_run` where it was left. Beats are heard
on this process's monotonic clock, so their ages start anew with each start.

The interface does not assume one process. Engines for several aggregators decide inside the
transaction of the engine, and what is only in memory can be rebuilt from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from reporter.errors import ReporterError
from reporter.run.entry import Entry, Marked
from reporter.run.plan import Key, Plan
from reporter.run.progress import Progress, UpdateId
from reporter.run.record import Failure, Record, ResultVerdict
from reporter.run.state import LauncherState, Phase, PodState, Snapshot, Tar
from reporter.run.tar_upload import TarUpload
from reporter.run.upload import UploadOutcome


class StoreError(ReporterError):
    """The store could not do it; nothing was changed. Trying again may help."""


class StoreFull(StoreError):
    """No space is left on the device of the store."""


class StoreBusy(StoreError):
    """More operations wait for the disk than the store takes; it is slow, not broken."""


class StoreLocked(StoreError):
    """Another process has the store open."""


class WrongRun(StoreError):
    """The store holds another run, or the run with a plan that this one contradicts."""


class RunNotReady(StoreError):
    """The run cannot go on to that phase: an entry is open, or a phase would be left out."""


class Received(NamedTuple):
    """The answer to a record that was offered. `held` is what stands now."""

    outcome: UploadOutcome
    held: Record | None


class ProgressTaken(Enum):
    """The answer to a progress update."""

    APPLIED = "applied"
    STALE = "stale"
    CLOSED = "closed"


class Store(Protocol):
    """One run and everything known about it."""

    async def open_run(self, plan: Plan, *, now: float) -> Snapshot:
        """Create the run, or resume it where it was, with the plan that it began with.

        Ages of heartbeats start at zero; deadlines and retry windows stay until `workers_return`.
        Raises `WrongRun` when another run is in the store, `StoreLocked` when another process has
        it, and `StoreError` when it is damaged, of a newer version or cannot be written. Nothing
        is changed then.
        """

    async def record_result(self, key: Key, record: Record) -> Received:
        """Offer a result or a worker's error report whose bytes are already safe.

        Of rivals the first wins, by rank. `ACCEPTED` and `DUPLICATE` survive power loss.
        """

    async def judge(self, key: Key, digest: str, said: ResultVerdict) -> bool:
        """Note what the result with that digest says. The first verdict on it stands.

        False if that result is not held, or is judged. On disk when this returns.
        """

    async def record_progress(
        self, key: Key, update: Progress, update_id: UpdateId | None, *, at: float
    ) -> ProgressTaken:
        """Take an update that arrived at `at`.

        A replacing update is visible at once and on disk within a second; this call does not wait
        for the disk. An appending one is on disk when this returns, and so is any that comes while
        one of its key is on its way. `STALE` says that it, or a newer one, is in already.
        """

    def record_heartbeat(self, key: Key, mono: float, *, beat: bool) -> None:
        """Note that the worker was heard at `mono`, the clock of this process.

        `beat` is false for any other request of the worker, which is a sign of life but does not
        make it one that has to go on beating. Never blocks; a crash may lose the last second.
        """

    def shift_heartbeats(self, seconds: float, now: float) -> None:
        """Make all ages smaller by `seconds`, in which this process was paused until `now`."""

    def listen(self, callback: Callable[[Key], None]) -> None:
        """Have `callback` called with each key that is heard, at once; the last to ask is told."""

    async def touch(self, keys: Collection[Key]) -> None:
        """Give entries a new revision: time alone has changed what is shown, such as who is stale.

        On disk when this returns.
        """

    async def mark_failed(self, key: Key, failure: Failure) -> Marked:
        """Note a failed upload (`attempt`) or write an error of the aggregator's own (`final`).

        A key outside the plan is `IGNORED`. On disk when this returns.
        """

    async def mark_all_failed(self, failures: Mapping[Key, Failure]) -> Mapping[Key, Marked]:
        """Do `mark_failed` for many keys in one step: all of it lasts, or nothing does."""

    async def give_up_due(
        self, now: float, excused: Collection[Key] = (), queued: Collection[Key] = ()
    ) -> int:
        """Give up all open entries whose retry window or deadline is over; return how many.

        The windows of those that are `excused` do not count, nor the deadlines of those that are
        `queued`. All of it lasts, or nothing does.
        """

    async def launch(self, plugin: str, *, at: float) -> None:
        """Note that a plugin which nobody watches was started: the clocks of its entries begin.

        The first launch stands, so a restarted aggregator may say it again.
        """

    async def begin_launching(self) -> None:
        """Note that there may be objects of the run in the cluster. On disk when this returns."""

    @property
    def launching(self) -> bool:
        """Whether `begin_launching` was said, by this process or one before."""

    async def launch_entries(self, keys: Collection[Key], *, at: float) -> None:
        """Note that the API server took the Jobs of these entries; the first launch stands."""

    async def start_entries(self, starts: Mapping[Key, float]) -> None:
        """Start the clock of each entry at that time, which sets its deadline.

        The first start stands. On disk when this returns.
        """

    def show_launch(self, pods: Mapping[Key, PodState], launcher: LauncherState) -> None:
        """Show what the entries' Pods do, and how the launcher is.

        Shown at once, with a new revision within a second; it does not outlive the process.
        """

    async def workers_return(self, *, at: float) -> None:
        """Note that workers can connect again since `at`; until then they could not.

        Open retry windows and deadlines are moved by the time since the last sign of life, which
        this one replaces.
        """

    def note_alive(self, at: float) -> None:
        """Note that this process is there at `at`, for the next one. On disk within a second."""

    async def lose(self, key: Key, text: str, *, at: float) -> bool:
        """Note that the bytes of the record held are gone, so that any upload is welcome again.

        False when no record with bytes is held, or the run is closed. On disk when this returns.
        """

    async def advance_run(
        self, phase: Phase, *, tar: Tar | None = None, error: str | None = None
    ) -> Snapshot:
        """Bring the run to `phase`, one step at a time and never back.

        Raises `RunNotReady` while an entry is open. For a phase that is reached or over, nothing
        happens. On disk when this returns.
        """

    async def packing_failed(self, error: str, *, at: float) -> float:
        """Note why there is no tarball yet; return since when packing has failed.

        For a run that is closed nothing happens. On disk when this returns.
        """

    async def retrieved(self, *, at: float) -> None:
        """Note that a client has the tarball; the first time stands.

        On disk when this returns.
        """

    async def note_upload(self, upload: TarUpload, tar: Tar | None = None) -> None:
        """Note how the upload of the tarball stands, and the tarball once there is one.

        An upload that is over stays so. On disk when this returns.
        """

    async def package_again(self) -> bool:
        """Let a run whose packing has failed or was given up be packed once more.

        False for any other run. On disk when this returns.
        """

    def snapshot(self) -> Snapshot:
        """Return the run as it is now: immutable, from memory, without I/O.

        `revision` is that of the newest change on the disk: of an entry, of progress or of the run.
        It never falls back, not even when the process was killed. Everything up to it is shown;
        while the snapshot is `ahead`, replacing progress that is still to be written is too, or
        what the launcher shows, and gets a revision then. Beats change ages and who is stale, never
        the revision.
        """

    def changes(self, since: int) -> Mapping[Key, int]:
        """Return the keys that have changed since a revision, with the revision of each.

        No two keys have the same one; the last to change comes last.
        """

    def entry(self, key: Key) -> Entry:
        """Return one entry without building a snapshot. Raises `KeyError` outside the plan."""

    @property
    def open_plugins(self) -> set[str]:
        """The plugins that have open entries, without building a snapshot."""

    @property
    def phase(self) -> Phase:
        """The phase of the run, without building a snapshot."""

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called on the loop soon after the revision grew.

        Several changes may share one call. Returns what ends the subscription.
        """

    @property
    def writable(self) -> bool:
        """Whether the last attempt to write succeeded. Reading works in any case."""

    async def probe(self) -> bool:
        """Try to write, and say whether it worked.

        A store that cannot write also tries by itself, once a second.
        """

    async def close(self) -> None:
        """Write what is only in memory, stop, and let others open the store. May be repeated."""
