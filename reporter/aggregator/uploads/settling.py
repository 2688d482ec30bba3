"""Keeping the trees in line with the rows, one key at a time, and knowing where they are not."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from reporter.aggregator.uploads.threads import Threads
from reporter.aggregator.uploads.trees import Trees
from reporter.core.run.entry import Entry
from reporter.core.run.plan import Key
from reporter.errors import InvalidPayload
from reporter.runtime import log
from reporter.untar import BadArchive


class Settling:
    """The work on the trees of one run, on one event loop; `entry` gives the row of a key."""

    def __init__(self, trees: Trees, threads: Threads, entry: Callable[[Key], Entry]) -> None:
        self._trees, self._threads, self._entry = trees, threads, entry
        self._locks: dict[Key, asyncio.Lock] = {}
        self._open: set[Key] = set()

    @property
    def done(self) -> bool:
        """Whether no tree is known to differ from its row."""
        return not self._open

    def lock(self, key: Key) -> asyncio.Lock:
        """Return what is held from before a row is written until its tree is in place."""
        return self._locks.setdefault(key, asyncio.Lock())

    async def settle(self, key: Key) -> None:
        """Bring the trees of a key in line with its row. Never raises for the disk."""
        async with self.lock(key):
            await self.place(key)

    async def place(self, key: Key, prepared: Path | None = None) -> None:
        """Do the same for who holds the lock; `prepared` is the tree, if it is made already."""
        try:
            await self._threads.disk(self._trees.settle, self._entry(key), prepared)
        except (OSError, InvalidPayload, BadArchive) as error:
            # The row stands, so the answer does; the tree is made before the tarball is.
            log.get().error("Tree is not in place", key=str(key), error=str(error))
            self._open.add(key)
        else:
            self._open.discard(key)

    async def finish(self) -> None:
        """Settle what could not be before. Raises OSError, InvalidPayload."""
        for key in tuple(self._open):
            await self._threads.disk(self._trees.settle, self._entry(key))
            self._open.discard(key)
