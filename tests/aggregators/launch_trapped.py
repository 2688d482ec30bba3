"""The aggregator with a trap: at a named step it is killed, or its disk fails.

    launch_trapped.py TRAP LIMITS run ...

The file TRAP says `kill STEP`, `hold STEP` (until it says something else), or the name of an error
number and STEP, or nothing. It is read at each step, so it can be set while the process works.
Steps are those of the intake and of packing, `COMMIT` (of the database), and what is named below.
LIMITS is a JSON object of constants of `reporter.aggregator.limits`.
"""

import errno
import json
import os
import signal
import sqlite3
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from reporter.common.lifecycle import install

stop = install()

from reporter.aggregator import context, limits  # noqa: E402
from reporter.aggregator.main import main  # noqa: E402
from reporter.ledger import Store  # noqa: E402

TRAP = Path(sys.argv[1])
DISK = {
    "ENOSPC": sqlite3.SQLITE_FULL,
    "EIO": sqlite3.SQLITE_IOERR_WRITE,
    "EROFS": sqlite3.SQLITE_READONLY,
}


def due(name: str) -> str:
    """Say what is to fail at this step; being killed happens at once."""
    what, _, wanted = TRAP.read_text().partition(" ")
    if wanted != name:
        return ""
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return what


def step(name: str) -> None:
    """Fail as a disk does, or be as slow."""
    while due(name) == "hold":
        time.sleep(0.02)
    if what := due(name):
        number = getattr(errno, what)
        raise OSError(number, os.strerror(number))


class Connection(sqlite3.Connection):
    """A database whose commits may fail."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and (what := due(sql)):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = DISK[what]
            raise error
        return super().execute(sql, *parameters)


class TrappedStore(Store):
    """A store that may be killed before and after what it promises."""

    async def record_result(self, *args: Any, **kwargs: Any) -> Any:
        due("record")
        return await super().record_result(*args, **kwargs)

    async def record_progress(self, *args: Any, **kwargs: Any) -> Any:
        taken = await super().record_progress(*args, **kwargs)
        due("progress taken")
        return taken

    async def mark_failed(self, *args: Any, **kwargs: Any) -> Any:
        marked = await super().mark_failed(*args, **kwargs)
        due("failure noted")
        return marked

    async def mark_all_failed(self, *args: Any, **kwargs: Any) -> Any:
        marked = await super().mark_all_failed(*args, **kwargs)
        if marked:
            due("failure noted")
        return marked

    async def give_up_due(self, *args: Any, **kwargs: Any) -> Any:
        number = await super().give_up_due(*args, **kwargs)
        if number:
            due("failure noted")
        return number

    async def advance_run(self, phase: Any, **kwargs: Any) -> Any:
        due(f"advance to {phase}")
        snapshot = await super().advance_run(phase, **kwargs)
        due(f"advanced to {phase}")
        return snapshot


assert context.Store is Store
context.Store = partial(TrappedStore, connect=partial(sqlite3.connect, factory=Connection))  # type: ignore[misc,assignment]
context.Context = partial(context.Context, step=step)  # type: ignore[misc,assignment]
vars(limits).update(json.loads(sys.argv[2]))
sys.exit(main(sys.argv[3:], os.environ, stop))
