"""One expected result and what has become of it: the rank rule, failed tries, deadlines, closing.

Decisions only: the store makes them inside its transaction, and nothing here is written anywhere.
All times are by the run's clock, which outlives a restart.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Final

from reporter.run.plan import Key
from reporter.run.record import (
    TIMEOUT_TEXT,
    TIMEOUTS,
    Cause,
    Failure,
    Rank,
    Record,
    ResultVerdict,
    error_document,
    record_of,
    with_verdict,
)
from reporter.run.upload import UploadOutcome

RETRY_WINDOW: Final = 120.0
RETRY_CAP: Final = 600.0
HOLD: Final = 20.0  # workers try again at most every 15 s
RETURN_GRACE: Final = 30.0  # workers were refused while we were away
_MAY_STILL_COME: Final = frozenset({Cause.DEADLINE, Cause.HEARTBEAT, Cause.LOST})


class State(StrEnum):
    """What an entry is; all but `running` are terminal."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Window:
    """The time in which a failed upload may be tried again: first failure, end, last reason."""

    first: float
    until: float
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What the run knows about one key, but for its progress and heartbeats.

    `superseded` is the record that the present one replaced, `attempts` the tries that failed,
    `started_at` when its clock began: with its container where that is watched, else with its
    launch. `deadline` is the moment its time is over.
    """

    key: Key
    record: Record | None = None
    superseded: Record | None = None
    window: Window | None = None
    attempts: int = 0
    launched_at: float | None = None
    deadline: float | None = None
    started_at: float | None = None

    @property
    def state(self) -> State:
        """Its state."""
        if self.record is None:
            return State.RUNNING
        if self.record.rank is Rank.RESULT:
            return State.COMPLETE
        return State.TIMED_OUT if self.record.cause in TIMEOUTS else State.FAILED

    @property
    def terminal(self) -> bool:
        """Whether the run need not wait for it."""
        return self.record is not None

    @property
    def retrying(self) -> bool:
        """Whether an upload failed and its worker may still try again."""
        return self.record is None and self.window is not None

    @property
    def late(self) -> bool:
        """Whether its result came after the aggregator had already given it up."""
        return (
            self.state is State.COMPLETE
            and self.superseded is not None
            and self.superseded.rank is Rank.AGGREGATOR
        )


def receive(entry: Entry, record: Record, *, closed: bool) -> tuple[Entry, UploadOutcome]:
    """Take a record if it outranks what is held and the run is not closed.

    The answer for something already held does not change when the run closes: its sender repeats a
    request whose answer was lost.
    """
    held = entry.record
    if held is not None and record.rank <= held.rank:
        return entry, UploadOutcome.DUPLICATE
    if closed:
        return entry, UploadOutcome.CLOSED
    superseded = entry.superseded if held is None else held
    return replace(entry, record=record, superseded=superseded, window=None), UploadOutcome.ACCEPTED


class Marked(StrEnum):
    """What became of a failure."""

    RECORDED = "recorded"
    IGNORED = "ignored"
    CLOSED = "closed"


def fail(
    entry: Entry,
    failure: Failure,
    *,
    closed: bool,
    window: float = RETRY_WINDOW,
    cap: float = RETRY_CAP,
) -> tuple[Entry, Marked]:
    """Apply a failure: a failed try opens or moves the retry window, a final one is a record.

    `window` is the seconds from a failed try to the end of the window, `cap` the most it may last
    from the first one. A failed try of an entry that is already decided changes nothing.
    """
    if closed:
        return entry, Marked.CLOSED
    if failure.kind == "final":
        entry, outcome = receive(entry, record_of(failure), closed=False)
        return entry, Marked.RECORDED if outcome is UploadOutcome.ACCEPTED else Marked.IGNORED
    if entry.terminal:
        return entry, Marked.IGNORED
    old = entry.window
    if old is not None and (old.until, old.text) == (failure.at + window, failure.text):
        return entry, Marked.RECORDED  # told twice: the first answer got lost
    moved = _moved(old, failure, window, cap)
    return replace(entry, window=moved, attempts=entry.attempts + 1), Marked.RECORDED


def lose(entry: Entry, at: float, text: str) -> Entry:
    """Give up a record whose bytes are gone; anything its worker sends is welcome again."""
    record = Record(
        Rank.LOST, at, cause=Cause.LOST, text=text, document=error_document(text, Cause.LOST)
    )
    return replace(entry, record=record, window=None)


def unjudged(entry: Entry) -> bool:
    """Whether there is a result of which nobody knows yet what it says."""
    record = entry.record
    return record is not None and record.rank is Rank.RESULT and not record.verdict


def judge(entry: Entry, digest: str, said: ResultVerdict) -> Entry:
    """Note what the result with that digest says; the first verdict on it stands."""
    record = entry.record
    if record is None or not unjudged(entry) or record.digest != digest:
        return entry
    return replace(entry, record=with_verdict(record, said))


def launch(entry: Entry, at: float) -> Entry:
    """Note that it was launched, once."""
    return entry if entry.launched_at is not None else replace(entry, launched_at=at)


def start(entry: Entry, at: float, timeout: float) -> Entry:
    """Start its clock, once: a restart of the aggregator gives no new time."""
    if entry.started_at is not None:
        return entry
    return replace(entry, started_at=at, deadline=at + timeout)


def returned(
    entry: Entry, at: float, outage: float, timeout: float, grace: float = RETURN_GRACE
) -> Entry:
    """Give an open entry back the `outage`, the seconds until `at` in which we were out of reach.

    Its retry window and its deadline then last for `grace` seconds at least. Outages move the
    deadline by one `timeout` of its plugin in all, so that who comes and goes for ever ends too.
    """
    if entry.terminal:
        return entry
    window, deadline = entry.window, entry.deadline
    if window is not None:
        window = replace(window, until=max(window.until, at + grace))
    if deadline is not None and entry.started_at is not None:
        left = entry.started_at + 2 * timeout - deadline
        if left > 0:
            deadline = max(deadline + min(outage, left), at + grace)
    return replace(entry, window=window, deadline=deadline)


def due(entry: Entry, now: float, *, excused: bool = False, queued: bool = False) -> Failure | None:
    """What time has done to an open entry by `now`, if anything.

    The window of one that is `excused` does not count: its next try is here, and waits for us. Nor
    does the deadline of one that is `queued`: its upload came in time, and had to wait.
    """
    moment = next_due(entry)
    if moment is None or moment > now:
        return None
    if excused and entry.window is not None:
        return due(replace(entry, window=None), now, queued=queued)
    if entry.window is not None:
        return Failure("final", now, entry.window.text, Cause.UPLOAD_FAILED)
    return None if queued else Failure("final", now, TIMEOUT_TEXT, Cause.DEADLINE)


def next_due(entry: Entry) -> float | None:
    """When `due` will have something to say, unless something else happens before.

    While a failed upload may be tried again its window decides, also past the deadline.
    """
    if entry.terminal:
        return None
    return entry.deadline if entry.window is None else entry.window.until


def silence(at: float, seconds: float, why: str = "") -> Failure:
    """The failure of a worker whose heartbeats have stopped for so many seconds."""
    said = ": ".join(filter(None, (TIMEOUT_TEXT, f"no heartbeat for {seconds:.0f} s", why)))
    return Failure("final", at, said, Cause.HEARTBEAT)


def may_close(
    entries: Iterable[Entry],
    now: float,
    *,
    hold: float = HOLD,
    reading: Collection[Key] = (),
    back: float = -inf,
) -> bool:
    """Whether the run may close: every entry decided, no result on its way, no fresh guess of ours.

    `reading` are the keys that have an upload being read; `back` is as in `next_close`.
    """
    if reading:
        entries = tuple(entries)
        if any(entry.key in reading and entry.state is not State.COMPLETE for entry in entries):
            return False
    moment = next_close(entries, now, hold, back)
    return moment is not None and moment <= now


def next_close(
    entries: Iterable[Entry], now: float, hold: float = HOLD, back: float = -inf
) -> float | None:
    """When the run may close if nothing more happens, `now` at the earliest; None: not yet known.

    Whoever was silent or late may be between two tries, so such an error of ours is held for a
    while before it is final, during which workers can reach us: they can since `back`. A Pod that
    is gone or never was delivers nothing any more, and after a retry window there was time enough.
    """
    moment = now
    for entry in entries:
        held = entry.record
        if held is None:
            return None
        if may_still_come(held):
            moment = max(moment, max(held.at, back) + hold)
    return moment


def may_still_come(held: Record) -> bool:
    """Return whether it is a guess of ours, which its worker may still prove wrong."""
    return held.rank <= Rank.AGGREGATOR and held.cause in _MAY_STILL_COME


def _moved(old: Window | None, failure: Failure, window: float, cap: float) -> Window:
    if old is None:
        return Window(failure.at, failure.at + min(window, cap), failure.text)
    until = min(failure.at + window, old.first + cap)
    # Never back: a failure told late, or a window made longer by a restart, stays as long.
    return replace(old, until=max(old.until, until), text=failure.text)
