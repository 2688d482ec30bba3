"""Looking for workers that have gone silent.

Says which entries are to be given up and why; `control` does it. Ages of heartbeats are of this
process's monotonic clock and do not outlive it.
"""

from __future__ import annotations

from collections.abc import Callable

from reporter.ledger import Store
from reporter.run import heartbeats as beats
from reporter.run.entry import silence
from reporter.run.heartbeats import Beat, Rhythm
from reporter.run.plan import Key
from reporter.run.record import Failure
from reporter.run.state import UNREACHABLE, Snapshot


class Silence:
    """The sweep over heartbeats of an open run.

    Whoever reads the status by its revision learns from a new one that a worker has been silent for
    three intervals, or is heard again. `full` gives the seconds, in all so far, in which workers
    found no place to be heard: they make nobody older.
    """

    def __init__(self, store: Store, rhythm: Rhythm, full: Callable[[], float] = float) -> None:
        self._store, self._rhythm = store, rhythm
        self._full, self._forgiven = full, full()
        self._sweep = beats.Sweep()
        snapshot = store.snapshot()
        self._quiet: set[Key] = set()  # whose entries are open
        # Whose entries are shown differently since that revision. At the start, whoever had been
        # silent before it: our own restart made them young.
        self._untold = {key for key, beat in snapshot.beats.items() if beat.armed}
        self._since = snapshot.revision
        # Of plugins that are known to beat: since when each entry has to, moved on by every pause
        # of ours.
        self._beating = [
            key for plugin in snapshot.plan.plugins if plugin.heartbeats for key in plugin.keys
        ]
        self._expected: dict[Key, float] = {}

    def due(self, mono: float) -> bool:
        """Say whether it is time for the next sweep."""
        return self._sweep.last is None or mono - self._sweep.last >= beats.SWEEP

    def look(self, now: float, mono: float) -> dict[Key, Failure]:
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
        quiet = {
            key
            for key, beat in snapshot.beats.items()
            if beats.quiet(beat, mono, self._rhythm.interval) and not snapshot.entries[key].terminal
        }
        if not self._untold:
            self._since = snapshot.revision
        self._untold |= quiet ^ self._quiet
        self._quiet = quiet
        found = {}
        # Who is lost is quiet as well: the timeout is more than three intervals.
        for key in quiet | (self._expected.keys() - snapshot.beats.keys()):
            beat, expected = snapshot.beats.get(key, Beat()), self._expected.get(key)
            if not snapshot.entries[key].terminal and beats.lost(
                beat, now=mono, timeout=self._rhythm.timeout, expected_since=expected
            ):
                heard = expected if beat.heard_at is None else beat.heard_at
                pod = snapshot.pods.get(key)
                why = pod.message if pod is not None and pod.reason == UNREACHABLE else ""
                found[key] = silence(now, mono - (heard or 0.0), why)
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
        self._expected = {key: min(mono, at + seconds) for key, at in self._expected.items()}

    def _expect(self, snapshot: Snapshot, mono: float) -> None:
        # Not from its launch: an image that is pulled is nobody's silence. And from when we first
        # see it: after a restart of ours everybody starts anew.
        for key in self._beating:
            if key not in self._expected and snapshot.entries[key].started_at is not None:
                self._expected[key] = mono
