"""What readers see of a run, in memory: what is on the disk, and what is on its way there.

Belongs to the event loop; nothing here waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Any

from reporter.ledger.lifecycle import Run
from reporter.ledger.rows import BeatRow, Commit
from reporter.run.clock import RunClock
from reporter.run.entry import Entry, State
from reporter.run.heartbeats import Beat, beaten, heard, shifted
from reporter.run.plan import Key, Plan
from reporter.run.progress import StoredProgress, fitting, footprint
from reporter.run.results import Sum
from reporter.run.state import LauncherState, PodState, Snapshot, kind_of, result_counts


class ShownRun:
    """A run as its transactions have told it, with the newest progress, heartbeats and Pods.

    `run` is what is committed. `armed` are the keys that were heard before this process started,
    and whether by a real heartbeat: they count as heard now. The texts of all progress take about
    `room` bytes.
    """

    def __init__(
        self, plan: Plan, run: Run, armed: Mapping[Key, bool], now: RunClock, room: int
    ) -> None:
        self.plan, self.run, self.revision = plan, run, 0
        self.entries = {key: Entry(key) for key in plan.keys}
        self.due_at: float | None = None
        """When time runs out for the first entry."""
        self.unwritten_progress: dict[Key, StoredProgress] = {}
        self.unwritten_beats: dict[Key, None] = {}
        self.unwritten_pods: set[Key] | None = None
        """The entries whose Pods are shown differently, if anything of the launcher is."""
        self._now, self._offset = now, now() - now.clock()
        self._progress: dict[Key, StoredProgress] = {}
        self._sizes: dict[Key, int] = {}
        self._free = room
        self._beats = {key: Beat(now.clock(), was_armed) for key, was_armed in armed.items()}
        self._pods: Mapping[Key, PodState] = {}
        self._launcher: LauncherState | None = None
        self._tally = Counter(map(kind_of, self.entries.values()))
        self._tests, self._bytes = Sum(), 0
        # The last change of each key, in the order of the revisions.
        self._revisions = dict.fromkeys(plan.keys, 1)
        # Shared by readers for as long as they are true.
        self._snapshot: Snapshot | None = None
        self._copies: dict[str, Mapping[Key, Any]] = {}
        self._subscribers: dict[object, Callable[[], None]] = {}
        self._telling = False

    def apply(self, commit: Commit) -> None:
        """Take in what is on the disk now."""
        grown = commit.revision > self.revision
        self.run, self.revision, self.due_at = commit.run, commit.revision, commit.due_at
        for revision, key, value in commit.changes:
            self._revisions.pop(key, None)
            self._revisions[key] = revision
            if isinstance(value, Entry):
                self._put_entry(value)
            else:
                self._put_progress(key, value)
        if grown:
            self._snapshot = None
            if not self._telling:
                self._telling = True
                asyncio.get_running_loop().call_soon(self._tell)

    def _put_entry(self, entry: Entry) -> None:
        old = self.entries[entry.key]
        self.entries[entry.key] = entry
        self._forget("entries")
        self._tally[kind_of(old)] -= 1
        self._tally[kind_of(entry)] += 1
        self._tests.put(entry.key, result_counts(entry) or {})
        self._bytes += _size(entry) - _size(old)

    def _put_progress(self, key: Key, new: StoredProgress) -> None:
        waiting, shown = self.unwritten_progress.get(key), self._progress.get(key)
        if waiting is not None and waiting.at <= new.at:
            del self.unwritten_progress[key]
        if shown is None or shown.at < new.at:
            self._show_progress(key, new)

    def _tell(self) -> None:
        self._telling = False
        for callback in tuple(self._subscribers.values()):
            callback()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after changes."""
        token = object()
        self._subscribers[token] = callback

        def unsubscribe() -> None:
            self._subscribers.pop(token, None)

        return unsubscribe

    # -- what is shown before it is on the disk --------------------------------------------------

    def progress(self, key: Key) -> StoredProgress | None:
        """The progress of a key, as shown."""
        return self._progress.get(key)

    def room(self, key: Key) -> int:
        """The bytes that the texts of a key may take, for all that the other keys have."""
        return self._free + self._sizes.get(key, 0)

    def show_progress(self, key: Key, new: StoredProgress) -> None:
        """Show progress that is to be written."""
        new = fitting(new, self.room(key))
        self.unwritten_progress[key] = new
        self._show_progress(key, new)

    def _show_progress(self, key: Key, new: StoredProgress) -> None:
        size = footprint(new)
        self._free += self._sizes.get(key, 0) - size
        self._sizes[key], self._progress[key] = size, new
        self._forget("progress")

    def hear(self, key: Key, mono: float, *, beat: bool) -> None:
        """Note a sign of life."""
        note = beaten if beat else heard
        self._beats[key] = note(self._beats.get(key) or Beat(), mono)
        self.unwritten_beats[key] = None
        self._forget("beats")

    def shift_beats(self, seconds: float, now: float) -> None:
        """Let the last `seconds` not count."""
        self._beats = {key: shifted(beat, seconds, now) for key, beat in self._beats.items()}
        self._forget("beats")

    def claim_beats(self, most: int) -> list[BeatRow]:
        """Take what is to be written of heartbeats, in the run's time."""
        claimed = []
        for key in list(islice(self.unwritten_beats, most)):
            del self.unwritten_beats[key]
            beat = self._beats[key]
            claimed.append((key, beat.armed, self._offset + (beat.heard_at or 0.0)))
        return claimed

    def show_launch(self, pods: Mapping[Key, PodState], launcher: LauncherState) -> None:
        """Show what the launcher sees."""
        old, self._pods = self._pods, pods
        moved = {key for key in pods.keys() | old.keys() if pods.get(key) != old.get(key)}
        if moved or launcher != self._launcher:
            self._launcher = launcher
            self.unwritten_pods = moved | (self.unwritten_pods or set())
            self._snapshot = None

    def pods_written(self, pods: set[Key] | None) -> None:
        """Note that these Pods have a revision; what moved meanwhile is still to be written."""
        if pods is not None and self.unwritten_pods is pods:
            self.unwritten_pods = None
            self._snapshot = None

    # -- reading ---------------------------------------------------------------------------------

    @property
    def open_plugins(self) -> set[str]:
        """The plugins that have open entries."""
        kinds = [kind for kind, many in self._tally.items() if many]
        return {kind.plugin for kind in kinds if kind.state is State.RUNNING}

    def changes(self, since: int) -> dict[Key, int]:
        """The keys with a greater revision, with it and in its order."""
        newer = takewhile(lambda each: each[1] > since, reversed(self._revisions.items()))
        return dict(reversed(list(newer)))

    def snapshot(self) -> Snapshot:
        """The run as it is now. Only what has changed since the last one is copied."""
        if self._snapshot is None:
            self._snapshot = Snapshot(
                plan=self.plan,
                revision=self.revision,
                phase=self.run.phase,
                started_at=self.run.started_at,
                entries=self._copy("entries", self.entries),
                progress=self._copy("progress", self._progress),
                beats=self._copy("beats", self._beats),
                tar=self.run.tar,
                error=self.run.error,
                pods=self._pods,
                launcher=self._launcher,
                retrieved_at=self.run.retrieved_at,
                upload=self.run.upload,
                skew=self._now.skew,
                ahead=bool(self.unwritten_progress) or self.unwritten_pods is not None,
                counted=dict(+self._tally),
                tests=self._tests.counts(),
                summed=self._bytes,
            )
        return self._snapshot

    def _copy(self, name: str, current: dict[Key, Any]) -> Mapping[Key, Any]:
        if name not in self._copies:
            self._copies[name] = MappingProxyType(current.copy())
        return self._copies[name]

    def _forget(self, name: str) -> None:
        self._copies.pop(name, None)
        self._snapshot = None


def _size(entry: Entry) -> int:
    return 0 if entry.record is None else entry.record.size
