"""The intake is killed again and again, at each step and at any moment under load."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reporter.core.run.plan import Key
from tests.integration.intake import crashing, test_crashes
from tests.integration.intake.scene import sha

pytestmark = [pytest.mark.long]

TIMES = 20
KILLS = 100
EACH = 25  # kills of one run, before a new one begins
SEED = int(os.environ.get("KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("story", "step", "nth"), test_crashes.BEFORE_THE_ROW)
def test_20_times_before_the_row(tmp_path: Path, story: str, step: str, nth: int) -> None:
    """C1-C3, C7, each many times."""
    repeat(tmp_path, lambda root: test_crashes.unacknowledged(root, story, step, nth))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("story", "step", "nth"), test_crashes.AFTER_THE_ROW)
def test_20_times_after_the_row(tmp_path: Path, story: str, step: str, nth: int) -> None:
    """C4, C5, C7, each many times."""
    repeat(tmp_path, lambda root: test_crashes.acknowledged(root, story, step, nth))


def repeat(folder: Path, once: Callable[[Path], None]) -> None:
    """Do something in a fresh directory each time."""
    for number in range(TIMES):
        root = folder / str(number)
        root.mkdir()
        once(root)


@pytest.mark.timeout(1800)
def test_killed_100_times_under_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C6: every upload that was acknowledged is there with its digest, bytes and tree.

    KILL_SEED=NUMBER in the environment repeats a series.
    """
    chance = random.Random(SEED)
    acknowledged = 0
    for run in range(KILLS // EACH):
        root = tmp_path / str(run)
        root.mkdir()
        told: dict[Key, str] = {}
        for _ in range(EACH):
            told |= killed_under_load(root, chance.uniform(0.0, 0.06))
            asyncio.run(compare(root, told))
        acknowledged += len(told)
    with capsys.disabled():
        print(f"\nintake: {KILLS} kills, {acknowledged} acknowledged uploads, KILL_SEED={SEED}")
    assert 0 < acknowledged


def killed_under_load(root: Path, seconds: float) -> dict[Key, str]:
    """Let a process take in what it can, and kill it so long after its start; what it said."""
    command = [sys.executable, crashing.__file__, str(root), "load", "none", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert "begun\n" == child.stdout.readline()
        time.sleep(seconds)
        child.kill()
        lines = child.stdout.read().splitlines()
    found = {}
    for line in lines:
        key, blank, digest = line.partition(" ")
        if blank and len(digest) == 64:
            plugin, _, node = key.partition("/")
            found[Key(plugin, node)] = digest
    return found


async def compare(root: Path, told: dict[Key, str]) -> None:
    """Look at what is there after a restart."""
    here = crashing.LoadScene(root)
    await here.start()
    try:
        assert () == here.recovered.lost
        assert [] == here.leftovers()
        for key, digest in told.items():
            record = here.store.entry(key).record
            assert (key, digest) == (key, record.digest)
            data = here.layout.blob(digest).read_bytes()
            assert digest == sha(data)
            assert data == (here.layout.result(key) / record.filename).read_bytes()
    finally:
        await here.stop()
