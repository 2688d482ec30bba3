"""What became of the entries, told to the log: one event per fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from reporter.common import log
from reporter.common.log import RateLimitedLog
from reporter.run.entry import Entry, Window, unjudged
from reporter.run.plan import Key
from reporter.run.record import Rank, Record
from reporter.run.results import NOT_PASSED
from reporter.run.state import Snapshot

_PIECE = 20  # entries, about a millisecond


class EntryLog:
    """Remembers how the entries stood when they were last looked at.

    `changes` gives the keys that have changed since a revision, `clock` monotonic seconds.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        changes: Callable[[int], Iterable[Key]],
        clock: Callable[[], float],
    ) -> None:
        self._seen = dict(snapshot.entries)
        self._revision, self._changes = snapshot.revision, changes
        self._clock, self._log, self._rate_limited = clock, log.get(), RateLimitedLog()

    def look(self, snapshot: Snapshot) -> Iterator[None]:
        """Log what has changed since, a piece with each step."""
        keys = iter(self._changes(self._revision))
        self._revision, self._skew = snapshot.revision, snapshot.skew
        while piece := tuple(islice(keys, _PIECE)):
            for key in piece:
                self._tell(key, self._seen[key], snapshot.entries[key])
                self._seen[key] = snapshot.entries[key]
            yield

    def _tell(self, key: Key, before: Entry, entry: Entry) -> None:
        if entry is not before:
            was, record = before.record, entry.record
            if was is not None and record is not None and record.digest == was.digest != "":
                if unjudged(before) and record.verdict:
                    self._read(key, record)
            elif record is not None and record != was:
                self._decided(key, entry, record)
            elif entry.window is not None and entry.attempts != before.attempts:
                self._failed(key, entry.attempts, entry.window)

    def _decided(self, key: Key, entry: Entry, record: Record) -> None:
        match record.rank:
            case Rank.RESULT:
                say = self._log.warning if record.verdict in NOT_PASSED else self._log.info
                say(
                    "Result stored",
                    key=str(key),
                    file=record.filename,
                    bytes=record.size,
                    sha256=record.digest,
                    notes=len(record.notes),
                    late=entry.late,
                    **_judged(record),
                )
            case Rank.WORKER:
                self._log.warning(
                    "Worker reported an error", key=str(key), reason=record.reason, text=record.text
                )
            case Rank.AGGREGATOR:
                self._log.warning(
                    "Result given up", key=str(key), cause=str(record.cause), text=record.text
                )
            case Rank.LOST:
                self._log.error("Result lost", key=str(key), text=record.text)

    def _read(self, key: Key, record: Record) -> None:
        say = self._log.warning if record.verdict in NOT_PASSED else self._log.info
        say("Result judged", key=str(key), tests=dict(record.counts), **_judged(record))

    def _failed(self, key: Key, attempts: int, window: Window) -> None:
        until = datetime.fromtimestamp(window.until - self._skew, UTC).isoformat(timespec="seconds")
        # Verdicts come once; a worker may fail as often as it likes, for all keys of its plugin.
        self._rate_limited.say(
            self._clock(),
            self._log.warning,
            "Upload failed, may be retried",
            about=key,
            key=str(key),
            attempts=attempts,
            until=until,
            text=window.text,
        )


def _judged(record: Record) -> dict[str, str]:
    if not record.verdict:
        return {}
    return {"verdict": record.verdict, "reason": record.reason, "text": record.message}
