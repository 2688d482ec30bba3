"""The store for tests of the rest: quick, and failing when it is told to."""

from __future__ import annotations

import functools
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reporter.ledger import Store

_MEMORY = Path("/dev/shm")
_INHERITED = "QUICK_STORES"


def volatile(owner: object) -> Path:
    """A folder in memory, where there is such a thing, that goes with its owner."""
    folder = Path(tempfile.mkdtemp(dir=_root()))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _root() -> str:
    """The folder of all, also of the processes that are started from here."""
    if _INHERITED not in os.environ:
        where = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        os.environ[_INHERITED] = tempfile.mkdtemp(prefix="store-", dir=where)
    return os.environ[_INHERITED]


def prepare() -> None:
    """Make the folder before a process is started that makes one of its own."""
    _root()


def sweep() -> None:
    """Remove what is left: killed processes, and those of pytest-xdist, end without finalizers."""
    shutil.rmtree(os.environ.pop(_INHERITED), ignore_errors=True)


class QuickStore(Store):
    """A store that syncs nothing. Before each commit it calls `before_commit`, which may raise."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        before_commit: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> None:
        def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            class Connection(sqlite3.Connection):
                def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                    if sql == "COMMIT":
                        before_commit()
                    if sql == "PRAGMA synchronous = FULL":
                        sql = "PRAGMA synchronous = OFF"
                    return super().execute(sql, *parameters)

            return sqlite3.connect(*args, factory=Connection, **kwargs)

        self.path = path or volatile(self) / "run.db"
        super().__init__(self.path, connect=connect, **options)
