"""K10: the tarball of a run."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path
from typing import IO

import pytest

from reporter.aggregator.tarball.package import BodiesLost, PackageFailed
from reporter.run.plan import Key
from reporter.run.state import Phase, Tar
from tests.archives.tars import OURS, file, gnu_name, link, tgz
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    NODE2,
    REPORT,
    Scene,
    play,
    sha,
)

NAME = "run-1_202311142213.tar.gz"


def clock() -> float:
    """A fixed wall clock."""
    return 1_700_000_100.25


async def fill(here: Scene) -> None:
    """One of everything: archive with a link, opaque file, late result, refused body."""
    await here.put(E2E, b"refused", ARCHIVE)
    await here.put(E2E, tgz(file(b"d/a.txt", b"A"), link(b"l", b"d")), ARCHIVE)
    await here.put(NODE1, b"refused", ARCHIVE)
    await here.put(NODE1, b"1", JSON)
    logs = here.layout.podlogs / "space" / "pod-1" / "logs"
    logs.mkdir(parents=True)
    (logs / "main.txt").write_bytes(b"said")
    await here.give_up(NODE2, "pod gone")
    await here.put(NODE2, b"2", JSON)
    await here.store.advance_run(Phase.POST_PROCESSING)


def members(path: Path) -> dict[str, tuple[bytes, int, bytes]]:
    """Name, type, mode and content of each member."""
    found = {}
    with tarfile.open(path, "r:gz") as archive:
        for info in archive:
            content = archive.extractfile(info) if info.isfile() else None
            found[info.name] = (info.type, info.mode, content.read() if content else b"")
    return found


def test_directories_that_are_links_to_others(tmp_path: Path) -> None:
    """An operator may put them on another volume by a link."""
    for name in ("state", "output"):
        (tmp_path / "volume" / name).mkdir(parents=True)
        (tmp_path / name).symlink_to(tmp_path / "volume" / name)

    async def story(here: Scene) -> None:
        await fill(here)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, wall=clock)

    (path,) = done.layout.output.glob("*.tar.gz")
    assert b"A" == members(path)["plugins/e2e/results/global/d/a.txt"][2]


def test_k10_the_tarball(tmp_path: Path) -> None:
    """K10: name, layout, no `./`, no links; superseded beside."""
    tars: list[Tar] = []

    async def story(here: Scene) -> None:
        await fill(here)
        tars.append(await here.finish.package(here.store.snapshot()))

    done = play(tmp_path, story, wall=clock)

    (path,) = done.layout.output.glob("*.tar.gz")
    data = path.read_bytes()
    created = "2023-11-14T22:15:00.250000Z"
    assert [Tar(NAME, created, hashlib.sha256(data).hexdigest(), len(data))] == tars
    assert re.fullmatch(r"run-1_\d{12}\.tar\.gz", path.name)
    found = members(path)
    folders = [name for name, (kind, _, _) in found.items() if kind == tarfile.DIRTYPE]
    assert {
        "meta",
        "plugins",
        "plugins/e2e",
        "plugins/e2e/results",
        "plugins/e2e/results/global",
        "plugins/e2e/results/global/d",
        "plugins/sysd",
        "plugins/sysd/errors",  # where the error was before the result came
        "plugins/sysd/results",
        "plugins/sysd/results/node1",
        "plugins/sysd/results/node2",
        "podlogs",
        "podlogs/space",
        "podlogs/space/pod-1",
        "podlogs/space/pod-1/logs",
        "superseded",
        "superseded/sysd",
        "superseded/sysd/node2",
    } == set(folders)
    assert {
        "plugins/e2e/results/global/d/a.txt": b"A",
        "plugins/sysd/results/node1/a.json": b"1",
        "plugins/sysd/results/node2/a.json": b"2",
    } == {
        name: content
        for name, (kind, _, content) in found.items()
        if kind == tarfile.REGTYPE and name.startswith("plugins/") and not name.endswith(OURS)
    }
    assert b'{"plugins": ["e2e", "sysd"]}' == found["meta/info.json"][2]
    assert {"plugins/e2e/sonobuoy_results.yaml", "plugins/sysd/sonobuoy_results.yaml"} < set(found)
    assert b"said" == found["podlogs/space/pod-1/logs/main.txt"][2]
    assert "superseded/sysd/node2/error.json" in found
    assert {tarfile.DIRTYPE, tarfile.REGTYPE} == {kind for kind, _, _ in found.values()}
    assert {(tarfile.DIRTYPE, 0o755), (tarfile.REGTYPE, 0o644)} == {
        (kind, mode) for kind, mode, _ in found.values()
    }
    assert list(found) == sorted(found, key=lambda name: name.split("/")[0])


def test_only_what_is_there_is_beside(tmp_path: Path) -> None:
    """A run without trouble has only plugins and their names; an empty one has that too."""

    async def story(here: Scene) -> None:
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story)

    assert ["meta", "meta/info.json", "meta/plan.json", "plugins"] == list(
        members(done.layout.output / NAME)
    )


def test_it_can_be_made_twice(tmp_path: Path) -> None:
    """C12: renamed but without a row: measured again, not made again; no second one."""
    tars: list[Tar] = []

    async def story(here: Scene) -> None:
        await fill(here)
        tars.append(await here.finish.package(here.store.snapshot()))
        tars.append(await here.finish.package(here.store.snapshot()))

    done = play(tmp_path, story, wall=clock)

    assert tars[0] == tars[1]
    assert [NAME] == [path.name for path in done.layout.output.glob("*.tar.gz")]


def test_another_run_has_the_name(tmp_path: Path) -> None:
    """The same run, minute and directory, and a state that knows nothing of it: left as it is."""
    tars: list[Tar] = []

    async def story(here: Scene) -> None:
        await fill(here)
        (here.layout.output / NAME).write_bytes(b"of another run")
        tars.append(await here.finish.package(here.store.snapshot()))
        tars.append(await here.finish.package(here.store.snapshot()))

    done = play(tmp_path, story, wall=clock)

    name = NAME.replace(".tar.gz", "-2.tar.gz")
    assert [name] * 2 == [tar.name for tar in tars]
    assert {NAME, name} == {path.name for path in done.layout.output.glob("*.tar.gz")}
    assert b"of another run" == (done.layout.output / NAME).read_bytes()
    assert b"A" == members(done.layout.output / name)["plugins/e2e/results/global/d/a.txt"][2]


def test_another_run_has_taken_the_name(tmp_path: Path) -> None:
    """The name was noted, and this process killed before its tarball had it."""
    tars: list[Tar] = []

    async def story(here: Scene) -> None:
        await fill(here)
        for _ in range(2):
            tars.append(await here.finish.package(here.store.snapshot()))
            (here.layout.output / NAME).write_bytes(b"of another run")

    done = play(tmp_path, story, wall=clock)

    assert [NAME, NAME.replace(".tar.gz", "-2.tar.gz")] == [tar.name for tar in tars]
    assert b"of another run" == (done.layout.output / NAME).read_bytes()


async def packed_without(here: Scene) -> list[Key]:
    """Pack, and again without the results that were damaged; their keys."""
    with pytest.raises(BodiesLost) as found:
        await here.finish.package(here.store.snapshot())
    for key in found.value.keys:
        assert await here.store.lose(key, "damaged", at=clock())
    await here.finish.package(here.store.snapshot())
    return sorted(found.value.keys)


def test_every_damaged_body_goes_at_once(tmp_path: Path) -> None:
    """Of two results and of a report that was replaced; the sound one and the places stay."""
    sound = tgz(file(b"a.txt", b"A"))

    async def story(here: Scene) -> None:
        await here.put(E2E, sound, ARCHIVE)
        await here.put(NODE1, b'{"error": "x"}', REPORT)
        await here.put(NODE1, b"1", JSON)
        await here.put(NODE2, b"2", JSON)
        for body in (b"1", b"2", b'{"error": "x"}'):
            here.blob(body).write_bytes(b"?")
        await here.store.advance_run(Phase.POST_PROCESSING)
        assert [NODE1, NODE2] == await packed_without(here)
        assert [sha(sound)] == here.blobs()

    done = play(tmp_path, story)

    found = members(done.layout.output / NAME)
    assert b"A" == found["plugins/e2e/results/global/a.txt"][2]
    for path in ("plugins/sysd/errors/node1", "plugins/sysd/errors/node2", "superseded/sysd/node1"):
        assert f"{path}/error.json" in found


class Worn:
    """A blob on a disk that does not read it."""

    def __init__(self, file: IO[bytes], times: list[int]) -> None:
        self._file, self._times = file, times

    def __enter__(self) -> Worn:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        if self._times:
            raise OSError(self._times.pop(), "Input/output error")
        return self._file.read(size)

    def seek(self, at: int) -> int:
        return self._file.seek(at)


@pytest.mark.parametrize("lasting", [False, True])
def test_a_body_that_cannot_be_read(tmp_path: Path, monkeypatch, lasting: bool) -> None:
    """Only for good it is lost; else packing is tried again, and it is in the tarball."""

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"1", JSON)
        errors = [errno.EIO]
        real = here.bodies.open
        monkeypatch.setattr(here.bodies, "open", lambda digest: Worn(real(digest), errors))
        if lasting:

            def measured(path: Path, stopping: object) -> None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            monkeypatch.setattr("reporter.aggregator.tarball.finish.measure", measured)
            assert [NODE1] == await packed_without(here)
            return
        with pytest.raises(PackageFailed, match="cannot be read: Input/output error"):
            await here.finish.package(here.store.snapshot())
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story)

    path = f"plugins/sysd/{'errors/node1/error.json' if lasting else 'results/node1/a.json'}"
    assert path in members(done.layout.output / NAME)


@pytest.mark.parametrize("step", ["package member", "package rename", "package sync directory"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_leaves_no_half_file(tmp_path: Path, step: str, code: int) -> None:
    """F29: nothing of it, everything it is made from; with the disk well again it is made."""
    broken = True

    def trouble(name: str) -> None:
        if name == step and broken:
            raise OSError(code, os.strerror(code))

    async def story(here: Scene) -> None:
        nonlocal broken
        await fill(here)
        before = (here.files(), here.blobs())
        with pytest.raises(PackageFailed, match="the tarball cannot be made: "):
            await here.finish.package(here.store.snapshot())
        assert [] == here.leftovers()
        assert [] == list(here.layout.output.glob("*.tar.gz"))
        assert before == (here.files(), here.blobs())
        broken = False
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, step=trouble)

    assert b"A" == members(done.layout.output / NAME)["plugins/e2e/results/global/d/a.txt"][2]


def test_a_tarball_whose_name_may_not_last_is_made_again(tmp_path: Path) -> None:
    """A second fsync may say nothing of what the first one failed at: only a new rename counts."""
    broken, steps = False, list[str]()

    def trouble(name: str) -> None:
        steps.append(name)
        if name == "package sync directory" and broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def story(here: Scene) -> None:
        nonlocal broken
        await fill(here)
        first = await here.finish.package(here.store.snapshot())
        broken = True
        with pytest.raises(PackageFailed, match="the tarball cannot be made: "):
            await here.finish.package(here.store.snapshot())
        broken = False
        steps.clear()
        again = await here.finish.package(here.store.snapshot())
        assert (first.name, first.sha256) == (again.name, again.sha256)

    play(tmp_path, story, step=trouble)

    assert ["package rename", "package sync directory"] == steps[-2:]


def test_stopped_while_it_is_made(tmp_path: Path) -> None:
    """A stop does not wait for it, and nothing of it is left."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(name: str) -> None:
        if name == "package member":
            begun.set()
            go_on.wait(60)

    async def story(here: Scene) -> None:
        await fill(here)
        packing = asyncio.create_task(here.finish.package(here.store.snapshot()))
        await asyncio.to_thread(begun.wait, 60)
        here.finish.stop()
        closing = asyncio.create_task(here.intake.close())
        await asyncio.sleep(0)
        go_on.set()
        await closing
        with pytest.raises(PackageFailed, match="stopped"):
            await packing

    done = play(tmp_path, story, step=wait)

    assert ([], []) == (done.leftovers(), list(done.layout.output.glob("*.tar.gz")))


def test_a_caller_that_gives_up_does_not_stop_uploads(tmp_path: Path) -> None:
    """Its cancellation reaches nobody else."""

    async def story(here: Scene) -> None:
        upload = asyncio.create_task(here.put(NODE1, os.urandom(2**20), JSON))
        await asyncio.sleep(0)
        packing = asyncio.create_task(here.finish.package(here.store.snapshot()))
        await asyncio.sleep(0)
        packing.cancel()
        assert await upload
        with pytest.raises(asyncio.CancelledError):
            await packing

    play(tmp_path, story)


@pytest.mark.skipif(shutil.which("tar") is None, reason="no tar program on this machine")
def test_names_of_every_kind_can_be_read_by_the_tar_program(tmp_path: Path) -> None:
    """Long, deep, not UTF-8, with line breaks: names come out as they went in."""
    names = [
        b"n" * 255,
        b"/".join([b"d" * 100] * 30) + b"/f",
        b"\xff\xfe",
        "ü".encode(),
        b"a\nb",
        b" ",
    ]
    parts = [part for name in names for part in (gnu_name(name), file(b"x", name[:9]))]

    async def story(here: Scene) -> None:
        await here.put(E2E, tgz(*parts), ARCHIVE)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story)
    out = tmp_path / "out"
    out.mkdir()
    command = ["tar", "-xzf", str(done.layout.output / NAME), "-C", str(out)]
    subprocess.run(command, check=True)

    top = os.fsencode(out / "plugins/e2e/results/global")
    for name in names:
        with open(os.path.join(top, name), "rb") as found:
            assert name[:9] == found.read()


def test_a_large_file_keeps_its_content(tmp_path: Path) -> None:
    """More than one piece."""
    body = os.urandom(3_000_001)

    async def story(here: Scene) -> None:
        await here.put(NODE1, body, JSON)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story)

    assert body == members(done.layout.output / NAME)["plugins/sysd/results/node1/a.json"][2]


@pytest.mark.parametrize("keep", [True, False])
def test_what_goes_afterwards(tmp_path: Path, keep: bool) -> None:
    """Blobs go once the tarball is durable, unless they are to be kept."""

    async def story(here: Scene) -> None:
        await fill(here)
        await here.finish.package(here.store.snapshot())
        await here.finish.clear(here.store.snapshot())
        await here.finish.clear(here.store.snapshot())

    done = play(tmp_path, story, keep_blobs=keep)

    assert keep is bool(done.blobs())
    assert (done.layout.output / NAME).exists()


SNAPSHOT = tgz(
    file(b"resources/ns/a/core_v1_pods.json", b"{}"),
    file(b"serverversion.json", b"{}"),
    file(b"podlogs/space/pod-1/logs/main.txt", b"ours"),
    file(b"podlogs/space/pod-1/logs/other.txt", b"other"),
    file(b"plugins/e2e/strange.txt", b"strange"),
)


@pytest.mark.parametrize("taken_by", ["", "e2e", "sysd"])
def test_a_snapshot_of_the_cluster_is_at_the_top(tmp_path: Path, taken_by: str) -> None:
    """Of the one plugin that took it, and of that only what a snapshot has."""

    async def story(here: Scene) -> None:
        await here.put(E2E, SNAPSHOT, ARCHIVE)
        logs = here.layout.podlogs / "space" / "pod-1" / "logs"
        logs.mkdir(parents=True)
        (logs / "main.txt").write_bytes(b"said")
        await here.give_up(NODE1, "pod gone")
        await here.give_up(NODE2, "pod gone")
        await here.store.advance_run(Phase.POST_PROCESSING)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path, story, wall=clock, taken_by=taken_by)
    (path,) = done.layout.output.glob("*.tar.gz")
    found = members(path)
    home = "plugins/e2e/results/global/"
    at, elsewhere = ("", home) if taken_by == "e2e" else (home, "")

    assert f"{at}resources/ns/a/core_v1_pods.json" in found
    assert f"{at}serverversion.json" in found
    assert f"{elsewhere}serverversion.json" not in found
    # What the run itself has taken counts, and nothing else gets out of its place.
    assert b"said" == found["podlogs/space/pod-1/logs/main.txt"][2]
    assert f"{at}podlogs/space/pod-1/logs/other.txt" in found
    assert f"{home}plugins/e2e/strange.txt" in found
    with tarfile.open(path, "r:gz") as archive:
        files = [member.name for member in archive if member.isfile()]
    assert len(files) == len(set(files))
