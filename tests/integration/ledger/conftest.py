"""Fixtures of the store's tests."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.ledger.world import Disk, World, disk_error


@pytest.fixture(params=["wal", "truncate"])
def world(request: pytest.FixtureRequest, quick_folder: Path) -> World:
    """A place for a run, with every journal in turn."""
    if request.param == "truncate":
        return World(quick_folder, connect=without_wal().connect)
    return World(quick_folder)


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose syncs cost nothing, for thousands of commits; a disk where there is none."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="store-") as folder:
        yield Path(folder)


@pytest.fixture
def disk() -> Disk:
    """A disk that fails on demand."""
    return Disk()


def without_wal() -> Disk:
    """A disk whose file system cannot share memory."""
    disk = Disk()

    def refuse(sql: str) -> None:
        if "journal_mode = WAL" in sql:
            raise disk_error(sqlite3.SQLITE_IOERR_SHMMAP)

    disk.before = refuse
    return disk
