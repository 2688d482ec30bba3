"""What a start makes of what it finds."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.aggregator.intake import intake
from reporter.aggregator.intake.intake import Recovered
from reporter.aggregator.tarball.package import BodiesLost
from reporter.common import log
from reporter.run.entry import State
from reporter.run.plan import Key
from reporter.run.record import Cause
from reporter.run.state import Phase
from tests.archives.tars import file, tgz
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    NODE2,
    Scene,
    play,
    sha,
    stored,
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


def test_what_workers_say_of_themselves_has_a_limit_for_the_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts after a restart, too. The results are taken all the same."""
    monkeypatch.setattr(intake, "_METADATA_OF_ALL", 40)
    said = replace(JSON, metadata='{"version": "1.4.0"}')
    dropped = {"metadata_dropped": "more than 1 MiB in this run"}

    def kept(here: Scene, key: Key) -> object:
        record = here.store.entry(key).record
        assert record is not None
        return json.loads(record.metadata)

    async def first(here: Scene) -> None:
        await here.put(NODE1, b"1", said)
        await here.put(E2E, b"2", said)

    async def second(here: Scene) -> None:
        assert stored(sha(b"3")) == await here.put(NODE2, b"3", said)
        assert [{"version": "1.4.0"}] * 2 + [dropped] == [
            kept(here, key) for key in (NODE1, E2E, NODE2)
        ]

    restart(play(tmp_path, first), second)


def test_debris_is_swept(stopped: Scene) -> None:
    """Staged bodies, what was half made for the output directory, blobs that no row knows."""
    layout = stopped.layout
    (layout.staging / "7.body").write_bytes(b"half")
    (layout.unfinished / "8.tree" / "deep").mkdir(parents=True)
    (layout.blobs / f"{sha(b'unknown')}-0").write_bytes(b"unknown")

    async def story(here: Scene) -> None:
        assert Recovered((), 1, 2) == here.recovered
        assert [] == here.leftovers()
        assert sorted([sha(b"1"), sha(GOOD)]) == here.blobs()

    restart(stopped, story)


@pytest.mark.parametrize("how", ["gone", "too-short"])
def test_a_row_without_its_bytes(stopped: Scene, how: str) -> None:
    """Failed with cause `lost`; a new upload is welcome and is a result like any other."""
    blob = stopped.blob(b"1")
    blob.unlink()
    if how == "too-short":
        blob.write_bytes(b"")

    async def story(here: Scene) -> None:
        assert (NODE1,) == here.recovered.lost
        entry = here.store.entry(NODE1)
        assert (State.FAILED, Cause.LOST) == (entry.state, entry.record.cause)
        found = json.loads(here.files()["sysd/errors/node1/error.json"])
        assert "the stored result is missing or incomplete" == found["error"]
        assert "sysd/results/node1/a.json" not in here.files()
        assert stored(sha(b"1")) == await here.put(NODE1, b"1", JSON)
        assert b"1" == here.files()["sysd/results/node1/a.json"]

    restart(stopped, story)


def test_the_bytes_of_a_replaced_report_are_gone(tmp_path: Path) -> None:
    """The result stands; of the report the row is left."""
    report = b'{"error":"x"}'

    async def first(here: Scene) -> None:
        await here.put(NODE1, report)
        await here.put(NODE1, b"1", JSON)

    scene = play(tmp_path, first)
    scene.blob(report).unlink()

    async def story(here: Scene) -> None:
        assert () == here.recovered.lost
        assert {"sysd/results/node1/a.json": b"1"} == here.files()
        kept = json.loads(here.files("superseded")["sysd/node1/error.json"])
        assert {"error": "x", "cause": "worker_error"} == kept

    restart(scene, story)


def test_bytes_that_have_changed(stopped: Scene) -> None:
    """The start does not read them; packing does."""
    blob = stopped.blob(GOOD)
    blob.write_bytes(bytes(len(GOOD)))

    async def story(here: Scene) -> None:
        assert ([], ()) == (here.leftovers(), here.recovered.lost)
        with pytest.raises(BodiesLost):
            await here.finish.package(here.store.snapshot())

    restart(stopped, story)


def test_c12_a_finished_run_only_tidies_up(tmp_path: Path) -> None:
    """C12: tarball and row are there, blobs not yet gone."""

    async def first(here: Scene) -> None:
        for key in (NODE1, NODE2, E2E):
            await here.put(key, b"1", JSON)
        await here.store.advance_run(Phase.POST_PROCESSING)
        tar = await here.finish.package(here.store.snapshot())
        await here.store.advance_run(Phase.CLOSED, tar=tar)

    scene = play(tmp_path, first)
    assert [] != scene.blobs()

    async def story(here: Scene) -> None:
        assert () == here.recovered.lost
        await here.finish.clear(here.store.snapshot())
        assert [] == here.blobs()
        assert State.COMPLETE == here.store.entry(E2E).state

    restart(scene, story)
    restart(scene, story)
