"""Opening the database: is it sound, which journal, and the tables with their migrations.

Everything here runs in the writer's thread. The meaning of the tables is in `sqlite_transaction`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from reporter.common import log
from reporter.common.private_file import sync_directory
from reporter.ledger.contract import StoreError, StoreFull
from reporter.run.plan import Plan, parse_plan

Connect = Callable[..., sqlite3.Connection]

_ANEW = (
    "delete the run and start a new one (if you deployed the aggregator yourself: with an empty"
    " state directory)"
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE run (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            plan TEXT NOT NULL,
            started_at REAL NOT NULL,
            phase TEXT NOT NULL,
            revision INTEGER NOT NULL,
            tar TEXT,
            error TEXT,
            alive_at REAL NOT NULL,
            alive_wall REAL NOT NULL,
            packing_failed_since REAL,
            launching INTEGER NOT NULL,
            retrieved_at REAL,
            upload TEXT
        )""",
        """CREATE TABLE entry (
            plugin TEXT NOT NULL,
            node TEXT NOT NULL,
            state TEXT NOT NULL,
            retry_window TEXT,
            attempts INTEGER NOT NULL,
            launched_at REAL,
            deadline REAL,
            started_at REAL,
            due REAL,
            revision INTEGER NOT NULL,
            PRIMARY KEY (plugin, node)
        ) WITHOUT ROWID""",
        "CREATE INDEX entry_due ON entry (due) WHERE due IS NOT NULL",
        """CREATE TABLE record (
            plugin TEXT NOT NULL,
            node TEXT NOT NULL,
            standing TEXT NOT NULL CHECK (standing IN ('held', 'superseded')),
            rank INTEGER NOT NULL,
            at REAL NOT NULL,
            digest TEXT NOT NULL,
            size INTEGER NOT NULL,
            details TEXT NOT NULL,
            PRIMARY KEY (plugin, node, standing),
            FOREIGN KEY (plugin, node) REFERENCES entry
        )""",
        """CREATE TABLE progress (
            plugin TEXT NOT NULL,
            node TEXT NOT NULL,
            at REAL NOT NULL,
            revision INTEGER NOT NULL,
            sent TEXT NOT NULL,
            PRIMARY KEY (plugin, node),
            FOREIGN KEY (plugin, node) REFERENCES entry
        )""",
        """CREATE TABLE beat (
            plugin TEXT NOT NULL,
            node TEXT NOT NULL,
            armed INTEGER NOT NULL,
            heard_at REAL NOT NULL,
            PRIMARY KEY (plugin, node),
            FOREIGN KEY (plugin, node) REFERENCES entry
        )""",
    ),
)
"""What brings the database from one version to the next, statement by statement."""

FIRST = 8
"""The version after the first of these steps. Earlier versions were never released."""

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "glusterfs", "lustre"}


def open_database(
    path: Path,
    connect: Connect,
    *,
    migrations: Sequence[Sequence[str]] = MIGRATIONS,
    mounts: Path = Path("/proc/self/mountinfo"),
) -> sqlite3.Connection:
    """Return a connection to a sound database of the newest version, made if it is not there.

    Raises `StoreError`, and leaves a database that is damaged or of a newer version as it is.
    """
    try:
        # SQLite gives the journals the mode of the database, and makes that for all to read.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = connect(path, isolation_level=None, timeout=5.0)
    except (sqlite3.Error, OSError) as error:
        raise store_error(error, path) from error
    try:
        _check(connection, path)
        _set_journal(connection, path, network_file_system(mounts, path))
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection, path, migrations)
        # Else the database of an acknowledged row might not be found after a loss of power.
        sync_directory(path.parent)
    except (sqlite3.Error, OSError) as error:
        connection.close()
        raise store_error(error, path) from error
    except StoreError:
        connection.close()
        raise
    return connection


def stored_plan(path: Path) -> Plan | None:
    """Return the plan of the run in a database, if it can be read. Makes no database."""
    try:
        # Not `ro`: what a killed process left half written has to be rolled back to be read.
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)) as database:
            found = database.execute("SELECT plan FROM run").fetchone()
    except sqlite3.Error:
        return None
    return None if found is None else parse_plan(json.loads(found[0]))


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]]
) -> None:
    """Bring the database to the newest version, each step in a transaction of its own.

    After an error the connection is of no use but to be closed, which undoes the step.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    newest = FIRST + len(migrations) - 1
    if version > newest:
        raise StoreError(f"{path} has version {version}; this program supports {newest}")
    if 0 < version < FIRST:
        raise StoreError(
            f"{path} has version {version}, which this program cannot read; finish the run with the"
            f" version that started it, or {_ANEW}"
        )
    done = max(0, version - FIRST + 1)
    for number, statements in enumerate(migrations[done:], FIRST + done):
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")


def store_error(error: BaseException, path: Path) -> StoreError:
    """Say in our words why the database did not do it."""
    if isinstance(error, StoreError):
        return error
    code = getattr(error, "sqlite_errorcode", None)
    number = getattr(error, "errno", None)
    # With the journal's index, a full disk shows as an I/O error of its own kind.
    if (
        code == sqlite3.SQLITE_IOERR_SHMSIZE
        or (code is not None and code & 0xFF == sqlite3.SQLITE_FULL)
        or number in (errno.ENOSPC, errno.EDQUOT)
    ):
        return StoreFull(f"no space left for {path}: {error}")
    if code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _damaged(path, str(error))
    return StoreError(f"{path}: {error}")


def network_file_system(mounts: Path, path: Path) -> str | None:
    """Return the type of the file system a path is on, if it is one of the network."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
        target = path.resolve()
    except OSError:
        return None
    found, longest = None, -1
    for line in lines:
        head, _, tail = line.partition(" - ")
        fields, kind = head.split(), tail.partition(" ")[0]
        if len(fields) < 5:
            continue
        point = Path(fields[4].encode().decode("unicode_escape", "replace"))
        # If two mounts are on one point, the later one is seen.
        if target.is_relative_to(point) and len(point.parts) >= longest:
            found, longest = kind, len(point.parts)
    return found if found in _NETWORK or (found or "").startswith("fuse.") else None


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise _damaged(path, answer)


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} is corrupted ({why}); restore it from a backup, or {_ANEW}")


def _set_journal(connection: sqlite3.Connection, path: Path, network: str | None) -> None:
    """Choose WAL where it works: it needs memory shared through the file system."""
    reason = f"a network file system ({network})" if network else ""
    if not reason:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode == "wal":
                _write_something(connection)
                return
            reason = f"the journal stays in mode {mode}"
        except sqlite3.OperationalError as error:
            if isinstance(store_error(error, path), StoreFull):
                raise
            reason = str(error)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
    log.get().warning(
        "No write-ahead log on this volume; every commit takes longer",
        path=str(path),
        reason=reason,
    )


def _write_something(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("COMMIT")
