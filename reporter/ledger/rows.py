"""The rows of a run, and the transactions that read and write them. One thread uses them.

Every change of an entry or of its progress, and of what is shown of the run, takes the next number
under the row of the run: its revision. Whoever knows revision N learns all the rest from the rows
with a greater one, and of two that commit, the later one never has the smaller number. Heartbeats
and signs of life take none.

An entry without a row is as its plan has it.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ConfigDict, TypeAdapter
from pydantic_core import PydanticSerializationError

from reporter.ledger.errors import RunNotReady, WrongRun
from reporter.ledger.lifecycle import Run, check_plan
from reporter.run.entry import Entry, next_due
from reporter.run.plan import Key, Plan, parse_plan, plan_document
from reporter.run.progress import StoredProgress

T = TypeVar("T")

TABLES: Final = (
    """CREATE TABLE run (
        run TEXT PRIMARY KEY,
        phase TEXT NOT NULL,
        revision BIGINT NOT NULL,
        started_at DOUBLE PRECISION NOT NULL,
        doc TEXT NOT NULL
    )""",
    """CREATE TABLE item (
        run TEXT NOT NULL REFERENCES run,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        state TEXT,
        due DOUBLE PRECISION,
        revision BIGINT NOT NULL,
        doc TEXT NOT NULL,
        PRIMARY KEY (run, kind, key)
    )""",
    "CREATE INDEX item_due ON item (run, due) WHERE due IS NOT NULL",
    """CREATE TABLE beat (
        run TEXT NOT NULL REFERENCES run,
        key TEXT NOT NULL,
        armed INTEGER NOT NULL,
        heard_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (run, key)
    )""",
)
"""The columns beside a document are there to be searched for, `phase`, `started_at` and `state` by
people only.

The kinds are `plan`, which never changes and may be long, `entry` (with its records) and
`progress`: what is written often is in small rows. No index on the revision: one writer would read
it only when it starts, and write it with every change.
"""

PLAN: Final = "SELECT doc FROM item WHERE kind = 'plan'"  # one run in a database, and its first row


_PUT_ITEM = """INSERT INTO item (run, kind, key, state, due, revision, doc)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run, kind, key) DO UPDATE SET state = excluded.state, due = excluded.due,
    revision = excluded.revision, doc = excluded.doc"""
_PUT_BEAT = """INSERT INTO beat (run, key, armed, heard_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (run, key) DO UPDATE SET
    armed = CASE WHEN excluded.armed > beat.armed THEN excluded.armed ELSE beat.armed END,
    heard_at = CASE WHEN excluded.heard_at > beat.heard_at
    THEN excluded.heard_at ELSE beat.heard_at END"""
_PUT_RUN = "UPDATE run SET revision = revision + ?, phase = ?, doc = ? WHERE run = ?"

_CONFIG = ConfigDict(ser_json_inf_nan="constants")  # else they are null, which is no number
# With None, since a dataclass alone takes no configuration from outside.
_RUN: Final[TypeAdapter[Any]] = TypeAdapter(Run | None, config=_CONFIG)
_ITEMS: Final[dict[str, TypeAdapter[Any]]] = {
    "entry": TypeAdapter(Entry | None, config=_CONFIG),
    "progress": TypeAdapter(StoredProgress | None, config=_CONFIG),
}
_NO_TEXT = re.compile("[\0\ud800-\udfff]")

BeatRow = tuple[Key, bool, float]
"""A key, whether its worker has sent a real heartbeat, and when it was last heard."""


class Change(NamedTuple):
    """A row with the number that its last change has taken."""

    revision: int
    key: Key
    value: Entry | StoredProgress


@dataclass(frozen=True, slots=True)
class Commit:
    """What is new with a transaction, and how the run stands after it.

    `changes` are in the order of their revisions; `due_at` is when time runs out for the first
    entry.
    """

    run: Run
    revision: int
    changes: Sequence[Change]
    due_at: float | None


class Batch:
    """A transaction in the making: the run as it stands, and what operations change of it.

    An operation gets it and returns its answer. It decides before it changes anything:
    `RunNotReady` concerns its own caller only. Of all else the whole batch lasts, or nothing does.
    """

    def __init__(
        self,
        plan: Plan,
        run: Run,
        entries: dict[Key, Entry],
        progress: dict[Key, StoredProgress],
    ) -> None:
        self.plan, self.run = plan, run
        self._entries, self._progress = entries, progress
        self.new_entries: dict[Key, Entry] = {}
        self.new_progress: dict[Key, StoredProgress] = {}
        self.beats: list[BeatRow] = []
        self.bump_revision = False
        """Whether readers see a change that is in no row."""
        self.force_write = False
        """Whether something is to be written even if nothing has changed."""

    def entry(self, key: Key) -> Entry:
        """Return an entry of the plan. Raises `KeyError`."""
        return self.new_entries.get(key) or self._entries[key]

    def entries(self) -> Iterator[Entry]:
        """All entries, in the plan's order."""
        return map(self.entry, self.plan.keys)

    def update(self, keys: Iterable[Key], rule: Callable[[Entry], tuple[Entry, T]]) -> dict[Key, T]:
        """Apply a rule to some entries; return what it says of each."""
        answers = {}
        for key in keys:
            entry = self.entry(key)
            new, answers[key] = rule(entry)
            if new is not entry and new != entry:
                self.new_entries[key] = new
        return answers

    def touch(self, keys: Iterable[Key]) -> None:
        """Let entries take a new number as they are."""
        self.new_entries |= {key: self.entry(key) for key in keys}

    def progress(self, key: Key) -> StoredProgress | None:
        """Return the progress of a key, if there is any."""
        return self.new_progress.get(key) or self._progress.get(key)

    def put_progress(self, key: Key, new: StoredProgress) -> None:
        """Store the progress of a key, where it is newer than what is there."""
        old = self.progress(key)
        if old is None or new.at > old.at:
            self.new_progress[key] = new


Operation = Callable[[Batch], T]


class Rows:
    """One run in an open database, with a copy of its rows in memory.

    Each transaction begins by reading the rows that the copy lacks: those of a commit that only
    seemed to fail. So operations decide on what is there now, without asking again.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._plan: Plan
        self._run: Run
        self._revision = 0
        self._entries: dict[Key, Entry] = {}
        self._progress: dict[Key, StoredProgress] = {}
        self._news: list[Change] = []  # read in a transaction that failed afterwards

    def open(self, plan: Plan, run: Run) -> tuple[Plan, dict[Key, bool], Commit]:
        """Create the run, or take it up again with the plan that it began with.

        Returns that plan, which keys were heard (and whether by a real heartbeat), and everything
        there is. Raises `WrongRun`.
        """
        with self._transaction():
            found = self._connection.execute(PLAN).fetchone()
            if found is None:
                self._plan = plan
                self._connection.execute(
                    "INSERT INTO run (run, phase, revision, started_at, doc)"
                    " VALUES (?, ?, 1, ?, ?)",
                    (plan.run, str(run.phase), run.started_at, _document(_RUN, run)[1]),
                )
                self._connection.execute(
                    "INSERT INTO item (run, kind, key, revision, doc) VALUES (?, 'plan', '', 0, ?)",
                    (plan.run, json.dumps(plan_document(plan), separators=(",", ":"))),
                )
            else:
                self._plan = parse_plan(json.loads(found[0]))
                check_plan(self._plan, plan)
                write_page(self._connection)  # whoever cannot write must not begin
            self._entries = {key: Entry(key) for key in self._plan.keys}
            self._catch_up()
            beats = self._connection.execute(
                "SELECT key, armed FROM beat WHERE run = ?", (self._plan.run,)
            )
            armed = {_key(key): bool(value) for key, value in beats}
            due_at = self._next_due()
        return self._plan, armed, self._committed(self._run, self._revision, (), due_at)

    def commit(self, operations: Sequence[Operation[Any]]) -> tuple[list[Any], Commit]:
        """Run operations in one transaction; return their answers, and what is new.

        An answer may be a `RunNotReady`. After any other error nothing is changed, as far as is
        known: a commit that seemed to fail may have reached the disk, and the next one reads that.
        """
        answers: list[Any] = []
        with self._transaction():
            self._catch_up()
            batch = Batch(self._plan, self._run, self._entries, self._progress)
            for operation in operations:
                try:
                    answers.append(operation(batch))
                except RunNotReady as not_ready:
                    answers.append(not_ready)
            run, revision, changes = self._write(batch)
            due_at = self._next_due()
        return answers, self._committed(run, revision, changes, due_at)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._roll_back()  # one that failed, and could not be rolled back then
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _catch_up(self) -> None:
        """Read the rows that the copy lacks: at the start all there are."""
        row = self._connection.execute(
            "SELECT revision, doc FROM run WHERE run = ?", (self._plan.run,)
        ).fetchone()
        if row is None:
            raise WrongRun("the store no longer holds the run")
        revision, document = row
        self._run = _RUN.validate_json(document)
        if revision == self._revision:
            return
        found = self._connection.execute(
            "SELECT kind, key, revision, doc FROM item WHERE run = ? AND revision > ?"
            " ORDER BY revision",
            (self._plan.run, self._revision),
        )
        news = [
            Change(number, _key(key), _ITEMS[kind].validate_json(text))
            for kind, key, number, text in found
        ]
        self._keep(news)
        self._news += news
        self._revision = revision

    def _write(self, batch: Batch) -> tuple[Run, int, Sequence[Change]]:
        items: list[tuple[str, Key, Entry | StoredProgress]] = [
            *(("entry", *item) for item in batch.new_entries.items()),
            *(("progress", *item) for item in batch.new_progress.items()),
        ]
        changes, rows = [], []
        for revision, (kind, key, given) in enumerate(items, self._revision + 1):
            value, text = _document(_ITEMS[kind], given)
            state, due = (str(value.state), next_due(value)) if kind == "entry" else (None, None)
            changes.append(Change(revision, key, value))
            rows.append((self._plan.run, kind, str(key), state, due, revision, text))
        if rows:
            self._connection.executemany(_PUT_ITEM, rows)
        if batch.beats:
            self._connection.executemany(
                _PUT_BEAT, [(self._plan.run, str(key), *rest) for key, *rest in batch.beats]
            )
        run, document = _document(_RUN, batch.run)
        visible = batch.bump_revision or run.visible() != self._run.visible()
        increment = len(rows) + visible
        if batch.force_write:
            write_page(self._connection)
        if increment or run != self._run:
            self._connection.execute(
                _PUT_RUN, (increment, str(run.phase), document, self._plan.run)
            )
        return run, self._revision + increment, changes

    def _next_due(self) -> float | None:
        (moment,) = self._connection.execute(
            "SELECT min(due) FROM item WHERE run = ? AND due IS NOT NULL", (self._plan.run,)
        ).fetchone()
        return None if moment is None else float(moment)

    def _committed(
        self, run: Run, revision: int, changes: Collection[Change], due_at: float | None
    ) -> Commit:
        self._run, self._revision = run, revision
        self._keep(changes)
        news, self._news = [*self._news, *changes], []
        return Commit(run, revision, news, due_at)

    def _keep(self, changes: Iterable[Change]) -> None:
        for _, key, value in changes:
            if isinstance(value, Entry):
                self._entries[key] = value
            else:
                self._progress[key] = value


def write_page(connection: sqlite3.Connection) -> None:
    """Write what is there already: of a row that stays the same, SQLite writes nothing."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version}")


def _key(text: str) -> Key:
    plugin, _, node = text.partition("/")
    return Key(plugin, node)


def _document(adapter: TypeAdapter[T], value: T) -> tuple[T, str]:
    """Return a value as it can be kept, and its JSON."""
    try:
        text = adapter.dump_json(value).decode()
    except PydanticSerializationError:
        text = ""
    if not text or "\\u0000" in text:
        value = clean(value)
        text = adapter.dump_json(value).decode()
    return value, text


def clean(value: Any) -> Any:
    """Return it with U+FFFD for what databases refuse in texts: lone surrogates and NUL."""
    if type(value) is str:
        return _NO_TEXT.sub("\ufffd", value)
    if type(value) is tuple:
        return tuple(map(clean, value))
    if isinstance(value, dict):
        return {clean(key): clean(each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{field.name: clean(getattr(value, field.name)) for field in fields(value)}
        )
    return value
