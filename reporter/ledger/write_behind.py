"""Brings to the disk, once a second, what is in memory first."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from itertools import islice

from reporter.ledger import progress_operations
from reporter.ledger.contract import StoreError
from reporter.ledger.engine import Engine
from reporter.ledger.latest import LatestBeats, LatestProgress
from reporter.run.plan import Key

PACE = 1.0  # seconds between two writes; the most that a crash may lose
RUN_BYTES = 64 * 2**20  # memory for the texts of all keys together
_MOST = 2_000  # rows of a kind in one transaction, which the loop takes in at once


class WriteBehind:
    """Writes progress, heartbeats and the process's sign of life; belongs to the event loop.

    While `writable` says no it tries again with the same pace.
    """

    def __init__(
        self,
        engine: Engine,
        progress: LatestProgress,
        beats: LatestBeats,
        *,
        pace: float,
        writable: Callable[[], bool],
    ) -> None:
        self._engine, self._progress, self._beats = engine, progress, beats
        self._pace, self._writable = pace, writable
        self.alive: tuple[float, float] | None = None
        """The newest sign of life that is not written yet, by the run's and by the wall clock."""
        self.shown: set[Key] | None = None
        """The entries, if any, that are shown differently together with the run."""
        self.wanted = asyncio.Event()
        """Set when there is something to write."""
        self._writing = asyncio.Lock()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            await self.wanted.wait()
            self.wanted.clear()
            await self.write(probing=not self._writable())
            await asyncio.sleep(self._pace)
            if self._waiting or not self._writable():
                self.wanted.set()

    async def write(self, *, probing: bool = False) -> None:
        """Write what there is; `probing` also when there is nothing."""
        async with self._writing:
            while probing or self._waiting or self.alive is not None:
                if not await self._some(probing):
                    return
                probing = False

    @property
    def _waiting(self) -> bool:
        return bool(self._progress.unwritten or self._beats.unwritten) or self.shown is not None

    async def _some(self, probing: bool) -> bool:
        """Write one transaction; return whether it was too small for all."""
        progress = dict(islice(self._progress.unwritten.items(), _MOST))
        beats = self._beats.claim(_MOST)
        alive, self.alive = self.alive, None
        shown = self.shown
        try:
            await self._engine.commit(
                progress_operations.write_behind(progress, beats, alive, shown, probing=probing)
            )
        except StoreError:
            self.alive = self.alive or alive
            self._beats.unwritten.update((key, None) for key, *_ in beats)
            return False
        if self.shown is shown:
            self.shown = None
        return _MOST in (len(progress), len(beats))

    async def close(self) -> None:
        """Write the rest and stop."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self.write()
