"""Disks that are full or broken: a clean answer, nothing acknowledged that is not there."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reporter.common import log
from reporter.ledger import StoreError, StoreFull, writer
from reporter.run.entry import State
from reporter.run.upload import UploadConclusion, UploadOutcome
from tests.archives.tars import file, link, tgz
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    DISK_FULL,
    E2E,
    JSON,
    NODE1,
    NODE2,
    Scene,
    play,
    sha,
    stored,
    unwritten,
)

GOOD = tgz(file(b"a", b"A"), file(b"b", b"B"))


class DiskTrouble:
    """Makes a step fail from its nth time on, until it is over."""

    def __init__(self, name: str, error: int, nth: int = 1) -> None:
        self.name, self.error, self.left = name, error, nth
        self.over = False
        self.struck = 0

    def __call__(self, name: str) -> None:
        if name == self.name and not self.over:
            self.left -= 1
            if self.left <= 0:
                self.struck += 1
                raise OSError(self.error, os.strerror(self.error))


BEFORE_THE_ROW = ["write", "sync", "rename", "sync directory"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("step", BEFORE_THE_ROW)
def test_a46_before_the_row(tmp_path: Path, step: str, code: int) -> None:
    """A46: 507 or 500, earlier data intact; the retry is taken without a restart."""
    trouble = DiskTrouble(step, code)
    trouble.over = True

    async def story(here: Scene) -> None:
        await here.put(NODE1, b"earlier", JSON)
        trouble.over = False
        verdict = await here.put(E2E, GOOD, ARCHIVE)
        full = code in (errno.ENOSPC, errno.EDQUOT)
        expected = DISK_FULL if full else unwritten(os.strerror(code))
        assert expected == verdict
        assert (State.RUNNING, 1) == (here.store.entry(E2E).state, here.store.entry(E2E).attempts)
        assert [sha(b"earlier")] == here.blobs()
        assert {"sysd/results/node1/a.json": b"earlier"} == here.files()
        assert [] == here.leftovers()
        trouble.over = True
        assert stored(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)

    done = play(tmp_path, story, step=trouble)

    assert 1 <= trouble.struck
    assert {"e2e/results/global/a", "e2e/results/global/b", "sysd/results/node1/a.json"} == set(
        done.files()
    )


@pytest.mark.parametrize("nth", [2, 3])
def test_a46_in_the_middle(tmp_path: Path, nth: int) -> None:
    """A46: some of the body is written already."""
    trouble = DiskTrouble("write", errno.ENOSPC, nth)
    body = os.urandom(3_000_000)
    chunks = [body[at : at + 65536] for at in range(0, len(body), 65536)]

    async def story(here: Scene) -> None:
        assert DISK_FULL == await here.put(E2E, b"", JSON, *chunks)
        assert ([], []) == (here.leftovers(), here.blobs())
        trouble.over = True
        assert stored(sha(body)) == await here.put(E2E, b"", JSON, *chunks)

    play(tmp_path, story, step=trouble)


@pytest.mark.parametrize(
    ("error", "verdict", "kept"),
    [
        pytest.param(StoreFull("full"), DISK_FULL, False, id="full"),
        # Whether the row is on the disk is not known then, so the bytes stay until a restart.
        pytest.param(StoreError("broken"), unwritten("broken"), True, id="broken"),
    ],
)
@pytest.mark.parametrize("body", [b"opaque", GOOD])
def test_a46_at_the_commit(
    tmp_path: Path, error: StoreError, verdict: UploadConclusion, kept: bool, body: bytes
) -> None:
    """A46: the row is not written, nothing is shown; the retry is taken."""
    broken: list[StoreError] = []
    meta = ARCHIVE if body is GOOD else JSON

    def before_commit() -> None:
        if broken:
            raise broken[0]

    async def story(here: Scene) -> None:
        broken.append(error)
        with log.capture() as events:
            assert verdict == await here.put(E2E, body, meta)
        assert "Failed upload could not be recorded" in [event["message"] for event in events]
        assert ({}, []) == (here.files(), here.leftovers())
        assert [sha(body)] * kept == here.blobs()
        broken.clear()
        assert await here.store.probe()
        assert stored(sha(body)) == await here.put(E2E, body, meta)
        assert [sha(body)] * (kept + 1) == here.blobs()

    play(tmp_path, story, before_commit=before_commit)


def test_a_disk_that_is_only_slow_is_not_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More wait for the store than it takes: the sender comes again, and nothing is an error."""
    later = UploadConclusion(UploadOutcome.UNAVAILABLE, "the store is busy, try again")

    async def story(here: Scene) -> None:
        with monkeypatch.context() as busy, log.capture() as events:
            busy.setattr(writer, "QUEUE", 0)
            assert later == await here.put(E2E, GOOD, ARCHIVE)
        assert [] == events
        assert ([], []) == (here.leftovers(), here.blobs())
        assert stored(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)

    play(tmp_path, story)


def test_below_the_reserve_while_the_body_comes(tmp_path: Path) -> None:
    """Nor may a body whose length nobody said."""

    async def story(here: Scene) -> None:
        frees = iter([here.layout.free()])
        here.layout.free = lambda: next(frees, 0)  # type: ignore[method-assign]
        verdict = await here.put(E2E, b"", JSON, *[bytes(2**20)] * 20)
        assert DISK_FULL == verdict
        assert [] == here.leftovers()

    play(tmp_path, story, limits={"disk_reserve_bytes": 1})


def _tmpfs() -> str | None:
    return None if os.geteuid() == 0 else "only root can mount a small file system"


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own; skipped where it cannot be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "small", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(_tmpfs() is not None, reason=str(_tmpfs()))
def test_a46_on_a_small_disk(tmp_path: Path) -> None:
    """A46: mid-body on a file system that is really full; then there is space."""
    big = tgz(*(file(b"%d" % n, bytes(2**20)) for n in range(20)))
    body = os.urandom(2**20 * 9)
    chunks = [body[at : at + 65536] for at in range(0, len(body), 65536)]

    with small_disk(tmp_path / "disk", "12m") as disk:

        async def story(here: Scene) -> None:
            earlier = os.urandom(2**20 * 4 + 100_000)  # so that a write is cut short
            assert stored(sha(earlier)) == await here.put(NODE1, earlier, JSON)
            assert DISK_FULL == await here.put(E2E, b"", JSON, *chunks)
            assert [] == here.leftovers()
            assert {"sysd/results/node1/a.json": earlier} == here.files()
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            assert stored(sha(big)) == await here.put(E2E, big, ARCHIVE)
            assert stored(sha(body)) == await here.put(NODE2, b"", JSON, *chunks)

        done = play(disk, story)
        assert 22 == len(done.files())


@pytest.mark.skipif(_tmpfs() is not None, reason=str(_tmpfs()))
@pytest.mark.parametrize("small", ["state", "output"])
def test_state_and_output_on_two_file_systems(tmp_path: Path, small: str) -> None:
    """The fuller one says what is free."""
    with small_disk(tmp_path / small, "8m"):

        async def story(here: Scene) -> None:
            assert here.layout.free() <= 8 * 2**20
            await here.put(NODE1, b"1", JSON)
            await here.put(E2E, GOOD, ARCHIVE)

        done = play(tmp_path, story)

        assert b"1" == done.files()["sysd/results/node1/a.json"]
        assert b"A" == done.files()["e2e/results/global/a"]


def test_f10_a_thousand_failures_leave_no_descriptor(tmp_path: Path) -> None:
    """F10, A30: archives with links that are refused, one after the other; then a good one."""
    body = tgz(file(b"a", b"A"), link(b"l", b"."), file(b"l/x", b"X"))
    trouble = DiskTrouble("sync", errno.EIO)

    async def story(here: Scene) -> None:
        await here.put(E2E, body, ARCHIVE)
        before = len(os.listdir("/proc/self/fd"))
        for number in range(1000):
            trouble.over = number % 2 == 0
            verdict = await here.put(E2E, body if trouble.over else GOOD, ARCHIVE)
            assert verdict.outcome is (
                UploadOutcome.REFUSED if trouble.over else UploadOutcome.UNWRITTEN
            )
        assert before == len(os.listdir("/proc/self/fd"))
        assert [] == here.leftovers()
        trouble.over = True
        assert stored(sha(GOOD)) == await here.put(E2E, GOOD, ARCHIVE)

    trouble.over = True
    done = play(tmp_path, story, step=trouble)

    assert {"e2e/results/global/a", "e2e/results/global/b"} == set(done.files())
