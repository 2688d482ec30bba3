"""An open SQLite transaction. Used by one thread, which is the only writer."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from reporter.aggregator.store import rows
from reporter.aggregator.store.operations import Run
from reporter.core.run.entry import Entry, Record
from reporter.core.run.plan import Key, parse_plan, plan_document
from reporter.core.run.progress import Sent, newest
from reporter.core.run.snapshot import Phase

_PUT_ENTRY = """INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET state = excluded.state, rank = excluded.rank,
    retry_window = excluded.retry_window, attempts = excluded.attempts,
    launched_at = excluded.launched_at, deadline = excluded.deadline,
    started_at = excluded.started_at"""
_PUT_PROGRESS = """INSERT INTO progress VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET at = excluded.at, sent = excluded.sent
    WHERE excluded.at > progress.at"""
_PUT_BEAT = """INSERT INTO beat VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET armed = max(armed, excluded.armed),
    heard_at = max(heard_at, excluded.heard_at)"""
_ENTRIES = """SELECT plugin, node, retry_window, attempts, launched_at, deadline, started_at
    FROM entry
    WHERE (plugin, node) IN
    (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))"""
_RECORDS = """SELECT plugin, node, standing, rank, at, digest, size, details FROM record
    WHERE (plugin, node) IN
    (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))"""
_ALL = "SELECT plugin, node FROM entry"
_OPEN = "SELECT plugin, node FROM entry WHERE rank IS NULL"


class SqliteTransaction:
    """Reads and writes the rows of a run while it is `begun`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._run: Run | None = None
        self.touched: dict[Key, Entry] = {}
        """The entries read or written in this transaction, as they are at its end."""
        self.sent: dict[Key, Sent] = {}
        """The progress read or written in it."""

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """Commit what is done inside; on an error nothing of it is done."""
        self._roll_back()
        self.touched, self.sent = {}, {}
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._run = None
            # What could not be rolled back now is rolled back before the next transaction.
            with contextlib.suppress(sqlite3.Error):
                self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @property
    def run(self) -> Run | None:
        """The run; read once, because the plan is long and nobody else writes."""
        if self._run is None:
            row = self._connection.execute(
                "SELECT plan, started_at, phase, revision, tar, error, alive_at, unpacked_since,"
                " launching, retrieved_at FROM run"
            ).fetchone()
            if row is None:
                return None
            plan, started_at, phase, revision, tar, error, alive_at, *rest = row
            unpacked_since, launching, retrieved_at = rest
            self._run = Run(
                parse_plan(json.loads(plan)),
                started_at,
                Phase(phase),
                revision,
                rows.tar_of(tar),
                None if error is None else json.loads(error),
                alive_at,
                unpacked_since,
                bool(launching),
                retrieved_at,
            )
        return self._run

    @property
    def known_run(self) -> Run | None:
        """The run as far as it is in memory: nothing after a transaction that failed."""
        return self._run

    def put_run(self, run: Run) -> None:
        """Write the run; its plan only the first time."""
        facts = (
            str(run.phase),
            run.revision,
            rows.tar_text(run.tar),
            None if run.error is None else rows.dump(run.error),
            run.alive_at,
            run.unpacked_since,
            int(run.launching),
            run.retrieved_at,
        )
        if self.run is None:
            plan = rows.dump(plan_document(run.plan))
            self._connection.execute(
                "INSERT INTO run (one, id, plan, started_at, phase, revision, tar, error, alive_at,"
                " unpacked_since, launching, retrieved_at)"
                " VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run.plan.run, plan, run.started_at, *facts),
            )
        else:
            self._connection.execute(
                "UPDATE run SET phase = ?, revision = ?, tar = ?, error = ?, alive_at = ?,"
                " unpacked_since = ?, launching = ?, retrieved_at = ?",
                facts,
            )
        self._run = run

    def entries(self, keys: Collection[Key] | None = None) -> dict[Key, Entry]:
        """Read these entries, or all. Raises `KeyError` when one is not there."""
        if keys is None:
            keys = self._keys(_ALL)
        if missing := [key for key in keys if key not in self.touched]:
            wanted = (rows.dump(missing),)
            records: defaultdict[Key, dict[str, Record]] = defaultdict(dict)
            for plugin, node, standing, *rest in self._connection.execute(_RECORDS, wanted):
                records[Key(plugin, node)][standing] = rows.record_of(tuple(rest))
            for plugin, node, *rest in self._connection.execute(_ENTRIES, wanted):
                key = Key(plugin, node)
                self.touched[key] = rows.entry_of(key, tuple(rest), records[key])
        return {key: self.touched[key] for key in keys}

    def open_entries(self) -> dict[Key, Entry]:
        """Read the entries that are not decided."""
        return self.entries(self._keys(_OPEN))

    def _keys(self, question: str) -> list[Key]:
        return [Key(*row) for row in self._connection.execute(question)]

    def put_entries(self, entries: Collection[Entry]) -> None:
        """Write entries with their records."""
        self._connection.executemany(_PUT_ENTRY, map(rows.entry_row, entries))
        new = [
            entry for entry in entries if _records(entry) != _records(self.touched.get(entry.key))
        ]
        self._connection.executemany(
            "DELETE FROM record WHERE plugin = ? AND node = ?", [entry.key for entry in new]
        )
        self._connection.executemany(
            "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                rows.record_row(entry.key, standing, record)
                for entry in new
                for standing, record in _records(entry)
            ],
        )
        self.touched.update((entry.key, entry) for entry in entries)

    def progress(self, key: Key) -> Sent | None:
        """Read what is stored for a key."""
        if key not in self.sent:
            row = self._connection.execute(
                "SELECT sent FROM progress WHERE plugin = ? AND node = ?", key
            ).fetchone()
            if row is None:
                return None
            self.sent[key] = rows.sent_of(row[0])
        return self.sent[key]

    def put_progress(self, sent: Mapping[Key, Sent]) -> None:
        """Write progress that is newer than what is stored."""
        self._connection.executemany(
            _PUT_PROGRESS, [(*key, value.at, rows.sent_text(value)) for key, value in sent.items()]
        )
        for key, value in sent.items():
            self.sent[key] = newest(self.sent.get(key), value) or value

    def put_beats(self, beats: Iterable[tuple[Key, bool, float]]) -> None:
        """Write what is known of the workers of some keys."""
        self._connection.executemany(_PUT_BEAT, ((*key, armed, at) for key, armed, at in beats))

    def all_progress(self) -> dict[Key, Sent]:
        """Read the progress of all keys."""
        found = self._connection.execute("SELECT plugin, node, sent FROM progress")
        return {Key(plugin, node): rows.sent_of(sent) for plugin, node, sent in found}

    def armed(self) -> dict[Key, bool]:
        """Read which keys were heard, and whether by a real heartbeat."""
        found = self._connection.execute("SELECT plugin, node, armed FROM beat")
        return {Key(plugin, node): bool(armed) for plugin, node, armed in found}

    def close(self) -> None:
        """Close the connection, which also brings the write-ahead log into the database."""
        self._connection.close()


def _records(entry: Entry | None) -> list[tuple[str, Record]]:
    held = (("held", entry.record), ("superseded", entry.superseded)) if entry else ()
    return [(standing, record) for standing, record in held if record is not None]
