"""Archives as people make them, and what becomes of the ones we do not take."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.run.entry import State
from reporter.run.upload import UploadOutcome
from tests.archives.tars import (
    file,
    folder,
    hard_link,
    header,
    link,
    pax,
    tgz,
)
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    Scene,
    held,
    play,
    refused,
    sha,
    stored,
)

GOOD = tgz(file(b"a.txt", b"A"), folder(b"d/"), file(b"d/b.txt", b"B"))
TREE = {"e2e/results/global/a.txt": b"A", "e2e/results/global/d/b.txt": b"B"}


def test_a6_unpacked(tmp_path: Path) -> None:
    """A6: the members, not the archive."""

    async def story(here: Scene) -> None:
        assert stored(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)
        record = here.store.entry(E2E).record
        assert (True, ()) == (record.archive, record.notes)

    done = play(tmp_path, story)

    assert TREE == done.files()
    assert [sha(GOOD)] == done.blobs()


def test_a7_a8_a_bad_archive_then_a_good_one(tmp_path: Path) -> None:
    """A7, A8: refused and retrying; then taken; then held. Only the good data is there."""
    bad = tgz(file(b"x.txt", b"X"), link(b"l", b"."), file(b"l/y", b"Y"))

    async def story(here: Scene) -> None:
        assert refused("not gzip") == await here.put(E2E, b'{"error":"x"}', ARCHIVE)
        assert (await here.put(E2E, bad, ARCHIVE)).outcome is UploadOutcome.REFUSED
        entry = here.store.entry(E2E)
        assert (2, True) == (entry.attempts, entry.retrying)
        assert stored(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)
        assert not here.store.entry(E2E).retrying
        assert held(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)

    done = play(tmp_path, story)

    assert TREE == done.files()
    assert [] == done.leftovers()


def test_a39_what_is_no_file_is_noted(tmp_path: Path) -> None:
    """A39, F2: every good member is there and readable, also those after a link."""
    body = tgz(
        file(b"first", b"1"),
        link(b"l", b"../../../etc/passwd"),
        header(b"device", 0, b"3"),
        header(b"block", 0, b"4"),
        header(b"pipe", 0, b"6"),
        hard_link(b"hard", b"first"),
        folder(b"locked", mode=0),
        file(b"locked/inside", b"2", mode=0),
        file(b"last", b"3"),
    )

    async def story(here: Scene) -> None:
        assert stored(sha(body)) == await here.put(E2E, body, ARCHIVE)
        notes = (
            "l: symbolic link to ../../../etc/passwd, not created",
            "device: character device, not created",
            "block: block device, not created",
            "pipe: FIFO, not created",
            "hard: hard link to first, not created",
        )
        assert notes == here.store.entry(E2E).record.notes

    done = play(tmp_path, story)

    home = "e2e/results/global"
    assert {
        f"{home}/first": b"1",
        f"{home}/locked/inside": b"2",
        f"{home}/last": b"3",
    } == done.files()


def test_a40_gzip_that_is_no_archive(tmp_path: Path) -> None:
    """A40: stored as it is under a name that does not claim to be one; else refused."""
    body = gzip.compress(b'{"a":1}')

    async def story(here: Scene) -> None:
        for name in ("", "a.tar.gz", "A.TGZ"):
            meta = replace(ARCHIVE, filename=name)
            assert refused("not a tar archive") == await here.put(E2E, body, meta)
        named = replace(ARCHIVE, filename="a.json.gz")
        assert refused("the gzip data is cut off") == await here.put(E2E, body[:-4], named)
        large = gzip.compress(os.urandom(1_000_000))
        assert refused("the gzip data is cut off") == await here.put(E2E, large[:-4], named)
        assert stored(sha(body)) == await here.put(E2E, body, named)
        assert not here.store.entry(E2E).record.archive

    done = play(tmp_path, story)

    assert {"e2e/results/global/a.json.gz": body} == done.files()
    assert [] == done.leftovers()


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"archive_max_members": 2}, "more than 2 members"),
        ({"archive_max_file_bytes": 9}, "a file is larger than 9 bytes"),
        ({"archive_max_bytes": 29}, "unpacks to more than 29 bytes"),
    ],
)
def test_a38_the_limits_are_those_of_the_settings(
    tmp_path: Path, limits: dict[str, int], reason: str
) -> None:
    """A38: refused, and nothing of it is left."""
    body = tgz(pax(comment=b"c"), *(file(b"f%d" % n, b"0123456789") for n in range(3)))

    async def story(here: Scene) -> None:
        assert refused(reason) == await here.put(E2E, body, ARCHIVE)
        assert here.store.entry(E2E).retrying

    done = play(tmp_path, story, limits=limits)

    assert ({}, [], []) == (done.files(), done.blobs(), done.leftovers())


def test_unpacking_that_takes_too_long(tmp_path: Path) -> None:
    """It ends at its deadline."""

    async def story(here: Scene) -> None:
        no = refused("reading the archive takes too long")
        assert no == await here.put(E2E, tgz(file(b"a", os.urandom(2**20))), ARCHIVE)

    play(tmp_path, story, limits={"archive_seconds": 0})


def test_a_worker_of_another_key_is_not_disturbed(tmp_path: Path) -> None:
    """A bad archive of one key leaves the result of another alone."""

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"1", JSON)
        await here.put(E2E, GOOD[:-20], ARCHIVE)
        assert State.RUNNING == here.store.entry(E2E).state

    assert {"sysd/results/node1/a.json": b"1"} == play(tmp_path, story).files()
