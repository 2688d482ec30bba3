"""An open SQLite transaction. Used by one thread, which is the only writer."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator

from reporter.aggregator.store import rows
from reporter.aggregator.store.operations import Run
from reporter.core.run.entry import Entry
from reporter.core.run.plan import Key, parse_plan, plan_document
from reporter.core.run.progress import Sent
from reporter.core.run.snapshot import Phase

_PUT_ENTRY = """INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET state = excluded.state, rank = excluded.rank,
    retry_window = excluded.retry_window, attempts = excluded.attempts,
    launched_at = excluded.launched_at, deadline = excluded.deadline"""
_PUT_PROGRESS = """INSERT INTO progress VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET at = excluded.at, sent = excluded.sent"""
_PUT_BEAT = """INSERT INTO beat VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET armed = excluded.armed, heard_at = excluded.heard_at"""


class SqliteTransaction:
    """Reads and writes the rows of a run while it is `begun`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._run: Run | None = None
        self.touched: dict[Key, Entry] = {}
        """The entries read or written in this transaction, as they are at its end."""

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """Commit what is done inside; on an error nothing of it is done."""
        self._roll_back()
        self.touched = {}
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
                "SELECT plan, started_at, phase, revision, tar, error, alive_at, unpacked_since"
                " FROM run"
            ).fetchone()
            if row is None:
                return None
            plan, started_at, phase, revision, tar, error, alive_at, unpacked_since = row
            self._run = Run(
                parse_plan(json.loads(plan)),
                started_at,
                Phase(phase),
                revision,
                rows.tar_of(tar),
                None if error is None else json.loads(error),
                alive_at,
                unpacked_since,
            )
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
        )
        if self.run is None:
            plan = rows.dump(plan_document(run.plan))
            self._connection.execute(
                "INSERT INTO run (one, id, plan, started_at, phase, revision, tar, error, alive_at,"
                " unpacked_since) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run.plan.run, plan, run.started_at, *facts),
            )
        else:
            self._connection.execute(
                "UPDATE run SET phase = ?, revision = ?, tar = ?, error = ?, alive_at = ?,"
                " unpacked_since = ?",
                facts,
            )
        self._run = run

    def entry(self, key: Key) -> Entry:
        """Read an entry. Raises `KeyError` when there is none."""
        found = self.touched.get(key)
        if found is None:
            row = self._connection.execute(
                "SELECT retry_window, attempts, launched_at, deadline FROM entry"
                " WHERE plugin = ? AND node = ?",
                key,
            ).fetchone()
            if row is None:
                raise KeyError(key)
            records = self._connection.execute(
                "SELECT standing, rank, at, digest, size, details FROM record"
                " WHERE plugin = ? AND node = ?",
                key,
            )
            by_standing = {standing: rows.record_of(tuple(rest)) for standing, *rest in records}
            found = self.touched[key] = rows.entry_of(key, row, by_standing)
        return found

    def put_entry(self, entry: Entry) -> None:
        """Write an entry with its records."""
        self._connection.execute(_PUT_ENTRY, rows.entry_row(entry))
        self._connection.execute("DELETE FROM record WHERE plugin = ? AND node = ?", entry.key)
        for standing, record in (("held", entry.record), ("superseded", entry.superseded)):
            if record is not None:
                self._connection.execute(
                    "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    rows.record_row(entry.key, standing, record),
                )
        self.touched[entry.key] = entry

    def put_progress(self, sent: Iterable[tuple[Key, Sent]]) -> None:
        """Write the latest progress of some keys."""
        self._connection.executemany(
            _PUT_PROGRESS, ((*key, value.at, rows.sent_text(value)) for key, value in sent)
        )

    def put_beats(self, beats: Iterable[tuple[Key, bool, float]]) -> None:
        """Write what is known of the workers of some keys."""
        self._connection.executemany(_PUT_BEAT, ((*key, armed, at) for key, armed, at in beats))

    def progress(self) -> dict[Key, Sent]:
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
