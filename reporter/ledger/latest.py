"""What is in memory first and on the disk within a second: replacing progress, and heartbeats.

Belongs to the event loop; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from reporter.ledger.contract import ProgressTaken
from reporter.run.heartbeats import Beat, beaten, heard, shifted
from reporter.run.plan import Key
from reporter.run.progress import Progress, StoredProgress, UpdateId, fitting, footprint, take


class LatestProgress:
    """The latest progress of each key, and what of it is newer than on the disk.

    The texts of all keys take about `room` bytes of memory.
    """

    def __init__(self, stored: Mapping[Key, StoredProgress], room: int) -> None:
        self.shown = dict(stored)
        self.unwritten: dict[Key, StoredProgress] = {}
        self._sizes = {key: footprint(sent) for key, sent in stored.items()}
        self._free = room - sum(self._sizes.values())

    def room(self, key: Key) -> int:
        """The bytes that the texts of a key may take, for all that the other keys have."""
        return self._free + self._sizes.get(key, 0)

    def replace(
        self, key: Key, update: Progress, update_id: UpdateId | None, at: float
    ) -> ProgressTaken:
        """Take an update that replaces what was there."""
        stored = take(self.shown.get(key), update, update_id, at)
        if stored is None:
            return ProgressTaken.STALE
        self.unwritten[key] = self._show(key, fitting(stored, self.room(key)))
        return ProgressTaken.APPLIED

    def written(self, sent: Mapping[Key, StoredProgress]) -> None:
        """Hear what is on the disk now."""
        for key, value in sent.items():
            waiting, shown = self.unwritten.get(key), self.shown.get(key)
            if waiting is not None and waiting.at <= value.at:
                del self.unwritten[key]
            if shown is None or shown.at < value.at:
                self._show(key, value)

    def _show(self, key: Key, sent: StoredProgress) -> StoredProgress:
        size = footprint(sent)
        self._free += self._sizes.get(key, 0) - size
        self._sizes[key], self.shown[key] = size, sent
        return sent


class LatestBeats:
    """When each key's worker was last heard, on the monotonic clock of this process.

    Whoever had been heard before this process started counts as heard at `now`, which is `began` by
    the run's clock.
    """

    def __init__(self, armed: Mapping[Key, bool], now: float, began: float) -> None:
        self.shown = {key: Beat(now, was_armed) for key, was_armed in armed.items()}
        self.unwritten: dict[Key, None] = {}
        self.listener: Callable[[Key], None] | None = None
        """Is told who is heard."""
        self._began = began - now

    def hear(self, key: Key, mono: float, *, beat: bool) -> None:
        """Note a sign of life."""
        old = self.shown.get(key)
        self.shown[key] = (beaten if beat else heard)(old or Beat(), mono)
        self.unwritten[key] = None
        if self.listener is not None:
            self.listener(key)

    def shift(self, seconds: float, now: float) -> None:
        """Let the last `seconds` not count."""
        self.shown = {key: shifted(beat, seconds, now) for key, beat in self.shown.items()}

    def claim(self, most: int) -> list[tuple[Key, bool, float]]:
        """Take what is to be written: key, whether it is armed, when it was heard."""
        claimed = []
        for key in list(islice(self.unwritten, most)):
            del self.unwritten[key]
            beat = self.shown[key]
            claimed.append((key, beat.armed, self._began + (beat.heard_at or 0.0)))
        return claimed
