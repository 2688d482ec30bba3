"""What the parts that a run may have are given, seen by what becomes of it."""

from __future__ import annotations

import asyncio
import resource
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reporter.aggregator import service
from reporter.aggregator.api.worker_app import WorkerApp
from reporter.aggregator.intake import Intake
from reporter.aggregator.listeners import worker_listener
from reporter.aggregator.settings import HostPort
from reporter.launch import launcher
from reporter.run.clock import RunClock
from reporter.run.entry import Entry
from reporter.run.plan import Key, parse_plan
from reporter.run.upload import FINISH, Upload
from tests.aggregators import run_certificates as certs
from tests.aggregators.contexts import context
from tests.integration.aggregator.api import scene
from tests.integration.aggregator.api.wire import HANG, connected, request
from tests.integration.aggregator.control.world import E2E, NODE1, PLAN

MIB = 2**20
AUTHORITY: Any = SimpleNamespace(
    ca=certs.authority().certificate, server=certs.server(), client=print, forget_key=print
)


def launched(folder: Path, monkeypatch: pytest.MonkeyPatch, uploads: Any, reserve: int = 0) -> Any:
    """What a launcher is given."""
    monkeypatch.setattr(launcher, "Launcher", lambda *_, **given: SimpleNamespace(**given))
    none = cast("Any", SimpleNamespace())
    settings = {"disk_reserve_bytes": reserve, "listen": HostPort("127.0.0.1", 0)}
    shared = context(PLAN, folder, settings=settings, launch=none, api=none)
    shared.layout.prepare()
    intake: Any = SimpleNamespace(uploads=uploads)
    return service._launcher(shared, intake, AUTHORITY)


def test_a_launcher_asks_the_intake_before_it_deletes_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which keys have an upload, and that one takes no more."""
    uploads = SimpleNamespace(holding=set[Key](), close=lambda key: key != E2E)
    made = launched(tmp_path, monkeypatch, uploads)
    uploads.holding.add(E2E)

    assert ({E2E}, True, False) == (made.uploading(), made.close(NODE1), made.close(E2E))


def test_logs_of_pods_leave_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the disk on which the results are."""
    made = launched(tmp_path, monkeypatch, SimpleNamespace(close=print), reserve=2**50)

    with pytest.raises(OSError, match="No space left above the reserve"):
        made.logs._check_room(0)


def test_an_upload_is_cut_by_the_clock_of_the_run() -> None:
    """Whatever becomes of the wall clock meanwhile."""
    mono, wall = [1_000.0], [1_800_000_000.0]
    shared = context(PLAN, now=RunClock(lambda: mono[0], lambda: wall[0]))
    deadline = shared.now()
    shared.store = cast("Any", SimpleNamespace(entry=lambda _: Entry(E2E, deadline=deadline)))
    wall[0] += 3_600
    mono[0] += 10

    late = Intake(shared).uploads.late(E2E, Upload(deadline, 0, began=deadline))
    assert 10 - FINISH == late


def test_a_connection_is_kept_between_two_heartbeats(tmp_path: Path) -> None:
    """For as long as the run's rhythm says, here for a moment."""
    settings = {"listen": HostPort("127.0.0.1", 0)}
    shared = context(parse_plan(scene.PLAN), tmp_path, settings=settings)
    shared.rhythm = replace(shared.rhythm, keep_alive=0.2)

    async def story() -> None:
        await shared.store.open_run(shared.plan, now=shared.wall())
        shared.layout.prepare()
        intake = Intake(shared)
        listener = worker_listener(shared, WorkerApp(shared, intake), AUTHORITY)
        address = await listener.start()
        async with connected(address, certs.client_context(certs.client("e2e"))) as wire:
            await wire.send(request("GET", scene.HEALTH))
            assert 200 == (await wire.reply()).status
            async with asyncio.timeout(HANG):
                assert b"" == await wire.rest()
        await listener.close(grace=1.0)
        await intake.close()
        await shared.store.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("memory", "most"), [(4 * MIB, 99), (2**40, None)], ids=["memory", "files"]
)
def test_connections_that_are_kept(memory: int, most: int | None) -> None:
    """As many as the memory is for, 41 KiB each, and at most half as many as files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    shared = context(PLAN, settings={"connection_memory_bytes": memory})

    assert (files // 2 if most is None else most) == shared.connections
