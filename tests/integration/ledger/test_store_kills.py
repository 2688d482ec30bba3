"""The process is killed: what was acknowledged is there, and nothing is half done.

STORE_KILL_SEED=NUMBER in the environment repeats the random series.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from reporter.run.state import Snapshot
from tests.integration.ledger.killing import Acknowledged, Player, player
from tests.integration.ledger.story import FLEET, STEPS, lasting
from tests.integration.ledger.world import NOW, World

KILLS = 2
PARTS = 4  # of the moments of a kill, for as many processes of the tests
SHOWN = 5  # this many steps are done when a replacing update was shown and perhaps not written
SEED = int(os.environ.get("STORE_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.fixture(scope="module")
def plays() -> Iterator[Player]:
    """The program that plays runs."""
    with player() as running:
        yield running


async def goes_on(world: World, first: int) -> Snapshot:
    """Take the steps from `first` on, as a client that repeats what was not acknowledged."""
    async with world.opened() as store:
        for step in STEPS[first:]:
            await step(store)
    return await found(world)


async def states(world: World) -> list[Snapshot]:
    """How the run looks before the first step and after each one."""
    async with world.opened() as store:
        seen = [lasting(store.snapshot())]
        for step in STEPS:
            await step(store)
            seen.append(lasting(store.snapshot()))
        return seen


async def found(world: World) -> Snapshot:
    """Open the run as the next process would."""
    async with world.opened() as store:
        return lasting(store.snapshot())


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_before_any_statement_a_restart_has_what_was_acknowledged(
    plays: Player, quick_folder: Path, part: int
):
    """C3, C7, C9: each step is whole or not there, and repeating all of them ends the same."""
    (quick_folder / "unharmed").mkdir()
    milestones = asyncio.run(states(World(quick_folder / "unharmed")))
    for at in itertools.count(part, PARTS):
        folder = quick_folder / str(at)
        folder.mkdir()
        said = plays.play("story", folder, at)
        done = sum(fact[0] == "step" for fact in said)
        after = asyncio.run(found(World(folder)))
        # C10: a replacing update that was seen may be lost; its sender's next one heals that.
        unseen = done == SHOWN and after == milestones[SHOWN - 1]
        assert unseen or after in milestones[done : done + 2], (at, done)
        end = asyncio.run(goes_on(World(folder), done - unseen))
        assert milestones[-1] == end, at
        if said and said[-1][0] == "left":
            break
    assert len(STEPS) == done
    assert at > 4 * len(STEPS)


def test_killed_under_load_again_and_again_nothing_acknowledged_is_missing(
    plays: Player, quick_folder: Path
):
    """C6 as far as rows go: one run survives all kills, each at a random moment."""
    assert 0 < series(plays, quick_folder, KILLS, SEED), f"STORE_KILL_SEED={SEED}"


def series(plays: Player, folder: Path, kills: int, seed: int) -> int:
    """Kill so many times and return how many rows were acknowledged.

    A new run is begun when the old one has little left to do.
    """
    chance, rows = random.Random(seed), 0
    acknowledged, run = Acknowledged(), folder / "0"
    run.mkdir()
    for number in range(kills):
        said = plays.killed(run, chance.getrandbits(32), chance)
        acknowledged.hear(said)
        rows += len(said)
        snapshot = asyncio.run(opened_fleet(World(run)))
        acknowledged.check(snapshot)
        if sum(not entry.terminal for entry in snapshot.entries.values()) < 2000:
            acknowledged, run = Acknowledged(), folder / str(number + 1)
            run.mkdir()
    return rows


async def opened_fleet(world: World) -> Snapshot:
    """The run of the load, as the next process finds it."""
    async with world.opened(plan=FLEET, now=NOW) as store:
        return store.snapshot()
