"""Who may be read when: places for uploads, and the queue in front of them."""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping

from reporter.core.run.plan import Key


class Slots:
    """`total` places for uploads, `per_key` of them for one key; first come, first served.

    Whoever waits behind a key that has its share does not hold up other keys. `waiting` may wait at
    one time, `waiting_per_key` of them for one key.
    """

    def __init__(self, total: int, per_key: int, waiting: int, waiting_per_key: int) -> None:
        self._free, self._per_key = total, per_key
        self._most_waiting, self._most_per_key = waiting, waiting_per_key
        self._held: Counter[Key] = Counter()
        self._present: Counter[Key] = Counter()
        self._waiting: deque[tuple[Key, asyncio.Future[None]]] = deque()

    @property
    def present(self) -> Mapping[Key, int]:
        """The keys that have uploads, and how many, be they read or waiting to be read."""
        return self._present

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self._held.total()

    def available(self, key: Key) -> bool:
        """Whether `take` would return at once."""
        return self._free > 0 and self._held[key] < self._per_key

    def full(self, key: Key) -> bool:
        """Whether nobody more may wait for this key."""
        waiting = self._present[key] - self._held[key]
        return len(self._waiting) >= self._most_waiting or waiting >= self._most_per_key

    async def take(self, key: Key, wait: float, gone: asyncio.Future[None] | None = None) -> bool:
        """Take a place, waiting at most so many seconds; false when none came free.

        The end of `gone` ends the wait. A place that was taken is given back with `release`.
        """
        if self.available(key):
            self._grant(key)
            self._present[key] += 1
            return True
        if self.full(key):
            return False
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((key, turn))
        self._present[key] += 1
        ends = {turn} if gone is None else {turn, gone}
        try:
            await asyncio.wait(ends, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            if turn.done():
                self.release(key)  # granted and cancelled at the same moment
            else:
                self._give_up(key, turn)
            raise
        if not turn.done():
            self._give_up(key, turn)
        return turn.done()

    def release(self, key: Key) -> None:
        """Give a place back, and let the next who may have one go on."""
        self._free += 1
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
        self._leave(key)
        for waiting in self._waiting:
            other, turn = waiting
            if self.available(other):
                self._waiting.remove(waiting)
                self._grant(other)
                turn.set_result(None)
                return

    def _give_up(self, key: Key, turn: asyncio.Future[None]) -> None:
        self._waiting.remove((key, turn))
        self._leave(key)

    def _grant(self, key: Key) -> None:
        self._free -= 1
        self._held[key] += 1

    def _leave(self, key: Key) -> None:
        self._present[key] -= 1
        if not self._present[key]:
            del self._present[key]
