"""Judging of reports that are stored already. The run is not over before they all are judged.

It looks at the rows, so a restart goes on where the process was killed.
"""

import asyncio
import contextlib
import errno
from typing import Final

from reporter.aggregator.context import Context
from reporter.common import log
from reporter.common.text import clean
from reporter.ledger import StoreError
from reporter.ledger.documents import KeptDocuments
from reporter.results.child import Judgement, Task
from reporter.results.process import USED_UP, Budget, JudgingStopped
from reporter.run.entry import State, unjudged
from reporter.run.error_report import INVALID, NO_RESULTS, UNREAD
from reporter.run.plan import Key
from reporter.run.record import Record, ResultVerdict
from reporter.run.results import ResultStatus, verdict_of
from reporter.run.state import Snapshot, judging

_TRIES: Final = 5
_OUR_TRIES: Final = 64  # an hour
_PAUSE: Final = 2.0  # seconds between two of them, the first ones
_LONGEST_PAUSE: Final = 60.0
_OURS: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
_MESSAGE: Final = 1024  # bytes
FAILED_TESTS: Final = "TestsFailed"


class Judging:
    """Judges the results of one run one after the other, each in a process of its own."""

    def __init__(self, context: Context) -> None:
        self._store, self._plan, self._judge = context.store, context.plan, context.judge
        self._blobs, self._kept = context.blobs, KeptDocuments(context.layout)
        self._budgets = {plugin.name: Budget() for plugin in self._plan.plugins}

    async def run(self) -> None:
        """Judge until cancelled; then what is being judged is given up."""
        changed = asyncio.Event()
        unsubscribe = self._store.subscribe(changed.set)
        try:
            while True:
                changed.clear()
                found = self._next(self._store.snapshot())
                if found is None:
                    await changed.wait()
                    continue
                try:
                    await self._one(*found)
                except Exception as error:
                    if not isinstance(error, JudgingStopped):
                        log.get().error("Result could not be judged", error=str(error))
                    await asyncio.sleep(_PAUSE)
        finally:
            unsubscribe()
            self._judge.stop()

    def _next(self, snapshot: Snapshot) -> tuple[Key, Record] | None:
        """Return a result that waits, of the plugin that has taken the least time so far."""
        if not judging(snapshot):
            return None
        waiting = {
            kind.plugin
            for kind in snapshot.tally
            if kind.state is State.COMPLETE and not kind.verdict
        }
        plugins = [plugin for plugin in self._plan.plugins if plugin.name in waiting]
        plugin = max(plugins, key=lambda each: self._budgets[each.name].seconds)
        for key in plugin.keys:
            entry = snapshot.entries[key]
            if entry.record is not None and unjudged(entry):
                return key, entry.record
        return None

    async def _one(self, key: Key, record: Record) -> None:
        """Judge one result and note it."""
        said = verdict(await self._judgement(key, record))
        while True:
            with contextlib.suppress(StoreError):
                await self._store.judge(key, record.digest, said)
                return
            await asyncio.sleep(_PAUSE)

    async def _judgement(self, key: Key, record: Record) -> Judgement:
        """Return what is in a result; what cannot be read in some tries is unknown.

        That we lack memory, processes or threads says nothing about it: we wait much longer then.
        """
        why, failed, pause = "", 0, _PAUSE
        for _ in range(_OUR_TRIES):
            try:
                return await asyncio.to_thread(self._read, key, record)
            except (OSError, MemoryError, RuntimeError) as error:  # the last one: no new thread
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                failed += getattr(error, "errno", errno.EAGAIN) not in _OURS
            if failed == _TRIES:
                break
            log.get().warning(
                "Result could not be read", key=str(key), error=why, next_try_seconds=pause
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return Judgement(note=f"it cannot be read: {why}")

    def _read(self, key: Key, record: Record) -> Judgement:
        plugin = self._plan.plugin(key.plugin)
        assert plugin is not None, "a key that is not in the plan"
        task = Task.of(plugin, record, f"results/{key.node}")
        with self._blobs.open(record.blob) as body:
            budget = self._budgets[key.plugin]
            found = self._judge.judge(task, body, budget=budget, digest=record.digest)
        if found.not_passed and verdict_of(found.counts) != ResultStatus.PASSED:
            self._kept.write(str(key), record.digest, found.not_passed)
        return found


def verdict(found: Judgement) -> ResultVerdict:
    """Return what is kept of a judgement."""
    counts = dict(found.counts)
    word = verdict_of(counts)
    if word == ResultStatus.FAILED:
        many = counts.get(ResultStatus.FAILED, 0) + counts.get(ResultStatus.TIMEOUT, 0)
        said = f"{many} of {sum(counts.values())} tests failed: {found.failed}"
        text = f"{said}: {found.text}" if found.text else said
        return ResultVerdict(word, FAILED_TESTS, clean(text, _MESSAGE), counts)
    if word == ResultStatus.UNKNOWN:
        reason = UNREAD if found.note == USED_UP else INVALID if found.note else NO_RESULTS
        note = found.note or "some tests neither passed nor failed"
        return ResultVerdict(word, reason, clean(note, _MESSAGE), counts)
    return ResultVerdict(word, "", "", counts)
