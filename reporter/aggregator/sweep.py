"""Looking for workers that have gone silent, without looking at those that have not.

Says which entries are to be given up and why; `control` does it. Ages of heartbeats are of this
process's monotonic clock and do not outlive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile

from reporter.ledger import Store
from reporter.run import heartbeats as beats
from reporter.run.entry import silence
from reporter.run.heartbeats import Beat
from reporter.run.plan import Key
from reporter.run.record import Failure
from reporter.run.state import Snapshot

FailuresByKey = dict[Key, Failure]

_NEVER = Beat()


class Silence:
    """The sweep over heartbeats of an open run.

    `timeout` and `interval` are in seconds; a timeout of 0 is never, any other is more than three
    intervals. Whoever reads the status by its revision learns from a new one that a worker has been
    silent for three intervals, or is heard again. `full` gives the seconds, in all so far, in which
    workers found no place to be heard: they make nobody older.
    """

    def __init__(
        self, store: Store, timeout: float, interval: float, full: Callable[[], float] = float
    ) -> None:
        self._store, self._timeout, self._interval = store, timeout, interval
        self._full, self._forgiven = full, full()
        self._sweep = beats.Sweep()
        # Whoever was heard since the sweep that would have found them silent, the last one last.
        self._heard: dict[Key, None] = {}
        # The others, in that order; and those of them whose silence ends in a failure.
        self._quiet: dict[Key, None] = {}
        self._judged: dict[Key, None] = {}
        snapshot = store.snapshot()
        # Whose entries are shown differently since that revision. At the start, whoever had been
        # silent before it: our own restart made them young.
        self._untold = {key for key, beat in snapshot.beats.items() if beat.armed}
        self._since = snapshot.revision
        # Of plugins that are known to beat: since when each entry has to, moved on by every pause
        # of ours; those that have not begun yet, and those that were never heard, oldest first.
        self._beating = {plugin.name for plugin in snapshot.plan.plugins if plugin.heartbeats}
        self._expected: dict[Key, Beat] = {}
        self._unstarted = [key for key in snapshot.plan.keys if key.plugin in self._beating]
        self._never_heard: dict[Key, None] = {}
        self._line_up(snapshot)
        store.listen(self._hear)

    def due(self, mono: float) -> bool:
        """Say whether it is time for the next sweep."""
        return self._sweep.last is None or mono - self._sweep.last >= beats.SWEEP

    def look(self, now: float, mono: float) -> FailuresByKey:
        """Return the open entries whose workers have been silent for too long.

        `now` is by the run's clock, `mono` by the monotonic one. A sweep that comes late means
        that this process was paused, which makes nobody older.
        """
        self._sweep, late = self._sweep.at(mono)
        full = self._full()
        late, self._forgiven = max(late, full - self._forgiven), full
        if late:
            self.forgive(late, mono)
        snapshot = self._store.snapshot()
        self._expect(snapshot, mono)
        self._part(snapshot, mono)
        found = FailuresByKey()
        for key in [*self._silent(snapshot, mono), *self._absent(snapshot, mono)]:
            beat = snapshot.beats.get(key, _NEVER)
            expected = self._expected.get(key, _NEVER).heard_at
            if beats.lost(beat, now=mono, timeout=self._timeout, expected_since=expected):
                heard = beat.heard_at if beat.heard_at is not None else expected
                found[key] = silence(now, mono - (mono if heard is None else heard))
        return found

    async def tell(self) -> None:
        """Have the last sweeps' news shown with a new revision. Raises `StoreError`."""
        if self._untold:
            entries = self._store.snapshot().entries
            untold = self._untold.difference(self._store.changes(self._since))
            await self._store.touch({key for key in untold if not entries[key].terminal})
            self._untold = set()

    def forgive(self, seconds: float, mono: float) -> None:
        """Let the last `seconds` make nobody older."""
        self._store.shift_heartbeats(seconds, mono)
        self._expected = {
            key: beats.shifted(beat, seconds, mono) for key, beat in self._expected.items()
        }
        self._line_up(self._store.snapshot())

    def _hear(self, key: Key) -> None:
        self._heard.pop(key, None)
        self._heard[key] = None

    def _line_up(self, snapshot: Snapshot) -> None:
        """Treat all as heard: the next sweep parts them again."""
        known = sorted(snapshot.beats.items(), key=lambda item: item[1].heard_at or 0.0)
        self._heard = {key: None for key, _ in known if not snapshot.entries[key].terminal}

    def _expect(self, snapshot: Snapshot, mono: float) -> None:
        # Not from its launch: an image that is pulled is nobody's silence. And from when we first
        # see it: after a restart of ours everybody starts anew.
        began = [key for key in self._unstarted if snapshot.entries[key].started_at is not None]
        if began:
            self._expected.update(dict.fromkeys(began, Beat(mono)))
            self._never_heard.update(dict.fromkeys(began))
            self._unstarted = [key for key in self._unstarted if key not in self._expected]

    def _part(self, snapshot: Snapshot, mono: float) -> None:
        """Part the quiet from those who are heard; note whose entries are shown differently now."""

        def quiet(key: Key) -> bool:
            return beats.quiet(snapshot.beats[key], mono, self._interval)

        gone = dict.fromkeys(takewhile(quiet, self._heard))
        for key in gone:
            del self._heard[key]
            self._judged.pop(key, None)
            if self._timeout and (key.plugin in self._beating or snapshot.beats[key].armed):
                self._judged[key] = None
        back = self._quiet.keys() & self._heard.keys()
        for key in back:
            del self._quiet[key]
            self._judged.pop(key, None)
        if not self._untold:
            self._since = snapshot.revision
        self._untold |= back | (gone.keys() - self._quiet.keys())
        self._quiet.update(gone)

    def _silent(self, snapshot: Snapshot, mono: float) -> Iterator[Key]:
        """Those who were heard, but not within the timeout."""
        for key in list(self._judged):
            if snapshot.entries[key].terminal:
                del self._judged[key]
                continue
            age = beats.age(snapshot.beats[key], mono)
            if age is not None and age < self._timeout:
                return
            yield key

    def _absent(self, snapshot: Snapshot, mono: float) -> Iterator[Key]:
        """Those who were never heard, where this is too long ago."""
        for key in list(self._never_heard):
            if snapshot.entries[key].terminal or key in snapshot.beats:
                del self._never_heard[key]
                continue
            expected = self._expected[key].heard_at
            if not beats.lost(_NEVER, now=mono, timeout=self._timeout, expected_since=expected):
                return
            yield key
