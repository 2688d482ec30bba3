"""Opening the database: its journal, its file, who else has it, and what is wrong with it."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from reporter.common import log
from reporter.ledger import Store, StoreError, StoreLocked, database
from reporter.run.upload import UploadOutcome
from tests.integration.ledger.killing import ROOT
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NOW,
    PLAN,
    Disk,
    World,
    disk_error,
    on_loop,
    replacing,
    result,
)


@pytest.fixture
def place(tmp_path: Path) -> World:
    """A place with a run in which one result came."""

    @on_loop
    async def begin() -> None:
        async with world.opened() as store:
            await store.record_result(E2E, result())

    world = World(tmp_path)
    begin()
    return world


def ask(path: Path, sql: str) -> object:
    """Look into the database from outside."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(sql).fetchone()
    finally:
        connection.close()


async def start_fails(world: World) -> str:
    """Start once and return why it did not work; the next start must be free to try."""
    with pytest.raises(StoreError) as error:
        await world.store().open_run(PLAN, now=NOW)
    return str(error.value)


@on_loop
async def test_the_log_is_written_ahead_and_synced_with_every_commit(tmp_path: Path, monkeypatch):
    """What a 200 promises rests on these."""
    connections, directories = [], []
    monkeypatch.setattr(database, "sync_directory", directories.append)

    def connect(*args, **kwargs) -> sqlite3.Connection:
        connections.append(sqlite3.connect(*args, **kwargs))
        return connections[-1]

    asked = {}

    def look(_) -> None:
        for name in ("journal_mode", "synchronous", "foreign_keys", "user_version"):
            asked[name] = connections[0].execute(f"PRAGMA {name}").fetchone()[0]

    world = World(tmp_path, connect)
    async with world.opened() as store:
        await store._writer.submit(look)
    assert {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "user_version": database.VERSION,
    } == asked
    assert (1, [tmp_path]) == (len(connections), directories)


@on_loop
async def test_only_the_owner_can_read_the_files(tmp_path: Path):
    """Messages of workers are nobody else's business."""
    async with World(tmp_path).opened() as store:
        await store.record_result(E2E, result())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert {
        "run.db": 0o600,
        "run.db-wal": 0o600,
        "run.db-shm": 0o600,
        "run.db.lock": 0o600,
    } == modes


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL]
)
@on_loop
async def test_a_volume_without_shared_memory_gets_the_old_journal_and_a_warning(
    tmp_path: Path, disk: Disk, code: int
):
    """Slower, and as durable."""

    def refuse(sql: str) -> None:
        if "journal_mode = WAL" in sql:
            raise disk_error(code, "locking protocol")

    disk.before = refuse
    with log.capture() as logs:
        async with World(tmp_path, disk.connect).opened() as store:
            await store.record_result(E2E, result())
            assert not (tmp_path / "run.db-wal").exists()
    assert [("warning", "locking protocol")] == [(line["level"], line["reason"]) for line in logs]
    assert ("truncate", "delete").count(ask(tmp_path / "run.db", "PRAGMA journal_mode")[0])


@on_loop
async def test_a_log_that_fails_only_when_written_is_given_up_too(tmp_path: Path, disk: Disk):
    """The mode alone says nothing: some file systems fail at the first write."""
    writes = 0

    def refuse(sql: str) -> None:
        nonlocal writes
        if sql.startswith("PRAGMA user_version ="):
            writes += 1
            if writes == 1:
                raise disk_error(sqlite3.SQLITE_IOERR_SHMLOCK)

    disk.before = refuse
    with log.capture() as logs:
        async with World(tmp_path, disk.connect).opened() as store:
            await store.record_result(E2E, result())
    assert ["warning"] == [line["level"] for line in logs]
    async with World(tmp_path).opened() as again:
        assert result() == again.entry(E2E).record


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ext4", None),
        ("overlay", None),
        ("tmpfs", None),
        ("nfs4", "nfs4"),
        ("cifs", "cifs"),
        ("fuse.sshfs", "fuse.sshfs"),
        ("ceph", "ceph"),
    ],
)
def test_network_file_systems_are_known_by_their_mount(tmp_path: Path, kind, expected):
    """The innermost mount counts, blanks in its path too; of two on one point the later."""
    volume = tmp_path / "my volume"
    (volume / "state").mkdir(parents=True)
    point = str(volume).replace(" ", "\\040")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - nfs root rw\n"
        f"23 22 0:5 / {point} rw - nfs hidden rw\n"
        f"24 22 0:6 / {point} rw master:1 - {kind} server:/export rw\n"
        f"25 22 0:7 / {point}/state/deeper rw - nfs other rw\n"
        "broken line\n"
    )
    assert expected == database.network_file_system(mounts, volume / "state" / "run.db")


def test_without_a_list_of_mounts_nothing_is_assumed(tmp_path: Path):
    """Then trying decides."""
    assert database.network_file_system(tmp_path / "none", tmp_path / "run.db") is None


def test_on_a_network_file_system_the_log_is_not_even_tried(tmp_path: Path):
    """It may seem to work there for as long as nobody else looks."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 8:1 / / rw - nfs4 server:/ rw\n")
    path = tmp_path / "run.db"
    with (
        log.capture() as logs,
        database.opened(path, sqlite3.connect, mounts=mounts) as connection,
    ):
        assert ("truncate",) == connection.execute("PRAGMA journal_mode").fetchone()
    assert ["a network file system (nfs4)"] == [line["reason"] for line in logs]


@on_loop
async def test_a_second_store_of_the_same_process_is_refused(place: World):
    """And the first goes on."""
    async with place.opened() as store:
        with pytest.raises(StoreLocked, match="another process has"):
            await place.store().open_run(PLAN, now=NOW)
        assert UploadOutcome.DUPLICATE == (await store.record_result(E2E, result())).outcome


OPEN_IT = """
import asyncio, sys
from pathlib import Path
from reporter.ledger import Store, StoreError
from tests.integration.ledger.world import PLAN, NOW

async def main():
    store = Store(Path(sys.argv[1]))
    try:
        await store.open_run(PLAN, now=NOW)
    except StoreError as error:
        print(type(error).__name__, flush=True)
    else:
        print("open", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


def test_a_second_process_is_refused_until_the_first_is_gone(place: World):
    """However it went: the kernel keeps the lock."""
    command = [sys.executable, "-c", OPEN_IT, place.path]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        try:
            assert "open\n" == first.stdout.readline()
            with pytest.raises(StoreLocked):
                asyncio.run(place.store().open_run(PLAN, now=NOW))
        finally:
            first.kill()

    @on_loop
    async def third() -> None:
        async with place.opened() as store:
            assert result() == store.entry(E2E).record

    third()


@on_loop
async def test_a_file_that_is_no_database_is_named_and_left_alone(place: World):
    """The operator decides what becomes of it."""
    place.path.write_bytes(b"not a database, but long enough to be looked at" * 99)
    before = place.path.read_bytes()
    why = await start_fails(place)
    assert why.startswith(f"{place.path} is corrupted (file is not a database); restore it")
    assert "or delete the run and start a new one" in why
    assert before == place.path.read_bytes()


@pytest.mark.parametrize("name", ["item", "beat", "sqlite_autoindex_item_1"])
@on_loop
async def test_a_damaged_page_is_found_at_the_start(place: World, name: str):
    """Not weeks later, when somebody writes there: also one that no start has to read."""
    (page,) = ask(place.path, f"SELECT rootpage FROM sqlite_master WHERE name = '{name}'")
    with place.path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    why = await start_fails(place)
    assert why.startswith(f"{place.path} is corrupted (")


@pytest.mark.parametrize("kind", ["plan", "entry"])
@on_loop
async def test_a_row_that_cannot_be_read_is_not_quoted(place: World, kind: str):
    """It may hold what a worker sent, and the operator needs to know what to do."""
    ask(place.path, f"UPDATE item SET doc = substr(doc, 1, 9) WHERE kind = '{kind}'")
    why = await start_fails(place)
    assert why.startswith(f"{place.path} is corrupted (a row cannot be read); restore it")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (1, "which this program cannot read; finish the run"),
        (database.VERSION - 1, "which this program cannot read; finish the run"),
        (99, f"this program supports {database.VERSION}"),
    ],
)
@on_loop
async def test_a_database_of_another_version_is_refused(place: World, version: int, words: str):
    """An older program would not know what it must keep; no older version was ever released."""
    ask(place.path, f"PRAGMA user_version = {version}")
    why = await start_fails(place)
    assert f"{place.path} has version {version}" == re.split("[,;]", why)[0]
    assert words in why
    assert (version,) == ask(place.path, "PRAGMA user_version")


@on_loop
async def test_a_directory_that_is_not_there_is_an_error_of_the_store(tmp_path: Path):
    """Nobody above has to know what the sqlite3 module raises."""
    world = World(tmp_path / "none")
    assert "No such file or directory" in await start_fails(world)
    world.folder.mkdir()
    async with world.opened() as store:
        assert store.writable


@on_loop
async def test_a_start_that_failed_lets_the_next_one_in(place: World):
    """Lock, thread and connection are given back."""
    store = place.store()
    with pytest.raises(StoreError, match="holds run run-1"):
        await store.open_run(type(PLAN)("other", PLAN.plugins), now=NOW)
    await store.open_run(PLAN, now=NOW)
    await store.close()
    await store.open_run(PLAN, now=NOW)
    assert UploadOutcome.DUPLICATE == (await store.record_result(E2E, result())).outcome
    await store.close()


@on_loop
async def test_a_start_that_is_called_off_gives_everything_back(place: World):
    """SIGTERM in the middle of a start."""
    starting = asyncio.ensure_future(place.store().open_run(PLAN, now=NOW))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    while True:
        try:
            async with place.opened() as store:
                assert result() == store.entry(E2E).record
                break
        except StoreLocked:
            await asyncio.sleep(0.01)


@on_loop
async def test_after_a_crash_the_revision_is_the_one_that_was_shown(place: World):
    """It is never shown before it is on the disk; what was on its way may have got there."""
    crashed = World(place.folder / "copy")
    crashed.folder.mkdir()
    async with place.opened() as store:
        for number in range(1000):
            await store.record_progress(E2E, replacing(number), None, at=NOW)
        await store.record_result(NODE1, result())
        shown = store.snapshot().revision
        for path in place.folder.glob("run.db*"):
            (crashed.folder / path.name).write_bytes(path.read_bytes())
    async with crashed.opened() as again:
        assert shown <= again.snapshot().revision <= shown + 1


def test_the_plan_of_a_run_that_was_killed_in_a_transaction(place: World):
    """Without a write-ahead log its journal is hot, and a reader has to roll it back."""
    killed = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = TRUNCATE")
database.execute("PRAGMA cache_size = 1")
database.execute("PRAGMA cache_spill = 1")
database.execute("BEGIN IMMEDIATE")
database.execute("CREATE TABLE more (text)")
database.executemany("INSERT INTO more VALUES (?)", [("x" * 3000,)] * 500)
database.execute("UPDATE item SET state = 'lost'")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", killed, place.path], check=False)
    assert place.path.with_name("run.db-journal").stat().st_size > 0

    assert PLAN == database.stored_plan(place.path)


@on_loop
async def test_a_name_that_is_taken_by_a_directory(tmp_path: Path) -> None:
    """An error that names it, and nothing is changed."""
    (tmp_path / "run.db").mkdir()
    store = Store(tmp_path / "run.db")
    with pytest.raises(StoreError, match=r"run\.db"):
        await store.open_run(PLAN, now=NOW)
    await store.close()

    assert [] == list((tmp_path / "run.db").iterdir())
