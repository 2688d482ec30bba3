"""Refused bodies: the newest of each key, within caps."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from reporter.runtime import log
from tests.integration.uploads.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    NODE2,
    Scene,
    limited,
    play,
    refused,
    sha,
    too_large,
)

HEAD = 64 * 1024
SMALL = limited(quarantine_body_bytes=HEAD + 10)


def test_the_newest_of_a_key(tmp_path: Path) -> None:
    """Body and why; a second one takes the place of the first."""

    async def story(here: Scene) -> None:
        await here.put(E2E, b"first", ARCHIVE)
        await here.put(E2E, b"second", replace(ARCHIVE, serial="77"))

    done = play(tmp_path, story)

    found = done.files("quarantine")
    assert b"second" == found["e2e/global/body"]
    why = json.loads(found["e2e/global/why.json"])
    at = why.pop("at")
    assert at.startswith("2023-11-14T22:13:20.")
    assert {
        "key": "e2e/global",
        "reason": "not gzip",
        "sha256": sha(b"second"),
        "filename": "r.tar.gz",
        "content_type": "application/gzip",
        "certificate": "77",
        "size": 6,
        "kept": 6,
    } == why


def test_a_large_body_is_cut_to_its_head(tmp_path: Path) -> None:
    """Its size and digest are those of the whole."""
    body = os.urandom(HEAD + 1000)

    async def story(here: Scene) -> None:
        await here.put(NODE1, body[: HEAD + 10], ARCHIVE)
        await here.put(NODE2, body, ARCHIVE)

    done = play(tmp_path, story, limits=SMALL)

    found = done.files("quarantine")
    assert (body[: HEAD + 10], body[:HEAD]) == (found["sysd/node1/body"], found["sysd/node2/body"])
    why = json.loads(found["sysd/node2/why.json"])
    assert (HEAD + 1000, HEAD, sha(body)) == (why["size"], why["kept"], why["sha256"])


def test_over_the_cap_of_all_the_oldest_go(tmp_path: Path) -> None:
    """In the order in which they were refused, also after a restart."""
    limits = limited(quarantine_bytes=2500)
    scene = Scene(tmp_path)

    async def first(here: Scene) -> None:
        await here.put(NODE2, bytes(1000), ARCHIVE)
        await here.put(NODE1, bytes(1000), ARCHIVE)

    async def second(here: Scene) -> None:
        await here.put(E2E, bytes(1000), ARCHIVE)

    play(tmp_path, first, limits=limits)
    for number, node in enumerate(("node2", "node1")):
        # Two directories of one tick of the clock have no order.
        os.utime(scene.layout.quarantine / "sysd" / node, (number, number))
    done = play(tmp_path, second, limits=limits)

    assert {"e2e/global", "sysd/node1"} == {
        name.rpartition("/")[0] for name in done.files("quarantine")
    }


def test_over_the_cap_of_a_body(tmp_path: Path) -> None:
    """What went beyond the cap of results is among them."""

    async def story(here: Scene) -> None:
        assert too_large(10) == await here.put(E2E, b"0123456789ab", JSON)

    done = play(tmp_path, story, limits=limited(max_result_bytes=10))

    assert b"0123456789ab" == done.files("quarantine")["e2e/global/body"]


def test_no_room_for_it(tmp_path: Path) -> None:
    """The verdict is the same, the body is gone, and the log says so."""

    def no_room(name: str) -> None:
        if name == "quarantine":
            raise OSError(28, "No space left on device")

    async def story(here: Scene) -> None:
        with log.capture() as events:
            assert refused("not gzip") == await here.put(E2E, b"x", ARCHIVE)
        assert ["Refused upload could not be stored"] == [event["message"] for event in events]

    done = play(tmp_path, story, step=no_room)

    assert ({}, []) == (done.files("quarantine"), done.leftovers())
