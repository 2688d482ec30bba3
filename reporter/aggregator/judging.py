"""Judging of reports that are stored already. The run is not over before they all are judged.

It looks at the rows, so a restart goes on where the process was killed.
"""

import asyncio
import contextlib
import errno
import math
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Waiting:
    """A result that could not be judged, or whose verdict `said` could not be noted.

    Of its `tries`, so many `failed` for a reason of its own; the next is `due` by the clock.
    """

    tries: int = 0
    failed: int = 0
    pause: float = 0.0
    due: float = -math.inf
    said: ResultVerdict | None = None


class Judging:
    """Judges the results of one run one after the other, each in a process of its own.

    One that cannot be judged now is put off; those that can be do not wait for it.
    """

    def __init__(self, context: Context) -> None:
        self._store, self._plan, self._judge = context.store, context.plan, context.judge
        self._blobs, self._kept = context.blobs, KeptDocuments(context.layout)
        self._clock = context.clock
        self._budgets = {plugin.name: Budget() for plugin in self._plan.plugins}
        self._put_off: dict[Key, _Waiting] = {}

    async def run(self) -> None:
        """Judge until cancelled; then what is being judged is given up."""
        changed = asyncio.Event()
        unsubscribe = self._store.subscribe(changed.set)
        try:
            while True:
                changed.clear()
                snapshot = self._store.snapshot()
                if (found := self._next(snapshot)) is not None:
                    await self._one(*found)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PAUSE if judging(snapshot) else None):
                        await changed.wait()
        finally:
            unsubscribe()
            self._judge.stop()

    def _next(self, snapshot: Snapshot) -> tuple[Key, Record] | None:
        """Return a result that is due, of the plugin that has taken the least time so far."""
        if not judging(snapshot):
            return None
        names = {
            kind.plugin
            for kind in snapshot.tally
            if kind.state is State.COMPLETE and not kind.verdict
        }
        plugins = [plugin for plugin in self._plan.plugins if plugin.name in names]
        now = self._clock()
        for plugin in sorted(plugins, key=lambda each: -self._budgets[each.name].seconds):
            for key in plugin.keys:
                entry = snapshot.entries[key]
                if entry.record is None or not unjudged(entry):
                    continue
                if key not in self._put_off or self._put_off[key].due <= now:
                    return key, entry.record
        return None

    async def _one(self, key: Key, record: Record) -> None:
        """Judge one result and note it, or put it off."""
        waiting = self._put_off.pop(key, None) or _Waiting()
        try:
            if waiting.said is None:
                waiting.said = verdict(await asyncio.to_thread(self._read, key, record))
            await self._store.judge(key, record.digest, waiting.said)
        except Exception as error:
            self._again(waiting, key, error)
            self._put_off[key] = waiting

    def _again(self, waiting: _Waiting, key: Key, error: Exception) -> None:
        """Say when it is tried again; what cannot be read in some tries is unknown.

        That we lack memory, processes or threads says nothing about it: there are more tries then.
        """
        if isinstance(error, (StoreError, JudgingStopped)):
            waiting.due = self._clock() + _PAUSE
            return
        short = isinstance(error, (MemoryError, RuntimeError))  # the last one: no new thread
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        waiting.tries += 1
        waiting.failed += not short and getattr(error, "errno", None) not in _OURS
        if waiting.failed == _TRIES or waiting.tries == _OUR_TRIES:
            waiting.said = verdict(Judgement(note=f"it cannot be read: {why}"))
            return
        waiting.pause = min(max(_PAUSE, 2 * waiting.pause), _LONGEST_PAUSE)
        waiting.due = self._clock() + waiting.pause
        told = log.get().bind(key=str(key), error=why, next_try_seconds=waiting.pause)
        if short or isinstance(error, OSError):
            told.warning("Result could not be read")
        else:
            told.error("Result could not be judged", exc_info=error)

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
