"""One run with everything in it, told step by step and the same each time.

Also the program that is killed: `python -m tests.integration.ledger.story` reads lines
`MODE FOLDER NUMBER`, plays each in a process of its own and repeats what was acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from reporter.ledger import Store
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.progress import UpdateId
from reporter.run.record import Record
from reporter.run.state import Phase, Snapshot
from reporter.run.tar_upload import TarUpload, UploadState
from tests.integration.ledger.world import (
    E2E,
    NODE1,
    NODE2,
    NOW,
    PLAN,
    TAR,
    Disk,
    World,
    appending,
    failed_try,
    gave_up,
    replacing,
    report,
    result,
)

Step = Callable[[Store], Awaitable[object]]

STEPS: tuple[Step, ...] = (
    lambda store: store.begin_launching(),
    lambda store: store.note_plugin_launch("e2e", at=NOW),
    lambda store: store.note_launches([NODE1, NODE2], at=NOW),
    lambda store: store.start_entries({NODE1: NOW + 5}),
    lambda store: store.record_progress(E2E, replacing(3), UpdateId("a", 1), at=NOW),
    lambda store: store.record_progress(E2E, appending(5, "x"), UpdateId("a", 2), at=NOW),
    lambda store: store.mark_failed(E2E, failed_try()),
    lambda store: store.mark_failed(E2E, failed_try(NOW + 9, "cut")),
    lambda store: store.record_result(NODE1, report("e1")),
    lambda store: store.mark_all_failed(dict.fromkeys((NODE1, NODE2), gave_up())),
    lambda store: store.record_result(NODE2, result("aa")),
    lambda store: store.record_progress(NODE2, appending(2), UpdateId("b", 1), at=NOW),
    lambda store: store.record_result(E2E, result("bb")),
    lambda store: store.lose(NODE2, "the bytes are gone", at=NOW + 10),
    lambda store: store.record_result(NODE2, result("cc")),
    lambda store: store.advance_run(Phase.POST_PROCESSING),
    lambda store: store.packing_failed("no space", at=NOW),
    lambda store: store.note_upload(TarUpload("host", UploadState.UPLOADING, NOW, "", NOW), TAR),
    lambda store: store.advance_run(Phase.CLOSED, tar=TAR),
)

FLEET = Plan("fleet", (Plugin("load", tuple(f"n{number:04d}" for number in range(4000))),))


def lasting(snapshot: Snapshot) -> Snapshot:
    """What does not depend on how often the run was opened."""
    return replace(snapshot, revision=0, ahead=False, beats=MappingProxyType({}))


class Killer:
    """Counts statements and ends this process before one of them."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.disk = Disk()
        self.disk.before = self._before

    def _before(self, _: str) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1


async def _story(folder: Path, at: int) -> None:
    killer = Killer(at)
    store = World(folder, connect=killer.disk.connect).store()
    await store.open_run(PLAN, now=NOW)
    for number, step in enumerate(STEPS):
        await step(store)
        _say(["step", number])
    await store.close()
    _say(["left", killer.left])


async def _load(folder: Path, seed: int) -> None:
    """Go on with a run, from many tasks at once, until somebody ends it."""
    chance = random.Random(seed)
    store = World(folder).store(pace=0.01)
    snapshot = await store.open_run(FLEET, now=time.time())
    fresh = [key for key, entry in snapshot.entries.items() if not entry.terminal]
    chance.shuffle(fresh)
    _say(["ready", len(fresh), snapshot.revision])
    async with asyncio.TaskGroup() as tasks:
        for part in range(16):
            tasks.create_task(_worker(store, fresh[part::16], chance))
    await store.close()


async def _worker(store: Store, keys: list[Key], chance: random.Random) -> None:
    for key in keys:
        done = store.snapshot().progress.get(key)
        base = done.progress.completed if done else 0
        for number in range(1, chance.randrange(4)):
            _say(["trying", *key, base + number])
            await store.record_progress(key, appending(1), None, at=NOW)
            _say(["appended", *key, base + number, store.snapshot().revision])
        if chance.random() < 0.2:
            await store.mark_failed(key, failed_try(text=f"cut {key}"))
            _say(["tried", *key, f"cut {key}"])
        if chance.random() < 0.2:
            await store.mark_failed(key, gave_up())
            _say(["given-up", *key])
        record: Record = result(f"{chance.getrandbits(256):064x}")
        received = await store.record_result(key, record)
        _say([str(received.outcome), *key, record.digest, store.snapshot().revision])


def _say(fact: object) -> None:
    # One write of less than a page is in the pipe as a whole or not at all.
    os.write(1, json.dumps(fact).encode() + b"\n")


def main() -> None:
    """Play what each line asks for in a child that may be killed; say when it has ended."""
    for line in sys.stdin:
        mode, folder, number = line.split()
        child = os.fork()
        if child == 0:
            try:
                match mode:
                    case "story":
                        asyncio.run(_story(Path(folder), int(number)))
                    case "load":
                        asyncio.run(_load(Path(folder), int(number)))
            except BaseException as error:
                _say(["failed", repr(error)])
            finally:
                os._exit(0)
        if mode == "load":
            _say(["pid", child])
        os.waitpid(child, 0)
        _say(["ended"])


if __name__ == "__main__":
    main()
