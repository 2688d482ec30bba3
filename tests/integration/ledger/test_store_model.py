"""Whatever happens to a run in whatever order, the store agrees with a simple model of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reporter.ledger import RunNotReady, Store
from reporter.run.plan import Key
from reporter.run.progress import Progress, UpdateId
from reporter.run.record import Record
from reporter.run.results import sum_of
from reporter.run.state import Phase, Snapshot, kind_of, result_counts
from tests.integration.ledger.model import Model
from tests.integration.ledger.world import (
    NOW,
    PLAN,
    World,
    failed_try,
    gave_up,
    replacing,
    report,
    result,
)

T = TypeVar("T")

KEYS = st.sampled_from(PLAN.keys)
PLUGINS = st.sampled_from(["e2e", "sysd"])
SENDERS = st.none() | st.builds(UpdateId, st.sampled_from("ab"), st.integers(1, 6))
DIGESTS = st.sampled_from(["d1", "d2"])
TEXTS = st.sampled_from(["cut", "bad"])
PHASES = list(Phase)


def picture(snapshot: Snapshot) -> dict[Any, Any]:
    """A snapshot in the model's plain values."""
    return {key: _item(snapshot, key) for key in snapshot.entries}


def _item(snapshot: Snapshot, key: Key) -> dict[str, Any]:
    entry, sent = snapshot.entries[key], snapshot.progress.get(key)
    beat, window = snapshot.beats.get(key), entry.window
    progress = sent and sent.progress
    return {
        "held": _record(entry.record),
        "before": _record(entry.superseded),
        "window": window and (window.first, window.until, window.text),
        "tries": entry.attempts,
        "launched": entry.launched_at,
        "started": entry.started_at,
        "deadline": entry.deadline,
        "progress": progress and (progress.total, progress.completed, list(progress.failures)),
        "beat": beat and (beat.heard_at, beat.armed),
    }


def _record(record: Record | None) -> tuple[int, str] | None:
    return record and (int(record.rank), record.digest or record.text)


class Ledgers(RuleBasedStateMachine):
    """One run in a store, beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="store-", dir=_memory()))
        self.runner = asyncio.Runner()
        self.world = World(self.folder)
        self.model = Model(list(PLAN.keys), {"e2e": 100.0, "sysd": 50.0}, NOW)
        self.now = NOW
        self.revision = 0
        self.seen: list[tuple[Snapshot, dict[Any, Any]]] = []
        self.store: Store

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        """Wait for one call."""
        return self.runner.run(asyncio.wait_for(call, 30.0))

    @initialize()
    def begin(self) -> None:
        """A new run."""
        self.open()

    def open(self) -> None:
        """Open the run with a store of its own."""
        self.store = self.world.store()
        snapshot = self.do(self.store.open_run(PLAN, now=self.now))
        assert snapshot.revision >= self.revision
        self.revision = snapshot.revision

    @rule(seconds=st.sampled_from([1.0, 29.0, 100.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        """On all clocks."""
        self.now += seconds
        self.world.clock.now += seconds

    @rule(key=KEYS, digest=DIGESTS)
    def a_result(self, key: Key, digest: str) -> None:
        """An upload was stored."""
        wanted = self.model.offer(key, 3, digest)
        received = self.do(self.store.record_result(key, result(digest, self.now)))
        assert (wanted, self.model.items[key].held) == (received.outcome, _record(received.held))

    @rule(key=KEYS, digest=DIGESTS)
    def an_error_report(self, key: Key, digest: str) -> None:
        """A worker gave up."""
        wanted = self.model.offer(key, 2, digest)
        assert wanted == self.do(self.store.record_result(key, report(digest, self.now))).outcome

    @rule(key=KEYS, text=TEXTS)
    def an_upload_fails(self, key: Key, text: str) -> None:
        """It may be tried again."""
        wanted = self.model.attempt(key, self.now, text)
        assert wanted == self.do(self.store.mark_failed(key, failed_try(self.now, text)))

    @rule(key=KEYS)
    def the_aggregator_gives_up(self, key: Key) -> None:
        """An error from outside."""
        wanted = self.model.give_up(key, gave_up().text)
        assert wanted == self.do(self.store.mark_failed(key, gave_up(self.now)))

    @rule(plugin=PLUGINS)
    def a_plugin_fails(self, plugin: str) -> None:
        """All its open entries."""
        still_open = [
            key for key, item in self.model.items.items() if key[0] == plugin and not item.held
        ]
        wanted = {key: self.model.give_up(key, gave_up().text) for key in still_open}
        assert wanted == self.do(
            self.store.mark_all_failed(dict.fromkeys(still_open, gave_up(self.now)))
        )

    @rule(key=KEYS)
    def bytes_are_lost(self, key: Key) -> None:
        """A blob is not there any more."""
        wanted = self.model.lose(key, "gone")
        assert wanted == self.do(self.store.lose(key, "gone", at=self.now))

    @rule(excused=st.sets(KEYS))
    def time_runs_out(self, excused: set[Key]) -> None:
        """For those whose window or deadline is over."""
        wanted = self.model.time_is_over(self.now, excused)
        assert wanted == self.do(self.store.give_up_due(self.now, excused))

    @rule(keys=st.sets(KEYS))
    def entries_are_shown_differently(self, keys: set[Key]) -> None:
        """By time alone."""
        before = self.store.snapshot().revision
        self.do(self.store.touch(keys))
        assert keys <= set(self.store.changes(before))

    @rule(plugin=PLUGINS)
    def a_plugin_is_launched(self, plugin: str) -> None:
        """Perhaps again."""
        self.model.launch(plugin, self.now)
        self.do(self.store.note_plugin_launch(plugin, at=self.now))

    @rule(key=KEYS)
    def a_job_is_taken(self, key: Key) -> None:
        """Perhaps again."""
        self.model.launch_entry(key, self.now)
        self.do(self.store.note_launches([key], at=self.now))

    @rule(key=KEYS)
    def a_container_begins(self, key: Key) -> None:
        """Perhaps it is told again."""
        self.model.start_entry(key, self.now)
        self.do(self.store.start_entries({key: self.now}))

    @rule(key=KEYS, completed=st.integers(-2, 9), sender=SENDERS)
    def progress_is_replaced(self, key: Key, completed: int, sender: UpdateId | None) -> None:
        """The usual update."""
        wanted = self.model.progress(key, {"total": 100, "completed": completed}, sender)
        update = replacing(completed)
        taken = self.do(self.store.record_progress(key, update, sender, at=self.now))
        assert wanted == taken.value

    @rule(
        key=KEYS,
        more=st.integers(1, 3),
        failing=st.lists(st.sampled_from("xy"), max_size=2),
        grow=st.booleans(),
        sender=SENDERS,
    )
    def progress_is_added(self, key, more, failing, grow, sender) -> None:
        """An update that must not be lost."""
        wanted = self.model.progress(key, {"more": more, "failing": failing, "grow": grow}, sender)
        update = Progress(
            appendcompleted=more, appendfailing=tuple(failing), appendtotals=grow, total=7
        )
        taken = self.do(self.store.record_progress(key, update, sender, at=self.now))
        assert wanted == taken.value

    @rule(key=KEYS, beat=st.booleans())
    def a_worker_is_heard(self, key: Key, beat: bool) -> None:
        """By a heartbeat or any other request."""
        self.model.hear(key, self.world.clock.now, beat)
        self.store.record_heartbeat(key, self.world.clock.now, beat=beat)

    @rule(phase=st.integers(0, 2))
    def somebody_wants_a_phase(self, phase: int) -> None:
        """Perhaps too early, perhaps long over."""
        wanted = self.model.advance(phase)
        try:
            self.do(self.store.advance_run(PHASES[phase]))
        except RunNotReady:
            assert not wanted
        else:
            assert wanted

    @rule()
    def the_store_probes(self) -> None:
        """Writes what is only in memory."""
        assert self.do(self.store.probe())

    @rule()
    def workers_can_connect_again(self) -> None:
        """After a start or a pause."""
        self.model.return_(self.now)
        self.do(self.store.workers_return(at=self.now))

    @rule()
    def the_process_is_there(self) -> None:
        """What comes after it counts as an outage."""
        self.model.alive = self.now
        self.store.note_alive(self.now)
        assert self.do(self.store.probe())

    @rule()
    def the_process_restarts(self) -> None:
        """A clean stop; the next one finds everything."""
        self.do(self.store.close())
        self.model.restart(self.world.clock.now)
        self.open()

    @rule()
    def the_process_is_killed(self) -> None:
        """Right after a write: the next one goes on with the files as they were then."""
        assert self.do(self.store.probe())
        copy = Path(tempfile.mkdtemp(prefix="store-", dir=_memory()))
        for path in self.folder.glob("run.db*"):
            shutil.copy(path, copy)
        self.do(self.store.close())
        shutil.rmtree(self.folder)
        self.folder = self.world.folder = copy
        self.model.restart(self.world.clock.now)
        self.open()
        # Signs of life of the last seconds may be lost, and are the only thing.
        for key, item in self.model.items.items():
            beat = self.store.snapshot().beats.get(key)
            assert beat is None or (item.heard is not None and item.armed >= beat.armed)
            item.heard, item.armed = (beat.heard_at, beat.armed) if beat else (None, False)

    @invariant()
    def both_agree(self) -> None:
        """On every fact; no two states have one revision, and the changes since one are told."""
        snapshot = self.store.snapshot()
        now = picture(snapshot)
        assert self.model.picture() == now
        assert PHASES[self.model.phase] == snapshot.phase
        assert snapshot.revision >= self.revision
        assert snapshot.tally == Counter(map(kind_of, snapshot.entries.values()))
        told = [result_counts(entry) or {} for entry in snapshot.entries.values()]
        assert snapshot.tests == sum_of(told)
        assert snapshot.summed == replace(snapshot, summed=None).bytes
        assert snapshot.summed == snapshot.bytes
        for before, then in self.seen[-5:]:
            ahead = before.ahead or snapshot.ahead
            old, new = lasting(then, ahead), lasting(now, ahead)
            differing = {key for key in new if old[key] != new[key]}
            assert differing <= set(self.store.changes(before.revision))
        self.revision = snapshot.revision
        self.seen.append((snapshot, now))

    def teardown(self) -> None:
        """No snapshot has changed behind its reader's back."""
        try:
            for snapshot, then in self.seen:
                assert then == picture(snapshot)
        finally:
            if self.seen:
                self.do(self.store.close())
            self.runner.close()
            shutil.rmtree(self.folder)


def lasting(facts: dict[Any, Any], ahead: bool) -> dict[Any, Any]:
    """What a revision stands for: not heartbeats, nor progress that is ahead of it."""
    left_out = {"beat", "progress"} if ahead else {"beat"}
    return {
        key: {name: item[name] for name in item.keys() - left_out} for key, item in facts.items()
    }


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


Ledgers.TestCase.settings = settings(
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "20")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class TestLedgers(Ledgers.TestCase):
    """Whatever happens, in whatever order."""
