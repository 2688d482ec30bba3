"""An open SQLite transaction. Used by one thread, which is the only writer."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reporter.ledger import rows
from reporter.ledger.transaction import Changed, Run, known
from reporter.run.entry import Entry, State
from reporter.run.plan import Key, Plan, parse_plan, plan_document
from reporter.run.progress import StoredProgress, newest
from reporter.run.record import Record
from reporter.run.state import Phase

_PUT_ENTRY = """INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET state = excluded.state,
    retry_window = excluded.retry_window, attempts = excluded.attempts,
    launched_at = excluded.launched_at, deadline = excluded.deadline,
    started_at = excluded.started_at, due = excluded.due, revision = excluded.revision"""
_PUT_PROGRESS = """INSERT INTO progress VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET at = excluded.at, revision = excluded.revision, sent = excluded.sent
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
_CHANGED = "SELECT plugin, node, revision FROM entry WHERE revision > ?"
_PROGRESSED = "SELECT plugin, node, revision, sent FROM progress WHERE revision > ?"


class SqliteTransaction:
    """Reads and writes the rows of a run while it is `begun`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._plan: Plan | None = None
        self._run: Run | None = None
        self._revision = 0
        # The entries that were read or written in this transaction, as they are now.
        self._touched: dict[Key, Entry] = {}
        self._sent: dict[Key, StoredProgress] = {}
        self.changed: list[Changed] = []
        """What this transaction has changed, in the order of the revisions."""

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """Commit what is done inside; on an error nothing of it is done."""
        self._roll_back()
        self._touched, self._sent, self.changed = {}, {}, []
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._revision = 0 if self.run is None else self.run.revision
            yield
            run = known(self)
            if run.revision != self._revision:
                self._connection.execute("UPDATE run SET revision = ?", (self._revision,))
                self._run = replace(run, revision=self._revision)
            self._connection.execute("COMMIT")
        except BaseException:
            self._run = None
            # A transaction that cannot be rolled back now is rolled back before the next
            # transaction.
            with contextlib.suppress(sqlite3.Error):
                self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @property
    def run(self) -> Run | None:
        """The run; after a transaction that failed it is read again, all but its long plan."""
        if self._run is None:
            row = self._connection.execute(
                "SELECT started_at, phase, revision, tar, error, alive_at, alive_wall,"
                " packing_failed_since, launching, retrieved_at, upload FROM run"
            ).fetchone()
            if row is None:
                return None
            if self._plan is None:
                (plan,) = self._connection.execute("SELECT plan FROM run").fetchone()
                self._plan = parse_plan(json.loads(plan))
            started_at, phase, revision, tar, error, alive_at, alive_wall, *rest = row
            packing_failed_since, launching, retrieved_at, upload = rest
            self._run = Run(
                self._plan,
                started_at,
                Phase(phase),
                revision,
                rows.tar_of(tar),
                None if error is None else json.loads(error),
                alive_at,
                alive_wall,
                packing_failed_since,
                bool(launching),
                retrieved_at,
                rows.upload_of(upload),
            )
        return self._run

    def create(self, run: Run) -> None:
        """Write a new run and its entries, all as revision 1."""
        plan = rows.dump(plan_document(run.plan))
        self._connection.execute(
            "INSERT INTO run (one, plan, started_at, phase, revision, alive_at, alive_wall,"
            " launching) VALUES (1, ?, ?, ?, 0, ?, ?, FALSE)",
            (plan, run.started_at, str(run.phase), run.alive_at, run.alive_wall),
        )
        self._plan, self._run, self._revision = run.plan, replace(run, revision=0), 1
        entries = map(Entry, run.plan.keys)
        self._connection.executemany(_PUT_ENTRY, (rows.entry_row(entry, 1) for entry in entries))

    def put_run(self, run: Run) -> None:
        """Write the run, all but what never changes."""
        old = known(self)
        if _shown(run) != _shown(old):
            self._revision += 1
        facts = (
            str(run.phase),
            rows.tar_text(run.tar),
            None if run.error is None else rows.dump(run.error),
            run.alive_at,
            run.alive_wall,
            run.packing_failed_since,
            run.launching,
            run.retrieved_at,
            rows.upload_text(run.upload),
        )
        self._connection.execute(
            "UPDATE run SET phase = ?, tar = ?, error = ?, alive_at = ?, alive_wall = ?,"
            " packing_failed_since = ?, launching = ?, retrieved_at = ?, upload = ?",
            facts,
        )
        self._run = run

    def take_number(self) -> None:
        """Let the run take a number as it is."""
        self._revision += 1

    def entries(self, keys: Collection[Key]) -> dict[Key, Entry]:
        """Read these entries. Raises `KeyError` when one is not there."""
        if missing := [key for key in keys if key not in self._touched]:
            wanted = (rows.dump(missing),)
            records: defaultdict[Key, dict[str, Record]] = defaultdict(dict)
            for plugin, node, standing, *rest in self._connection.execute(_RECORDS, wanted):
                records[Key(plugin, node)][standing] = rows.record_of(tuple(rest))
            for plugin, node, *rest in self._connection.execute(_ENTRIES, wanted):
                key = Key(plugin, node)
                self._touched[key] = rows.entry_of(key, tuple(rest), records[key])
        return {key: self._touched[key] for key in keys}

    def entries_in(self, state: State) -> dict[Key, Entry]:
        """Read the entries in that state."""
        return self._found("SELECT plugin, node FROM entry WHERE state = ?", str(state))

    def due_entries(self, now: float) -> dict[Key, Entry]:
        """Read those for which time has run out, by their index."""
        return self._found("SELECT plugin, node FROM entry WHERE due <= ?", now)

    def next_due(self) -> float | None:
        """Read when time runs out for the first entry."""
        (moment,) = self._connection.execute("SELECT min(due) FROM entry").fetchone()
        return None if moment is None else float(moment)

    def _found(self, question: str, value: object) -> dict[Key, Entry]:
        return self.entries([Key(*row) for row in self._connection.execute(question, (value,))])

    def put_entries(self, entries: Collection[Entry]) -> None:
        """Write entries with their records."""
        changed = [
            Changed(revision, entry.key, entry)
            for revision, entry in enumerate(entries, self._revision + 1)
        ]
        self._revision += len(changed)
        self.changed += changed
        self._connection.executemany(
            _PUT_ENTRY,
            [
                rows.entry_row(entry, each.revision)
                for each, entry in zip(changed, entries, strict=True)
            ],
        )
        new = [
            entry for entry in entries if _records(entry) != _records(self._touched.get(entry.key))
        ]
        if new:
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
        self._touched.update((entry.key, entry) for entry in entries)

    def progress(self, key: Key) -> StoredProgress | None:
        """Read what is stored for a key."""
        if key not in self._sent:
            row = self._connection.execute(
                "SELECT sent FROM progress WHERE plugin = ? AND node = ?", key
            ).fetchone()
            if row is None:
                return None
            self._sent[key] = rows.sent_of(row[0])
        return self._sent[key]

    def put_progress(self, sent: Mapping[Key, StoredProgress]) -> None:
        """Write progress that is newer than what is stored."""
        written = []
        for revision, (key, value) in enumerate(sent.items(), self._revision + 1):
            written.append((*key, value.at, revision, rows.sent_text(value)))
            self._sent[key] = newest(self._sent.get(key), value) or value
            self.changed.append(Changed(revision, key, self._sent[key]))
        self._revision += len(written)
        self._connection.executemany(_PUT_PROGRESS, written)

    def put_beats(self, beats: Iterable[tuple[Key, bool, float]]) -> None:
        """Write what is known of the workers of some keys."""
        self._connection.executemany(_PUT_BEAT, ((*key, armed, at) for key, armed, at in beats))

    def changes(self, since: int) -> list[Changed]:
        """Read the rows whose revision is greater, in its order.

        Without an index, as this is asked at the start and when a commit seemed to fail.
        """
        found = {Key(*key): at for *key, at in self._connection.execute(_CHANGED, (since,))}
        changed = [Changed(found[key], key, entry) for key, entry in self.entries(found).items()]
        for plugin, node, revision, sent in self._connection.execute(_PROGRESSED, (since,)):
            changed.append(Changed(revision, Key(plugin, node), rows.sent_of(sent)))
        return sorted(changed, key=_in_order)

    def armed(self) -> dict[Key, bool]:
        """Read which keys were heard, and whether by a real heartbeat."""
        found = self._connection.execute("SELECT plugin, node, armed FROM beat")
        return {Key(plugin, node): bool(armed) for plugin, node, armed in found}

    def close(self) -> None:
        """Close the connection, which also brings the write-ahead log into the database."""
        self._connection.close()


def _shown(run: Run) -> tuple[object, ...]:
    return run.phase, run.tar, run.error, run.retrieved_at, run.upload


def _in_order(changed: Changed) -> tuple[int, Key]:
    return changed.revision, changed.key


def _records(entry: Entry | None) -> list[tuple[str, Record]]:
    held = (("held", entry.record), ("superseded", entry.superseded)) if entry else ()
    return [(standing, record) for standing, record in held if record is not None]
