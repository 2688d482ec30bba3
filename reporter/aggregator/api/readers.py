"""Readers that wait for a newer revision of the run: `GET /status?since=REVISION&wait=SECONDS`.

All of them see the run at the same moments, at most twice a second: what is made of a moment is
made once, and a reader that asks again at once has to wait for the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from reporter.aggregator.api.encoded import Moment
from reporter.run.plan import Key
from reporter.run.state import Snapshot, final

WAITING: Final = 32  # readers; more are answered at once
PACE: Final = 0.5  # seconds between two moments
_MOMENTS: Final = 100  # whose time is remembered


class Ledger(Protocol):
    """What is asked of the store."""

    def snapshot(self) -> Snapshot:
        """Return the run as it is now."""

    def changes(self, since: int) -> Mapping[Key, int]:
        """Return the keys that have changed since a revision, with the revision of each."""

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after the revision grew; return what ends that."""


class Readers:
    """Those who wait. `look` returns the run as it is now."""

    def __init__(self, store: Ledger, look: Callable[[], Moment], pace: float = PACE) -> None:
        self._store, self._look, self._pace = store, look, pace
        self.moment, self._due = look(), 0.0
        """The run as it was last shown."""
        self._waiting = set[asyncio.Event]()
        self._first_shown = dict[int, float]()  # by revision, on the clock of the heartbeats
        self._closed = False

    def show(self, known: int) -> Moment:
        """Return the run as it is shown now, and no older than a reader knows it."""
        now = asyncio.get_running_loop().time()
        if now >= self._due or known > self.moment.snapshot.revision:
            self.moment, self._due = self._look(), now + self._pace
            self._first_shown.setdefault(self.moment.snapshot.revision, self.moment.mono)
            if len(self._first_shown) > _MOMENTS:
                del self._first_shown[next(iter(self._first_shown))]
        return self.moment

    def first_shown(self, revision: int) -> float:
        """Return since when a reader can have known a revision; 0 where that is forgotten."""
        return self._first_shown.get(revision, 0.0)

    async def newer(self, since: int, seconds: float, gone: asyncio.Future[None]) -> Moment:
        """Return the run once it is newer than `since`, or as it is when the time is over.

        Nobody waits who is `gone`, nor for a run that is over.
        """
        if final(self.show(since).snapshot) or len(self._waiting) >= WAITING:
            return self.moment
        woken = asyncio.Event()

        def wake(_: object = None) -> None:
            woken.set()

        self._waiting.add(woken)
        gone.add_done_callback(wake)
        unsubscribe = self._store.subscribe(wake)
        try:
            async with asyncio.timeout(seconds):
                while since == self.show(since).snapshot.revision and not (
                    self._closed or gone.done()
                ):
                    woken.clear()
                    if since == self._store.snapshot().revision:
                        await woken.wait()
                    await asyncio.sleep(self._due - asyncio.get_running_loop().time())
        except TimeoutError:
            pass
        finally:
            unsubscribe()
            gone.remove_done_callback(wake)
            self._waiting.discard(woken)
        return self.show(since)

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed = True
        for woken in self._waiting:
            woken.set()
