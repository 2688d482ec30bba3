"""The tarball of a run has the members, in the order, with the modes and bytes that are on record.

The record was made when results were still unpacked on the disk before the tarball was. To record
a run that is new here, print what `members` gives for it.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from tests.archives.tars import OURS
from tests.integration.aggregator.intake.recorded import PLAN, RUNS, Sent
from tests.integration.aggregator.intake.scene import Scene, play

RECORD = json.loads(Path(__file__).with_name("recorded_runs.json").read_text())


def members(path: Path) -> list[list[str]]:
    """Name, type, mode and digest of the content of every member, in order."""
    found = []
    with tarfile.open(path, "r:gz") as archive:
        for info in archive:
            if info.name == "meta" or info.name.endswith(OURS):
                continue  # what it says is compared elsewhere
            content = archive.extractfile(info) if info.isfile() else None
            data = b"" if content is None else content.read()
            kind = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "directory"}[info.type]
            digest = hashlib.sha256(data).hexdigest() if info.isfile() else ""
            found.append([info.name, kind, f"{info.mode:o}", digest])
    return found


@pytest.mark.parametrize("name", RUNS)
def test_the_tarball_of_a_recorded_run(tmp_path: Path, name: str) -> None:
    async def story(here: Scene) -> None:
        for event in RUNS[name]:
            if isinstance(event, Sent):
                await here.put(event.key, event.body, event.meta)
            else:
                await here.give_up(event.key, event.text, event.cause)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, plan=PLAN)

    (path,) = done.layout.output.glob("*.tar.gz")
    assert RECORD[name] == members(path)


def test_every_run_is_on_record() -> None:
    assert list(RUNS) == list(RECORD)
    assert 19 == len(RUNS)
