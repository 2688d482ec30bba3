"""Opening the SQLite database: nobody else has it, it is sound, of this version and in a journal.

Everything here but `stored_plan` runs in the thread that writes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from reporter.common import log
from reporter.common.private_file import sync_directory
from reporter.ledger.errors import StoreError, StoreFull, StoreLocked
from reporter.ledger.rows import PLAN, TABLES, write_page
from reporter.run.plan import Plan, parse_plan

Connect = Callable[..., sqlite3.Connection]

VERSION: Final = 9
"""Of the tables. Another one is refused: none was ever released."""

_ANEW = (
    "delete the run and start a new one (if you deployed the aggregator yourself: with an empty"
    " state directory)"
)
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "glusterfs", "lustre"}


@contextlib.contextmanager
def opened(
    path: Path, connect: Connect, *, mounts: Path = Path("/proc/self/mountinfo")
) -> Iterator[sqlite3.Connection]:
    """Give a connection to a sound database, made if it is not there, and close it in the end.

    Raises `StoreError`, `sqlite3.Error` and OSError, and leaves a database that is damaged or of
    another version as it is.
    """
    with _locked(path):
        # SQLite gives the journals the mode of the database, and makes that for all to read.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        # Closing undoes what was not committed, and brings the write-ahead log into the database.
        with contextlib.closing(connect(path, isolation_level=None, timeout=5.0)) as connection:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if answer != "ok":
                raise _damaged(path, answer)
            _set_journal(connection, path, network_file_system(mounts, path))
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            _create_tables(connection, path)
            # Else the database of an acknowledged row might not be found after a loss of power.
            sync_directory(path.parent)
            yield connection


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes out. The lock is the kernel's: it ends with the process."""
    beside = path.with_name(path.name + ".lock")
    # Not on the database itself: SQLite's own locks there would be lost with this descriptor.
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(f"another process has {path} open") from None
        yield
    finally:
        os.close(descriptor)


def stored_plan(path: Path) -> Plan | None:
    """Return the plan of the run in a database, if it can be read. Makes no database."""
    try:
        # Not `ro`: what a killed process left half written has to be rolled back to be read.
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)) as database:
            found = database.execute(PLAN).fetchone()
    except sqlite3.Error:
        return None
    return None if found is None else parse_plan(json.loads(found[0]))


def store_error(error: BaseException, path: Path) -> StoreError:
    """Say in the store's words why the database did not do it."""
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
    if isinstance(error, ValidationError | json.JSONDecodeError):
        return _damaged(path, "a row cannot be read")  # the error quotes it
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


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} is corrupted ({why}); restore it from a backup, or {_ANEW}")


def _set_journal(connection: sqlite3.Connection, path: Path, network: str | None) -> None:
    """Choose WAL where it works: it needs memory shared through the file system."""
    reason = f"a network file system ({network})" if network else ""
    if not reason:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode == "wal":
                # Some file systems fail at the first write only.
                connection.execute("BEGIN IMMEDIATE")
                write_page(connection)
                connection.execute("COMMIT")
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


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise StoreError(f"{path} has version {version}; this program supports {VERSION}")
    if 0 < version < VERSION:
        raise StoreError(
            f"{path} has version {version}, which this program cannot read; finish the run with the"
            f" version that started it, or {_ANEW}"
        )
    if version == 0:
        connection.execute("BEGIN IMMEDIATE")
        for statement in TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
