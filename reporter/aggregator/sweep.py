"""Looking for what time has done: retry windows and deadlines that are over, workers gone silent.

Says which entries are to be given up and why; `control` does it. Wall times outlive a restart,
ages of heartbeats do not: they are of this process's monotonic clock.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from reporter.aggregator.store import Store
from reporter.core.run import beats
from reporter.core.run.beats import Beat
from reporter.core.run.entry import due, silence
from reporter.core.run.plan import Key
from reporter.core.run.record import Failure
from reporter.core.run.snapshot import Snapshot

Found = dict[Key, Failure]

_NEVER = Beat()


def overdue(snapshot: Snapshot, now: float, excused: Collection[Key] = ()) -> Found:
    """Return the open entries whose retry window or deadline is over at the Unix time `now`.

    The windows of those that are `excused` do not count: their next try is here, and waits for us.
    """
    found = Found()
    for key, entry in snapshot.entries.items():
        failure = due(entry, now)
        if failure is not None and key in excused:
            failure = due(replace(entry, window=None), now)
        if failure is not None:
            found[key] = failure
    return found


class Silence:
    """The sweep over heartbeats. `timeout` and `interval` are in seconds, a timeout of 0 is never.

    Whoever reads the status by its revision learns from a new one that a worker has been silent for
    three intervals, or is heard again. `full` gives the seconds, in all so far, in which workers
    found no place to be heard: they make nobody older.
    """

    def __init__(
        self, store: Store, timeout: float, interval: float, full: Callable[[], float] = float
    ) -> None:
        self._store, self._timeout, self._interval = store, timeout, interval
        self._full, self._forgiven = full, full()
        self._sweep = beats.Sweep()
        self._quiet: set[Key] = set()
        # By plugin that is known to beat: since when it has to, moved on by every pause of ours.
        self._expected: dict[str, Beat] = {}

    def due(self, mono: float) -> bool:
        """Say whether it is time for the next sweep."""
        return self._sweep.last is None or mono - self._sweep.last >= beats.SWEEP

    def look(self, now: float, mono: float) -> Found:
        """Return the open entries whose workers have been silent for too long.

        `now` is Unix time, `mono` the monotonic clock. A sweep that comes late means that this
        process was paused, which makes nobody older.
        """
        self._sweep, late = self._sweep.at(mono)
        full = self._full()
        late, self._forgiven = max(late, full - self._forgiven), full
        if late:
            self._forgive(late, mono)
        snapshot = self._store.snapshot()
        self._expect(snapshot, mono)
        found, quiet = Found(), set()
        for key, entry in snapshot.entries.items():
            if entry.terminal:
                continue
            beat = snapshot.beats.get(key, _NEVER)
            expected = self._expected.get(key.plugin, _NEVER).heard_at
            if beats.lost(beat, now=mono, timeout=self._timeout, expected_since=expected):
                heard = beat.heard_at if beat.heard_at is not None else expected
                found[key] = silence(now, mono - (mono if heard is None else heard))
            if beats.quiet(beat, mono, self._interval):
                quiet.add(key)
        if quiet != self._quiet:
            self._quiet = quiet
            self._store.renew()
        return found

    def _forgive(self, late: float, mono: float) -> None:
        self._store.shift_heartbeats(late, mono)
        self._expected = {
            plugin: beats.shifted(beat, late, mono) for plugin, beat in self._expected.items()
        }

    def _expect(self, snapshot: Snapshot, mono: float) -> None:
        for plugin in snapshot.plan.plugins:
            if not plugin.heartbeats or plugin.name in self._expected:
                continue
            if any(snapshot.entries[key].launched_at is not None for key in plugin.keys):
                # From when we first see it: after a restart of ours everybody starts anew.
                self._expected[plugin.name] = Beat(mono)
