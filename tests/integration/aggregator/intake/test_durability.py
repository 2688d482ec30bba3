"""What has to be on the disk before what: the order of fsyncs, renames, the row and the answer."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archives.tars import file, tgz
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    Scene,
    pieces,
    play,
    sha,
    stored,
)


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Steps in their order, with every fsync by the name of what was synced."""
    lines: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{fd}"))
        folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        lines.append(f"fsync {name.name if folder else name.suffix}")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return lines


def test_blob_row_answer(tmp_path: Path, journal: list[str]) -> None:
    """Body, its name, the row, then the answer; one fsync of each for an archive too."""
    durable = [
        "sync",
        "fsync .body",
        "rename",
        "sync directory",
        "fsync blobs",
        "commit",
        "committed",
    ]
    seen: list[str] = []

    async def story(here: Scene) -> None:
        journal.clear()
        await here.put(NODE1, b"1", JSON)
        await here.put(E2E, tgz(file(b"a"), file(b"b")), ARCHIVE)
        seen.extend(journal)

    play(tmp_path, story, step=journal.append)

    assert ["write", *durable, "write", *durable] == seen


def test_the_tarball_is_synced_before_and_after_its_rename(
    tmp_path: Path, journal: list[str]
) -> None:
    """The bytes, then that they are ours, then the name."""
    seen: list[str] = []

    async def story(here: Scene) -> None:
        journal.clear()
        await here.finish.package(here.store.snapshot())
        seen.extend(journal)

    play(tmp_path, story, step=journal.append)

    assert [
        *["package member"] * 4,  # two directories and two files, as there are no results
        "fsync .gz",
        "fsync .new",
        "fsync state",
        "package rename",
        "package sync directory",
        "fsync output",
    ] == seen


def test_a_tarball_that_is_there_is_synced_before_its_row(
    tmp_path: Path, journal: list[str]
) -> None:
    """Who renamed it may have been killed before its name was durable."""
    seen: list[str] = []

    async def story(here: Scene) -> None:
        await here.finish.package(here.store.snapshot())
        journal.clear()
        await here.finish.package(here.store.snapshot())
        seen.extend(journal)

    play(tmp_path, story, step=journal.append)

    assert ["package sync directory", "fsync output"] == seen


def test_cancelled_while_a_thread_writes(tmp_path: Path) -> None:
    """The descriptor is closed after the thread is done with it, not under its hands."""
    writing, go_on = threading.Event(), threading.Event()

    def wait(name: str) -> None:
        if name == "write" and not writing.is_set():
            writing.set()
            go_on.wait(60)

    async def story(here: Scene) -> None:
        chunks = pieces(*[bytes(300_000)] * 4)
        task = asyncio.create_task(here.send(E2E, JSON, chunks))
        await asyncio.to_thread(writing.wait, 60)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [] == here.leftovers()
        assert stored(sha(b"x")) == await here.put(E2E, b"x", JSON)

    play(tmp_path, story, step=wait)
