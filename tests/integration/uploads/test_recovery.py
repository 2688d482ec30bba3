"""What a start makes of what it finds."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from reporter.aggregator.uploads import PackageFailed, Recovered, Stored
from reporter.core.run.entry import State
from reporter.core.run.record import Cause
from reporter.core.run.snapshot import Phase
from reporter.runtime import log
from tests.archives.tars import file, tgz
from tests.integration.uploads.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    NODE2,
    NOW,
    Scene,
    play,
    sha,
)

GOOD = tgz(file(b"a", b"A"))


def restart(scene: Scene, story: Callable[[Scene], Awaitable[None]], *, quiet: bool = True) -> None:
    """Start again on what is there."""

    async def told() -> None:
        with log.capture() if quiet else contextlib.nullcontext():
            async with scene.open():
                await story(scene)

    asyncio.run(told())


@pytest.fixture
def stopped(tmp_path: Path) -> Scene:
    """An aggregator that has an opaque result, an archive and an error, and stopped cleanly."""

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"1", JSON)
        await here.put(E2E, GOOD, ARCHIVE)
        await here.give_up(NODE2, "pod gone")

    return play(tmp_path, story)


def killed(scene: Scene) -> None:
    """As if the process had not come to its end."""
    scene.layout.clean_stop.unlink()


def test_after_a_clean_stop_trees_are_taken_as_they_are(stopped: Scene) -> None:
    """A tree is not made again: a mark put into it is still there."""
    mark = stopped.layout.result(E2E) / "mark"
    mark.touch()

    async def story(here: Scene) -> None:
        assert Recovered((), 0, 0, rebuilt=False) == here.recovered
        assert not here.layout.clean_stop.exists()

    restart(stopped, story)

    assert mark.exists()


@pytest.mark.parametrize("how", ["killed", "another-boot"])
def test_otherwise_they_are_made_anew(stopped: Scene, how: str) -> None:
    """A killed process, or a machine that was restarted since: pages may not be on the disk."""
    before = stopped.files()
    if how == "killed":
        killed(stopped)
    else:
        stopped.layout.clean_stop.write_bytes(b"another boot\n")
    (stopped.layout.result(NODE1) / "a.json").unlink()
    (stopped.layout.result(E2E) / "a").write_bytes(b"")
    stopped.layout.error(NODE2).joinpath("error.json").unlink()

    async def story(here: Scene) -> None:
        assert here.recovered.rebuilt
        assert before == here.files()

    restart(stopped, story)


def test_c8_error_json_is_made_from_the_row(stopped: Scene) -> None:
    """C8: the row was written, the file was not."""
    killed(stopped)
    (stopped.layout.error(NODE2) / "error.json").unlink()
    stopped.layout.error(NODE2).rmdir()

    async def story(here: Scene) -> None:
        found = json.loads(here.files()["sysd/errors/node2/error.json"])
        assert {"error": "pod gone", "cause": "pod_failed"} == found

    restart(stopped, story)


def test_debris_is_swept(stopped: Scene) -> None:
    """Staged bodies and trees, blobs that no row knows, trees of keys that no plan has."""
    killed(stopped)
    layout = stopped.layout
    (layout.staging / "7.body").write_bytes(b"half")
    (layout.unfinished / "8.tree" / "deep").mkdir(parents=True)
    (layout.blobs / sha(b"unknown")).write_bytes(b"unknown")
    (layout.plugins / "old" / "results" / "global").mkdir(parents=True)
    (layout.superseded / "e2e" / "global").mkdir(parents=True)

    async def story(here: Scene) -> None:
        assert Recovered((), 1, 2, rebuilt=True) == here.recovered
        assert [] == here.leftovers()
        assert {sha(b"1"), sha(GOOD)} == here.blobs()
        assert [] == list(layout.plugins.glob("old/results/*"))
        assert not layout.replaced(E2E).exists()

    restart(stopped, story)


@pytest.mark.parametrize("how", ["gone", "too-short"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_row_without_its_bytes(stopped: Scene, how: str, clean: bool) -> None:
    """Failed with cause `lost`; a new upload is welcome and is a result like any other."""
    if not clean:
        killed(stopped)
    blob = stopped.layout.blob(sha(b"1"))
    blob.unlink()
    if how == "too-short":
        blob.write_bytes(b"")

    async def story(here: Scene) -> None:
        assert (NODE1,) == here.recovered.lost
        entry = here.store.entry(NODE1)
        assert (State.FAILED, Cause.LOST) == (entry.state, entry.record.cause)
        found = json.loads(here.files()["sysd/errors/node1/error.json"])
        assert "the bytes of this result are gone" == found["error"]
        assert "sysd/results/node1/a.json" not in here.files()
        assert Stored(sha(b"1")) == await here.put(NODE1, b"1", JSON)
        assert b"1" == here.files()["sysd/results/node1/a.json"]

    restart(stopped, story)


def test_two_keys_lose_the_bytes_they_share(tmp_path: Path) -> None:
    """Both are told."""

    async def first(here: Scene) -> None:
        await here.put(NODE1, b"1", JSON)
        await here.put(NODE2, b"1", JSON)

    scene = play(tmp_path, first)
    scene.layout.blob(sha(b"1")).unlink()

    async def story(here: Scene) -> None:
        assert (NODE1, NODE2) == here.recovered.lost

    restart(scene, story)


def test_shared_bytes_survive_what_comes_after_a_restart(tmp_path: Path) -> None:
    """Who holds a blob is known again."""

    async def first(here: Scene) -> None:
        await here.put(NODE1, b"1", JSON)

    scene = play(tmp_path, first)

    async def story(here: Scene) -> None:
        await here.put(E2E, b"2", JSON)
        await here.put(E2E, b"1", JSON)
        assert {sha(b"1"), sha(b"2")} == here.blobs()

    restart(scene, story)


def test_the_bytes_of_a_replaced_report_are_gone(tmp_path: Path) -> None:
    """The result stands; of the report the row is left."""
    report = b'{"error":"x"}'

    async def first(here: Scene) -> None:
        await here.put(NODE1, report)
        await here.put(NODE1, b"1", JSON)

    scene = play(tmp_path, first)
    killed(scene)
    scene.layout.blob(sha(report)).unlink()

    async def story(here: Scene) -> None:
        assert () == here.recovered.lost
        assert {"sysd/results/node1/a.json": b"1"} == here.files()
        kept = json.loads(here.files("superseded")["sysd/node1/error.json"])
        assert {"error": "x", "cause": "worker_error"} == kept

    restart(scene, story)


def test_bytes_that_have_changed(stopped: Scene) -> None:
    """The start does not fail over them; the tree cannot be made, and the log says so."""
    killed(stopped)
    blob = stopped.layout.blob(sha(GOOD))
    blob.write_bytes(bytes(len(GOOD)))

    async def story(here: Scene) -> None:
        assert [] == here.leftovers()
        with pytest.raises(PackageFailed, match="not gzip"):
            await here.intake.package(here.store.snapshot())

    with log.capture() as events:
        restart(stopped, story, quiet=False)
    assert ["Tree is not in place"] == [event["message"] for event in events]


def test_c12_a_finished_run_only_tidies_up(tmp_path: Path) -> None:
    """C12: tarball and row are there, blobs and trees not yet gone."""

    async def first(here: Scene) -> None:
        for key in (NODE1, NODE2, E2E):
            await here.put(key, b"1", JSON)
        await here.store.advance_run(Phase.POST_PROCESSING)
        tar = await here.intake.package(here.store.snapshot())
        await here.store.advance_run(Phase.CLOSED, tar=tar)

    scene = play(tmp_path, first)
    assert set() != scene.blobs()

    async def story(here: Scene) -> None:
        assert () == here.recovered.lost
        assert (set(), {}) == (here.blobs(), here.files())
        assert State.COMPLETE == here.store.entry(E2E).state

    restart(scene, story)
    restart(scene, story)


def test_nothing_is_noted_without_a_recovery(tmp_path: Path) -> None:
    """A start that was given up says nothing about the trees."""
    scene = Scene(tmp_path)

    async def told() -> None:
        async with scene.open(recover=False):
            assert NOW > 0

    asyncio.run(told())
    assert not scene.layout.clean_stop.exists()
