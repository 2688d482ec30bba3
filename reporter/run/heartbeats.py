"""Heartbeats: when a worker was last heard, and when its silence means something.

All times are the monotonic seconds of the aggregator's own clock; nothing that a worker sends is
used as time. Writing down the failure of a silent worker is not done here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from reporter.run.plan import Key

INTERVAL: Final = 15.0
TIMEOUT: Final = 120.0
SWEEP: Final = 5.0
LATE: Final = 10.0
STALE_AFTER: Final = 3  # intervals
LOST_AFTER: Final = 4  # intervals, at least
KEPT_FOR: Final = 3  # intervals: a beat on a new connection costs twenty times as much
MOST_PER_SECOND: Final = 200


@dataclass(frozen=True, slots=True)
class Rhythm:
    """What a run asks of its workers, in seconds.

    A heartbeat every `interval`; silence for `timeout` (0: never) is a failure; a connection may be
    idle for `keep_alive`.
    """

    interval: int = int(INTERVAL)
    timeout: float = TIMEOUT
    keep_alive: float = KEPT_FOR * INTERVAL


def rhythm(keys: int, interval: int, timeout: float) -> Rhythm:
    """Return the rhythm of a run with so many keys, from its operator's settings.

    The interval grows so that all workers together stay below a rate. Whoever misses two beats and
    comes late with the third is alive, so the timeout grows with it.
    """
    every = max(interval, math.ceil(keys / MOST_PER_SECOND))
    return Rhythm(every, max(timeout, LOST_AFTER * every) if timeout else 0, KEPT_FOR * every)


@dataclass(frozen=True, slots=True)
class Beat:
    """When a key's worker was last heard; `armed` once it has sent a real heartbeat.

    Sonobuoy's workers are silent between updates, so a worker that never beats is not judged.
    """

    heard_at: float | None = None
    armed: bool = False


def heard(beat: Beat, now: float) -> Beat:
    """Note an authenticated request for the key, or a piece of an upload."""
    return Beat(now if beat.heard_at is None else max(now, beat.heard_at), beat.armed)


def beaten(beat: Beat, now: float) -> Beat:
    """Note a real heartbeat."""
    return Beat(heard(beat, now).heard_at, armed=True)


def age(beat: Beat, now: float) -> float | None:
    """Return the seconds since the worker was last heard; None if it never was."""
    return None if beat.heard_at is None else max(0.0, now - beat.heard_at)


def shifted(beat: Beat, seconds: float, now: float) -> Beat:
    """Return the beat when that many seconds do not count; it is never later than `now`."""
    if beat.heard_at is None:
        return beat
    return replace(beat, heard_at=min(now, beat.heard_at + seconds))


def lost(
    beat: Beat, *, now: float, timeout: float = TIMEOUT, expected_since: float | None = None
) -> bool:
    """Return whether a running worker has been silent for too long; a timeout of 0 means never.

    `expected_since` is the launch of a worker that is known to beat: it is judged from then on,
    also if it never was heard.
    """
    if timeout <= 0 or not (beat.armed or expected_since is not None):
        return False
    moments = [moment for moment in (beat.heard_at, expected_since) if moment is not None]
    return now - max(moments, default=now) >= timeout


def stale(beat: Beat, now: float, interval: float = INTERVAL) -> bool:
    """Return whether three heartbeats of a running worker are missing."""
    return beat.armed and quiet(beat, now, interval)


def quiet(beat: Beat, now: float, interval: float = INTERVAL) -> bool:
    """Return whether a worker that was heard once has been silent for three intervals since."""
    silent = age(beat, now)
    return silent is not None and silent >= STALE_AFTER * interval


def heard_since(beats: Mapping[Key, Beat], moment: float) -> tuple[Key, ...]:
    """Return the keys that were heard since that moment."""
    return tuple(key for key, beat in beats.items() if (beat.heard_at or 0.0) > moment)


@dataclass(frozen=True, slots=True)
class Sweep:
    """When the heartbeats were last looked through; None: never."""

    last: float | None = None

    def at(self, now: float, every: float = SWEEP) -> tuple["Sweep", float]:
        """Return the sweep made now, and by how many seconds all ages shrink before it judges.

        A sweep that comes far too late means that we were paused, not that the workers were
        silent.
        """
        late = 0.0 if self.last is None else now - self.last - every
        return Sweep(now), late if late > LATE else 0.0
