"""A process that takes in bodies and kills itself at a named step; and what is found afterwards.

Run as a program: `crashing.py ROOT STORY STEP NTH`. It prints one line per acknowledged upload. The
store is the real one, on the disk.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from reporter.aggregator.intake import Intake
from reporter.aggregator.tarball.finish import Finish
from reporter.aggregator.tarball.package import BodiesLost
from reporter.ledger import Store
from reporter.results.process import Judge
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import Phase
from reporter.run.upload import UploadOutcome
from tests import forked
from tests.aggregators.contexts import context
from tests.archives.tars import file, tgz
from tests.integration.aggregator.intake.scene import (
    ARCHIVE,
    E2E,
    JSON,
    NODE1,
    NODE2,
    NOW,
    PLAN,
    Scene,
)

OPAQUE = b"opaque" * 300_000
LOAD_PLAN = Plan("run-1", (Plugin("p", tuple(f"n{n}" for n in range(600))),))
GOOD = tgz(*(file(b"d/%d" % n, b"%d" % n) for n in range(5)))


class DiskScene(Scene):
    """A scene whose store survives the process."""

    plan = PLAN

    async def start(self, step: Callable[[str], None] = lambda name: None) -> None:
        """Open everything."""
        self.layout.prepare()
        self.store = Store(self.layout.database)
        await self.store.open_run(self.plan, now=NOW)
        self.context = context(self.plan, self.root, store=self.store, wall=lambda: NOW, step=step)
        self.bodies, self.intake = self.context.blobs, Intake(self.context)
        self.finish = Finish(self.layout, self.bodies, self.intake, Judge(), step=step)
        self.recovered = await self.intake.recover(self.store.snapshot())

    async def stop(self) -> None:
        """Close everything."""
        await self.intake.close()
        await self.store.close()


class LoadScene(DiskScene):
    """The same with many keys."""

    plan = LOAD_PLAN


async def opaque(here: Scene) -> None:
    """One opaque result in several pieces."""
    await _acknowledged(here, "opaque")


async def archive(here: Scene) -> None:
    """One archive."""
    await _acknowledged(here, "archive")


async def late(here: Scene) -> None:
    """A result over an error of ours."""
    await here.give_up(NODE1, "gone", Cause.DEADLINE)
    await _acknowledged(here, "opaque")


async def tarball(here: Scene) -> None:
    """A whole run to its end."""
    for key in (NODE1, NODE2, E2E):
        await here.put(key, b"1", JSON)
    await here.store.advance_run(Phase.POST_PROCESSING)
    tar = await here.finish.package(here.store.snapshot())
    here.intake._step("row of the tarball")
    await here.store.advance_run(Phase.CLOSED, tar=tar)
    here.intake._step("clear")
    await here.finish.clear(here.store.snapshot())


async def damaged(here: Scene) -> None:
    """The same with a result whose bytes have changed."""
    for key in (NODE1, NODE2, E2E):
        await here.put(key, str(key).encode(), JSON)
    (here.layout.blobs / here.store.entry(NODE1).record.blob).write_bytes(b"?")
    await here.store.advance_run(Phase.POST_PROCESSING)
    await pack(here)


async def pack(here: Scene) -> None:
    """Bring a run that takes nothing more to its end, as control does."""
    try:
        tar = await here.finish.package(here.store.snapshot())
    except BodiesLost as error:
        for key in error.keys:
            here.intake._step("row of the lost")
            await here.store.lose(key, "damaged", at=NOW)
        tar = await here.finish.package(here.store.snapshot())
    await here.store.advance_run(Phase.CLOSED, tar=tar)
    await here.finish.clear(here.store.snapshot())


async def load(here: DiskScene) -> None:
    """A result for every key of a plan with many, several at once, each of its own bytes."""
    print("begun", flush=True)
    gate = asyncio.Semaphore(4)

    async def one(key: Key) -> None:
        async with gate:
            body = str(key).encode() + OPAQUE[:100_000]
            verdict = await here.put(key, body, JSON)
            if verdict.outcome is UploadOutcome.ACCEPTED:
                print(key, verdict.digest, flush=True)

    keys = [key for key in here.plan.keys if not here.store.entry(key).terminal]
    await asyncio.gather(*(one(key) for key in keys))


async def _acknowledged(here: Scene, kind: str) -> None:
    chunks = [OPAQUE[at : at + 65536] for at in range(0, len(OPAQUE), 65536)]
    if kind == "archive":
        verdict = await here.put(NODE1, GOOD, ARCHIVE)
    else:
        verdict = await here.put(NODE1, b"", JSON, *chunks)
    assert verdict.outcome is UploadOutcome.ACCEPTED
    print("stored", verdict.digest, flush=True)


STORIES = {story.__name__: story for story in (opaque, archive, late, tarball, damaged, load)}


def crash(root: Path, story: str, step: str, nth: int) -> tuple[int, str]:
    """Run a story in a process of its own that dies at a step; its exit status and its output."""
    command = [__file__, str(root), story, step, str(nth)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = forked.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


def main(root: str, story: str, step: str, nth: str) -> None:
    """The child's side."""
    left, begun = int(nth), False

    def die(name: str) -> None:
        nonlocal left
        if begun and name == step:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    async def told() -> None:
        nonlocal begun
        here = (LoadScene if story == "load" else DiskScene)(Path(root))
        await here.start(die)
        begun = True
        await STORIES[story](here)
        await here.stop()

    asyncio.run(told())


if __name__ == "__main__":
    main(*sys.argv[1:])
