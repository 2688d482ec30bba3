"""C1-C3, C5-C7, C12: killed at each step; after a restart nothing is missing or in the way."""

from __future__ import annotations

import asyncio
import signal
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from reporter.run.entry import State
from reporter.run.record import Cause
from reporter.run.state import Phase
from tests.integration.aggregator.intake.crashing import GOOD, OPAQUE, DiskScene, crash, pack
from tests.integration.aggregator.intake.scene import ARCHIVE, JSON, NODE1, held, sha, stored

BODIES = {"opaque": (OPAQUE, JSON), "archive": (GOOD, ARCHIVE), "late": (OPAQUE, JSON)}
FILES = {
    "opaque": {"sysd/results/node1/a.json": OPAQUE},
    "late": {"sysd/results/node1/a.json": OPAQUE},
    "archive": {f"sysd/results/node1/d/{n}": b"%d" % n for n in range(5)},
}

BEFORE_THE_ROW = [
    pytest.param("opaque", "write", 1, id="C1-opaque-first-piece"),
    pytest.param("opaque", "write", 3, id="C1-opaque-during-the-body"),
    pytest.param("opaque", "sync", 1, id="C1-opaque-before-fsync"),
    pytest.param("archive", "write", 1, id="C1-archive-first-piece"),
    pytest.param("archive", "sync", 1, id="C1-archive-before-fsync"),
    pytest.param("opaque", "rename", 1, id="C2-opaque-before-rename"),
    pytest.param("opaque", "sync directory", 1, id="C2-opaque-after-rename"),
    pytest.param("archive", "sync directory", 1, id="C2-archive-after-rename"),
    pytest.param("opaque", "commit", 1, id="C3-opaque"),
    pytest.param("archive", "commit", 1, id="C3-archive"),
    pytest.param("late", "commit", 1, id="C7-before-the-commit"),
]
AFTER_THE_ROW = [
    pytest.param("opaque", "committed", 1, id="C5-opaque"),
    pytest.param("archive", "committed", 1, id="C5-archive"),
    pytest.param("late", "committed", 1, id="C7-committed"),
]


def restart(root: Path, story: Callable[[DiskScene], Awaitable[None]]) -> None:
    """What the next process finds."""

    async def told() -> None:
        here = DiskScene(root)
        await here.start()
        try:
            await story(here)
        finally:
            await here.stop()

    asyncio.run(told())


def unacknowledged(root: Path, story: str, step: str, nth: int) -> None:
    """Killed before the row: no trace, and the retry is taken."""
    body, meta = BODIES[story]
    assert (-signal.SIGKILL, "") == crash(root, story, step, nth)

    async def found(here: DiskScene) -> None:
        assert State.COMPLETE != here.store.entry(NODE1).state
        assert ([], []) == (here.leftovers(), here.blobs())
        assert not any("results" in name for name in here.files())
        assert (story == "late") is ("sysd/errors/node1/error.json" in here.files())
        assert stored(sha(body)) == await here.put(NODE1, body, meta)
        assert FILES[story] == here.files()

    restart(root, found)


def acknowledged(root: Path, story: str, step: str, nth: int) -> None:
    """Killed after the row: everything is there, and the retry is told so."""
    body, meta = BODIES[story]
    assert (-signal.SIGKILL, "") == crash(root, story, step, nth)

    async def found(here: DiskScene) -> None:
        assert ((), 0) == (here.recovered.lost, here.recovered.unknown)
        entry = here.store.entry(NODE1)
        assert (State.COMPLETE, sha(body)) == (entry.state, entry.record.digest)
        assert body == here.blob(body).read_bytes()
        assert (FILES[story], []) == (here.files(), here.leftovers())
        kept = here.files("superseded")
        assert (["sysd/node1/error.json"] if story == "late" else []) == list(kept)
        assert held(sha(body)) == await here.put(NODE1, body, meta)

    restart(root, found)


@pytest.mark.parametrize(("story", "step", "nth"), BEFORE_THE_ROW)
def test_killed_before_the_row(tmp_path: Path, story: str, step: str, nth: int) -> None:
    """C1-C3, C7."""
    unacknowledged(tmp_path, story, step, nth)


@pytest.mark.parametrize(("story", "step", "nth"), AFTER_THE_ROW)
def test_killed_after_the_row(tmp_path: Path, story: str, step: str, nth: int) -> None:
    """C5, C7: what the row promises is in the tarball; C4 and C8 had trees to be put in place."""
    acknowledged(tmp_path, story, step, nth)


@pytest.mark.parametrize("story", ["opaque", "archive"])
def test_c6_after_the_answer(tmp_path: Path, story: str) -> None:
    """C6: whoever was told so finds digest and bytes."""
    body, _ = BODIES[story]
    assert (0, f"stored {sha(body)}\n") == crash(tmp_path, story, "nothing", 1)

    async def found(here: DiskScene) -> None:
        assert sha(body) == here.store.entry(NODE1).record.digest
        assert [sha(body)] == here.blobs()
        assert FILES[story] == here.files()

    restart(tmp_path, found)


@pytest.mark.parametrize(
    ("step", "nth"),
    [
        ("package lose", 1),
        ("row of the lost", 1),
        ("package rename", 1),
    ],
)
def test_killed_while_a_damaged_result_is_given_up(tmp_path: Path, step: str, nth: int) -> None:
    """Found damaged, removed, written down: the next process loses it too, and only it."""
    assert -signal.SIGKILL == crash(tmp_path, "damaged", step, nth)[0]

    async def found(here: DiskScene) -> None:
        await pack(here)
        run = here.store.snapshot()
        assert (Phase.CLOSED, Cause.LOST) == (run.phase, run.entries[NODE1].record.cause)
        with tarfile.open(here.layout.output / run.tar.name) as packed:
            names = {name for name in packed.getnames() if name.endswith(".json")}
        results = {
            f"plugins/{name}/a.json" for name in ("e2e/results/global", "sysd/results/node2")
        }
        assert results | {"plugins/sysd/errors/node1/error.json"} <= names

    restart(tmp_path, found)


def finished(root: Path, step: str, nth: int) -> None:
    """Killed on the way to the tarball; the next process makes or finds it, once."""
    assert -signal.SIGKILL == crash(root, "tarball", step, nth)[0]

    async def found(here: DiskScene) -> None:
        store = here.store
        assert [] == here.leftovers()
        if store.phase is not Phase.CLOSED:
            assert Phase.POST_PROCESSING is store.phase
            tar = await here.finish.package(store.snapshot())
            await store.advance_run(Phase.CLOSED, tar=tar)
            await here.finish.clear(here.store.snapshot())
        (path,) = here.layout.output.glob("*.tar.gz")
        assert (path.name, sha(path.read_bytes())) == (
            store.snapshot().tar.name,
            store.snapshot().tar.sha256,
        )
        await here.finish.clear(here.store.snapshot())
        assert [] == here.blobs()

    restart(root, found)


@pytest.mark.parametrize(
    ("step", "nth"),
    [
        ("package member", 1),
        ("package member", 6),
        ("package rename", 1),
        ("package sync directory", 1),
        ("row of the tarball", 1),
        ("clear", 1),
    ],
)
def test_c12_on_the_way_to_the_tarball(tmp_path: Path, step: str, nth: int) -> None:
    """C12: before it, half written, not renamed, renamed, not synced, without a row, untidy."""
    finished(tmp_path, step, nth)
