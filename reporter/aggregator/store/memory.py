"""The engine that keeps a run in this process only: for tests, and for runs nobody would resume."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from reporter.aggregator.store.contract import StoreError
from reporter.aggregator.store.engine import Changes, Watch
from reporter.aggregator.store.live import PACE, LiveStore
from reporter.aggregator.store.operations import Loaded, Operation, Run, Windows
from reporter.core.run.entry import Entry
from reporter.core.run.plan import Key
from reporter.core.run.progress import Sent

T = TypeVar("T")


@dataclass
class Pages:
    """What a disk would hold. Give it to a second store to open the run again."""

    run: Run | None = None
    entries: dict[Key, Entry] = field(default_factory=dict)
    progress: dict[Key, Sent] = field(default_factory=dict)
    armed: dict[Key, bool] = field(default_factory=dict)


class _Draft:
    """A transaction: reads through to the pages, keeps what is written until it is applied."""

    def __init__(self, pages: Pages) -> None:
        self._pages, self.new = pages, Pages()
        self.touched: dict[Key, Entry] = {}

    @property
    def run(self) -> Run | None:
        return self.new.run or self._pages.run

    def put_run(self, run: Run) -> None:
        self.new.run = run

    def entry(self, key: Key) -> Entry:
        if key not in self.touched:
            self.touched[key] = self._pages.entries[key]
        return self.touched[key]

    def put_entry(self, entry: Entry) -> None:
        self.new.entries[entry.key] = self.touched[entry.key] = entry

    def put_progress(self, sent: Iterable[tuple[Key, Sent]]) -> None:
        self.new.progress.update(sent)

    def put_beats(self, beats: Iterable[tuple[Key, bool, float]]) -> None:
        self.new.armed.update((key, armed) for key, armed, _ in beats)

    def progress(self) -> dict[Key, Sent]:
        return self._pages.progress | self.new.progress

    def armed(self) -> dict[Key, bool]:
        return self._pages.armed | self.new.armed

    def apply(self) -> None:
        self._pages.run = self.run
        self._pages.entries.update(self.new.entries)
        self._pages.progress.update(self.new.progress)
        self._pages.armed.update(self.new.armed)


class _MemoryEngine:
    """Runs each operation at once. `before_commit` may raise `StoreError`: the disk is full."""

    def __init__(self, pages: Pages, before_commit: Callable[[], None]) -> None:
        self._pages, self._before_commit = pages, before_commit
        self._watch: Watch | None = None

    async def open(self, operation: Operation[Loaded], watch: Watch) -> Loaded:
        draft = _Draft(self._pages)
        loaded = operation(draft)
        self._before_commit()
        draft.apply()
        self._watch = watch
        return loaded

    async def commit(self, operation: Operation[T]) -> T:
        if self._watch is None:
            raise StoreError("the store is closed")
        began, draft = time.perf_counter(), _Draft(self._pages)
        answer = operation(draft)
        try:
            self._before_commit()
        except StoreError as error:
            self._watch.refused(error)
            raise
        draft.apply()
        seconds = time.perf_counter() - began
        self._watch.committed(Changes(draft.touched, draft.new.run, seconds, 1))
        return answer

    async def close(self) -> None:
        self._watch = None


class MemoryStore(LiveStore):
    """A store that keeps every promise but those about power and processes."""

    def __init__(
        self,
        pages: Pages | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        on_commit: Callable[[float, int], None] | None = None,
        windows: Windows | None = None,
        pace: float = PACE,
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(
            _MemoryEngine(pages or Pages(), before_commit),
            clock=clock,
            wall=wall,
            on_commit=on_commit,
            windows=windows,
            pace=pace,
        )
