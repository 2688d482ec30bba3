"""The uploads that are here: which are read, which wait, and which keep the run open."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import Final

from reporter.aggregator import limits
from reporter.aggregator.context import Context
from reporter.aggregator.server.body import Body
from reporter.run.plan import Key
from reporter.run.upload import Allowance, Upload, UploadEnded, UploadOutcome

_WAITING_PER_KEY: Final = 4
_AWAITED: Final = 20.0  # seconds in which who was told that we are busy comes again


class Slots:
    """`total` places for uploads, `per_key` of them for one key.

    `opened` gives the plugins that have open entries: while k others have some, a plugin has at
    most `total` - min(k, half of `total`) places. One that comes free goes to the plugin that has
    fewest, there first to a key that has none, else to who waits longest. `waiting` may wait at one
    time, `waiting_per_key` of them for one key.
    """

    def __init__(
        self,
        total: int,
        per_key: int,
        waiting: int,
        waiting_per_key: int,
        opened: Callable[[], Collection[str]],
    ) -> None:
        self._total, self._per_key, self._opened = total, per_key, opened
        self._most_waiting, self._most_per_key = waiting, waiting_per_key
        self._held: Counter[Key] = Counter()
        self._by_plugin: Counter[str] = Counter()
        self._present: Counter[Key] = Counter()
        self._waiting: dict[str, dict[asyncio.Future[None], Key]] = {}

    @property
    def present(self) -> Mapping[Key, int]:
        """The keys that have uploads, and how many, be they read or waiting to be read."""
        return self._present

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self._by_plugin.total()

    def available(self, key: Key) -> bool:
        """Whether `take` would return at once."""
        return bool(self._with_room([key.plugin])) and self._held[key] < self._per_key

    def full(self, key: Key) -> bool:
        """Whether nobody more may wait for this key."""
        return (
            self._present.total() - self.taken >= self._most_waiting
            or self._present[key] - self._held[key] >= self._most_per_key
        )

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
        self._waiting.setdefault(key.plugin, {})[turn] = key
        self._present[key] += 1
        try:
            ends = {turn} if gone is None else {turn, gone}
            await asyncio.wait(ends, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            if turn.done():
                self.release(key)  # granted and cancelled at the same moment
            raise
        finally:
            if not turn.done():
                self._stop_waiting(turn, key)
                self._leave(key)
        return turn.done()

    def release(self, key: Key) -> None:
        """Give a place back, and let those go on who may have one now."""
        self._held[key] -= 1
        self._by_plugin[key.plugin] -= 1
        self._leave(key)
        while (found := self._next()) is not None:
            turn, key = found
            self._stop_waiting(turn, key)
            self._grant(key)
            turn.set_result(None)

    def _next(self) -> tuple[asyncio.Future[None], Key] | None:
        """Return who may have the next place, if anybody may."""
        for plugin in sorted(self._with_room(self._waiting), key=self._by_plugin.__getitem__):
            for most in (1, self._per_key):
                for turn, key in self._waiting[plugin].items():
                    if self._held[key] < most:
                        return turn, key
        return None

    def _with_room(self, plugins: Iterable[str]) -> list[str]:
        """Return those of some plugins that may have one more place."""
        if self.taken >= self._total:
            return []
        opened, half = set(self._opened()), self._total // 2
        return [
            plugin
            for plugin in plugins
            if self._by_plugin[plugin] < self._total - min(len(opened - {plugin}), half)
        ]

    def _stop_waiting(self, turn: asyncio.Future[None], key: Key) -> None:
        del self._waiting[key.plugin][turn]
        if not self._waiting[key.plugin]:
            del self._waiting[key.plugin]  # its next one is behind who waits now

    def _grant(self, key: Key) -> None:
        self._held[key] += 1
        self._by_plugin[key.plugin] += 1

    def _leave(self, key: Key) -> None:
        self._present[key] -= 1
        if not self._present[key]:
            del self._present[key]


class Uploads:
    """The uploads of a run that wait or are read, each with its sender."""

    def __init__(self, context: Context, allowance: Allowance) -> None:
        self._store, self._now, self._allowance = context.store, context.now, allowance
        self._slots = Slots(
            limits.UPLOADS,
            limits.UPLOADS_PER_KEY,
            waiting=context.connections // 2,
            waiting_per_key=_WAITING_PER_KEY,
            opened=lambda: context.store.open_plugins,
        )
        self._known: dict[Key, set[Upload]] = {}
        self._turned_away: dict[Key, float] = {}
        self._closed: set[Key] = set()

    def close(self, key: Key) -> bool:
        """Take no more uploads of a key, unless it has an upload here; say whether it is closed."""
        if key in self._known:
            return False
        self._closed.add(key)
        return True

    def closed(self, key: Key) -> bool:
        """Whether a key takes no more uploads."""
        return key in self._closed

    async def enter(self, key: Key, upload: Upload, sender: Body, place: ExitStack) -> None:
        """Count an upload in and wait for its slot; `place` gives both back.

        Raises `UploadEnded` when there is no slot for it, or its sender has left.
        """
        self._known.setdefault(key, set()).add(upload)
        place.callback(self._forget, key, upload)
        upload.waited = not self._slots.available(key)
        if upload.waited and not self._slots.full(key):
            with sender.waiting() as gone:
                taken = await self._slots.take(key, limits.SLOT_WAIT, gone)
        else:
            taken = await self._slots.take(key, 0.0)
        if not taken:
            if sender.left:
                raise UploadEnded(UploadOutcome.LEFT)
            self._turned_away[key] = self._now() + _AWAITED
            raise UploadEnded(UploadOutcome.BUSY)
        place.callback(self._slots.release, key)

    def _forget(self, key: Key, upload: Upload) -> None:
        self._known[key].discard(upload)
        if not self._known[key]:
            del self._known[key]

    def late(self, key: Key, upload: Upload) -> float:
        """Return by how many seconds the time for all of an upload is over."""
        return self._now() - upload.cut_at(self._store.entry(key).deadline, self._allowance)

    @property
    def present(self) -> Mapping[Key, int]:
        """The keys that have uploads, and how many, be they read or waiting to be read."""
        return self._slots.present

    @property
    def holding(self) -> set[Key]:
        """The keys that have an upload for which the run stays open."""
        now = self._now()
        return self._those(lambda each, deadline: each.holds(deadline, now, self._allowance))

    @property
    def queued(self) -> set[Key]:
        """The keys whose deadlines do not count: an upload had come in time, and had to wait."""
        return self._those(Upload.queued_at)

    def _those(self, wanted: Callable[[Upload, float | None], bool]) -> set[Key]:
        return {
            key
            for key, uploads in self._known.items()
            if any(wanted(each, self._store.entry(key).deadline) for each in uploads)
        }

    @property
    def excused(self) -> set[Key]:
        """The keys whose retry windows are not over, as they have or would have an upload here."""
        now = self._now()
        self._turned_away = {key: at for key, at in self._turned_away.items() if now < at}
        return {*self._slots.present, *self._turned_away}

    @property
    def active(self) -> int:
        """How many uploads are being read."""
        return self._slots.taken
