"""F1, A10, A11: hostile archives. What lies outside is compared before and after each."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from reporter.aggregator.uploads import Refused, Stored
from tests.archives.hostile import NAMES, hostile
from tests.archives.tars import file, hard_link, tgz
from tests.integration.uploads.scene import ARCHIVE, E2E, NODE1, Scene, everything, play, sha

OURS = ("state", "output")


def outside_of(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything that does not belong to the aggregator."""
    return {
        name: found for name, found in everything(root).items() if name.split("/")[0] not in OURS
    }


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside ours with things one could want to change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "target").write_bytes(b"untouched")
    (folder / "link").symlink_to("target")
    return folder


def test_there_are_forty() -> None:
    """At least forty, each with a name of its own."""
    assert 40 <= len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_hostile(tmp_path: Path, outside: Path, name: str) -> None:
    """F1: refused without a trace, or inside; no link, no device, no other key's data changed."""
    body, outcome = hostile(str(outside).encode())[name]
    before = outside_of(tmp_path)

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"neighbour")
        verdict = await here.put(E2E, body, ARCHIVE)
        expected = Refused(outcome) if isinstance(outcome, str) else Stored(sha(body))
        assert expected == verdict
        assert isinstance(outcome, str) is here.store.entry(E2E).retrying

    done = play(tmp_path, story)

    assert before == outside_of(tmp_path)
    assert [] == done.leftovers()
    files = {} if isinstance(outcome, str) else outcome
    expected = {f"e2e/results/global/{path}": data for path, data in files.items()}
    assert {"sysd/results/node1/result": b"neighbour", **expected} == done.files()
    for path, (mode, _, _) in everything(done.layout.output).items():
        assert stat.S_IFMT(mode) in (stat.S_IFREG, stat.S_IFDIR), path
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path


def test_a10(tmp_path: Path, outside: Path) -> None:
    """A10: refused; stored without its slash; not created but noted."""
    before = outside_of(tmp_path)

    async def story(here: Scene) -> None:
        climbing = tgz(file(b"../../../slip.txt", b"1"))
        refused = Refused("a member's name is not allowed: ../../../slip.txt")
        assert refused == await here.put(E2E, climbing, ARCHIVE)
        body = tgz(file(b"/abs.txt", b"1"), hard_link(b"h", b"abs.txt"))
        assert Stored(sha(body)) == await here.put(E2E, body, ARCHIVE)
        notes = ("h: hard link to abs.txt, not created",)
        assert notes == here.store.entry(E2E).record.notes

    done = play(tmp_path, story)

    assert {"e2e/results/global/abs.txt": b"1"} == done.files()
    assert before == outside_of(tmp_path)
