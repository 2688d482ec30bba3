"""What only the newest value of matters: progress and heartbeats, in memory first, on disk later.

Decided on the event loop, in order of arrival. Nothing here waits but an append.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from reporter.aggregator.store.contract import ProgressTaken
from reporter.aggregator.store.operations import Operation, append_progress
from reporter.core.run.beats import Beat, beaten, heard, shifted
from reporter.core.run.plan import Key
from reporter.core.run.progress import (
    Progress,
    Sent,
    Taken,
    UpdateId,
    footprint,
    take,
    without_texts,
)

BEATS_PACE = 5.0
RUN_BYTES = 64 * 2**20  # memory for the texts of all keys together

Commit = Callable[[Operation[ProgressTaken]], Awaitable[ProgressTaken]]


class LatestProgress:
    """The latest progress of each key.

    `commit` brings an append to the disk; `changed` is called whenever what is shown changes. The
    texts of all keys take at most `room` bytes of memory.
    """

    def __init__(
        self,
        stored: Mapping[Key, Sent],
        commit: Commit,
        changed: Callable[[], None],
        room: int = RUN_BYTES,
    ) -> None:
        self.shown = dict(stored)
        self._sizes = {key: footprint(sent) for key, sent in stored.items()}
        self._size = sum(self._sizes.values())
        self._commit, self._changed, self._room = commit, changed, room
        self._unwritten: set[Key] = set()
        # Appends on their way to the disk, and what each key's progress is once they are there.
        self._appends: set[asyncio.Task[ProgressTaken]] = set()
        self._order: dict[Key, asyncio.Lock] = {}
        self._ahead: dict[Key, Sent] = {}

    @property
    def unwritten(self) -> bool:
        """Whether anything is newer than on the disk."""
        return bool(self._unwritten)

    def replace(
        self, key: Key, update: Progress, update_id: UpdateId | None, at: float
    ) -> ProgressTaken:
        """Show an update that replaces what was there."""
        ahead = self._ahead.get(key)
        sent, taken = take(ahead or self.shown.get(key), update, update_id, at)
        if taken is Taken.STALE:
            return ProgressTaken.STALE
        sent = self._fit(key, sent)
        if ahead is not None:
            self._ahead[key] = sent
        self._unwritten.add(key)
        self.shown[key] = sent
        self._changed()
        return ProgressTaken.APPLIED

    async def append(
        self, key: Key, update: Progress, update_id: UpdateId | None, at: float
    ) -> ProgressTaken:
        """Add an update to what is there, on the disk first."""
        # The caller may be cancelled; what goes to the disk must still be shown when it is there.
        task = asyncio.ensure_future(self._append(key, update, update_id, at))
        self._appends.add(task)
        task.add_done_callback(self._appended)
        return await asyncio.shield(task)

    async def _append(
        self, key: Key, update: Progress, update_id: UpdateId | None, at: float
    ) -> ProgressTaken:
        async with self._order.setdefault(key, asyncio.Lock()):
            before = self.shown.get(key)
            sent, taken = take(before, update, update_id, at)
            if taken is Taken.STALE:
                return ProgressTaken.STALE
            sent = self._ahead[key] = self._fit(key, sent)
            try:
                answer = await self._commit(append_progress(key, sent))
                # If one came meanwhile that replaces it, then that one is what stands.
                if answer is ProgressTaken.APPLIED and self.shown.get(key) is before:
                    self._unwritten.discard(key)
                    self.shown[key] = sent
                    self._changed()
            finally:
                del self._ahead[key]
                self._account(key, self.shown.get(key))
            return answer

    def _fit(self, key: Key, sent: Sent) -> Sent:
        """Return what can be kept of it beside the other keys: at least its counts."""
        size, before = footprint(sent), self._sizes.get(key, 0)
        if self._size - before + size > self._room:
            sent = without_texts(sent)
            size = footprint(sent)
        self._size += size - before
        self._sizes[key] = size
        return sent

    def _account(self, key: Key, sent: Sent | None) -> None:
        size = 0 if sent is None else footprint(sent)
        self._size += size - self._sizes.get(key, 0)
        self._sizes[key] = size

    def _appended(self, task: asyncio.Task[ProgressTaken]) -> None:
        self._appends.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone

    def claim(self) -> list[tuple[Key, Sent]]:
        """Take what is to be written now."""
        # What an append carries to the disk must not be overwritten by what was there before it.
        keys = self._unwritten - self._ahead.keys()
        self._unwritten -= keys
        return [(key, self.shown[key]) for key in keys]

    def give_back(self, claimed: Iterable[tuple[Key, Sent]]) -> None:
        """Say that what was taken could not be written."""
        self._unwritten.update(key for key, _ in claimed)

    async def settled(self) -> None:
        """Wait for the appends that are on their way."""
        await asyncio.gather(*self._appends, return_exceptions=True)


class LatestBeats:
    """When each key's worker was last heard, on the monotonic clock of this process.

    Whoever had been heard before this process started counts as heard at `now`.
    """

    def __init__(self, armed: Mapping[Key, bool], now: float) -> None:
        self.shown = {key: Beat(now, was_armed) for key, was_armed in armed.items()}
        self._unwritten: set[Key] = set()
        self._written_at = now

    @property
    def unwritten(self) -> bool:
        """Whether anything is newer than on the disk."""
        return bool(self._unwritten)

    def hear(self, key: Key, mono: float, *, beat: bool) -> bool:
        """Note a sign of life; say whether it is the first of its kind."""
        old = self.shown.get(key)
        new = (beaten if beat else heard)(old or Beat(), mono)
        self.shown[key] = new
        self._unwritten.add(key)
        return old is None or old.armed != new.armed

    def shift(self, seconds: float, now: float) -> None:
        """Let the last `seconds` not count."""
        self.shown = {key: shifted(beat, seconds, now) for key, beat in self.shown.items()}

    def claim(self, now: float, wall: float, *, last: bool) -> list[tuple[Key, bool, float]]:
        """Take what is to be written at `now`, which is `wall` in Unix seconds: seldom anything."""
        if not last and now < self._written_at + BEATS_PACE:
            return []
        self._written_at = now
        keys, self._unwritten = self._unwritten, set()
        beats = [(key, self.shown[key]) for key in keys]
        return [(key, beat.armed, wall - now + (beat.heard_at or 0.0)) for key, beat in beats]

    def give_back(self, claimed: Iterable[tuple[Key, bool, float]]) -> None:
        """Say that what was taken could not be written."""
        self._unwritten.update(key for key, _, _ in claimed)
