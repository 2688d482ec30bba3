"""The sweeps find what a look at each entry by itself would have found."""

from __future__ import annotations

import asyncio
import math
import os
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reporter.aggregator.sweep import Silence
from reporter.ledger import Windows
from reporter.run import heartbeats as beats
from reporter.run.clock import RunClock
from reporter.run.entry import due, fail, silence
from reporter.run.heartbeats import Beat, Rhythm
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Failure, Rank, Record
from reporter.run.state import Snapshot
from reporter.run.status import entry_document
from tests.aggregators.stores import QuickStore, volatile

INTERVAL, TIMEOUT = 10, 60.0
NODES = ("n1", "n2", "n3")
PLAN = Plan(
    "run-1",
    (
        Plugin("ours", NODES, heartbeats=True),
        Plugin("theirs", NODES),
        Plugin("later", NODES, heartbeats=True),
    ),
    timeout_seconds=200,
)


class RowByRow:
    """Decides each entry by itself, by the pure functions alone; begins with each process."""

    def __init__(self, full: float) -> None:
        self.sweep, self.full = beats.Sweep(), full
        self.expected: dict[str, Beat] = {}
        self.quiet: set[Key] = set()

    def look(self, run: Snapshot, now: float, mono: float, full: float) -> dict[Key, Failure]:
        """What of a run, whose beats are moved already, is to be given up for its silence."""
        self.sweep, late = self.sweep.at(mono)
        late, self.full = max(late, full - self.full), full
        self.forgive(late, mono)
        for plugin in PLAN.plugins:
            launched = any(run.entries[key].launched_at is not None for key in plugin.keys)
            if plugin.heartbeats and launched:
                self.expected.setdefault(plugin.name, Beat(mono))
        found = {}
        for key, entry in run.entries.items():
            beat, since = run.beats.get(key, Beat()), self.expected.get(key.plugin, Beat()).heard_at
            lost = beats.lost(beat, now=mono, timeout=TIMEOUT, expected_since=since)
            if lost and not entry.terminal:
                heard = since if beat.heard_at is None else beat.heard_at
                found[key] = silence(now, mono - heard)
        return found

    def forgive(self, seconds: float, mono: float) -> None:
        """Seconds that count for nobody."""
        self.expected = {
            name: beats.shifted(beat, seconds, mono) for name, beat in self.expected.items()
        }

    def turned(self, run: Snapshot, mono: float) -> set[Key]:
        """Who of the open ones became silent, or is heard again."""
        before, self.quiet = (
            self.quiet,
            {
                key
                for key, entry in run.entries.items()
                if not entry.terminal and beats.quiet(run.beats.get(key, Beat()), mono, INTERVAL)
            },
        )
        still_open = {key for key, entry in run.entries.items() if not entry.terminal}
        return (before ^ self.quiet) & still_open


class Process:
    """One aggregator after the other on the same disk, reduced to its sweeps."""

    def __init__(self) -> None:
        self.mono, self.wall, self.full = 1_000.0, 1_800_000_000.0, 0.0
        self.path = volatile(self) / "run.db"
        self.excused: set[Key] = set()
        self.shown: tuple[int, dict[Key, Any]] | None = None

    async def start(self) -> None:
        """Begin as `control` does, and look."""
        self.store = QuickStore(
            self.path,
            now=RunClock(lambda: self.mono, lambda: self.wall),
            windows=Windows(retry=40.0, cap=90.0),
        )
        await self.store.open_run(PLAN, now=self.wall)
        self.silence = Silence(self.store, Rhythm(INTERVAL, TIMEOUT), lambda: self.full)
        self.rows = RowByRow(self.full)
        self.silence.forgive(math.inf, self.mono)
        await self.store.workers_return(at=self.wall)
        await self.tick()

    async def restart(self, outage: float) -> None:
        """Stop, be away, begin with another monotonic clock."""
        await self.store.close()
        self.wall += outage
        self.mono = 5.0 + outage % 7
        self.excused.clear()
        await self.start()

    async def tick(self) -> None:
        """Sweep, and hold what became of it against each row."""
        wanted = {
            key: fail(entry, failure, closed=False)[0]
            if (failure := due(entry, self.wall, excused=key in self.excused))
            else entry
            for key, entry in self.store.snapshot().entries.items()
        }
        await self.store.give_up_due(self.wall, self.excused)
        assert wanted == self.store.snapshot().entries
        if self.silence.due(self.mono):
            await self._sweep()

    async def _sweep(self) -> None:
        found = self.silence.look(self.wall, self.mono)
        run = self.store.snapshot()
        assert found == self.rows.look(run, self.wall, self.mono, self.full)
        turned = self.rows.turned(run, self.mono)
        await self.store.mark_all_failed(found)
        await self.silence.tell()
        assert turned <= set(self.store.changes(run.revision)) | found.keys()
        self._tell_reader()

    def _tell_reader(self) -> None:
        """Whoever knows a revision is told of all that is shown differently, ages left out."""
        run = self.store.snapshot()
        now = {
            key: entry_document(
                run, key, now=self.wall, mono=self.mono, full=False, interval=INTERVAL
            )
            | {"last-heartbeat": None}
            for key in run.entries
        }
        revision, before = self.shown or (-1, {})
        differing = {key for key in now if now[key] != before.get(key)}
        assert differing <= set(self.store.changes(revision))
        self.shown = run.revision, now

    async def passes(self, seconds: float) -> None:
        """Let time go by, with a look each second."""
        for _ in range(int(seconds)):
            self.wall += 1.0
            self.mono += 1.0
            await self.tick()

    async def paused(self, seconds: float) -> None:
        """Let time go by without a look."""
        self.wall += seconds
        self.mono += seconds
        await self.tick()

    async def heard(self, key: Key, beat: bool) -> None:
        """A worker is heard."""
        self.store.record_heartbeat(key, self.mono, beat=beat)

    async def crowded(self, seconds: float) -> None:
        """The listener was full for some of the time."""
        self.full += seconds

    async def tried(self, key: Key) -> None:
        """An upload failed."""
        await self.store.mark_failed(key, Failure("attempt", self.wall, f"cut at {self.wall}"))

    async def received(self, key: Key) -> None:
        """A result came."""
        await self.store.record_result(key, Record(Rank.RESULT, self.wall, digest="ab", size=1))

    async def waits(self, key: Key) -> None:
        """The next try is here and waits, or it is over."""
        self.excused ^= {key}

    async def launched(self, plugin: str) -> None:
        """Its deadlines begin."""
        await self.store.note_plugin_launch(plugin, at=self.wall)


THEIRS, OTHER = Key("theirs", "n1"), Key("theirs", "n2")
KEYS = st.sampled_from(PLAN.keys)
STEPS = st.one_of(
    st.tuples(st.just("heard"), KEYS, st.booleans()),
    st.tuples(st.just("heard"), KEYS, st.just(True)),
    st.tuples(st.just("passes"), st.sampled_from([1, 4, 29, 31, 61])),
    st.tuples(st.just("passes"), st.integers(1, 20)),
    st.tuples(st.just("paused"), st.sampled_from([5.0, 14.0, 16.0, 31.0, 500.0])),
    st.tuples(st.just("crowded"), st.sampled_from([0.5, 5.0, 40.0])),
    st.tuples(st.just("tried"), KEYS),
    st.tuples(st.just("received"), KEYS),
    st.tuples(st.just("waits"), KEYS),
    st.tuples(st.just("launched"), st.sampled_from([plugin.name for plugin in PLAN.plugins])),
    st.tuples(st.just("restart"), st.sampled_from([0.0, 3.0, 45.0, 1_000.0, 100_000.0])),
)


@settings(max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "60")), deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=30))
@example([("heard", THEIRS, True), ("passes", 35), ("crowded", 40.0), ("passes", 5)])
@example([("heard", THEIRS, True), ("passes", 35), ("restart", 3.0)])
@example([("heard", THEIRS, True), ("passes", 35), ("heard", THEIRS, False), ("passes", 5)])
@example(
    [
        *[("heard", key, True) for key in (THEIRS, OTHER)],
        *[("passes", 40), ("crowded", 40.0), ("passes", 5), ("heard", THEIRS, True)],
        *[("passes", 50), ("heard", OTHER, True), ("passes", 50)],
    ]
)
def test_the_sweeps_find_what_a_look_at_each_row_finds(steps: list[tuple[Any, ...]]) -> None:
    """Over silence, pauses, full listeners, failed tries, restarts and long outages."""

    async def story() -> None:
        process = Process()
        await process.start()
        try:
            for name, *arguments in steps:
                await getattr(process, name)(*arguments)
            await process.passes(2 * TIMEOUT)
        finally:
            await process.store.close()

    asyncio.run(story())
