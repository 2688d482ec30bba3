"""What the aggregator's parts are given: who passes it on is seen by what becomes of it."""

from __future__ import annotations

import asyncio
import resource
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reporter.aggregator.assembly import Assembly
from reporter.aggregator.settings import Settings
from reporter.launch import launcher
from reporter.run.clock import RunClock
from reporter.run.entry import Entry, State
from reporter.run.plan import Key, Plan, parse_plan
from reporter.run.record import Cause
from reporter.run.upload import FINISH, Upload
from tests.aggregators import run_certificates as certs
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.api import scene as http_scene
from tests.integration.aggregator.api.wire import HANG, connected, request
from tests.integration.aggregator.control.world import E2E, NODE1, PLAN, World, play

MIB = 2**20


def assembly(folder: Path, plan: Plan, **variables: str) -> Assembly:
    """The parts of a run in a folder, not launching anything."""
    given = {"PLAN": "plan.json", "STATE": f"{folder}/state", "OUTPUT": f"{folder}/out"}
    return Assembly(Settings.read(given | variables), plan, None, None)


async def controlled(folder: Path) -> tuple[World, Any, Any]:
    """A run under the control that is assembled, with its uploads and the workers' listener."""
    world = await World().start()
    uploads = SimpleNamespace(holding=set(), excused=set(), queued=set())
    workers = SimpleNamespace(full_seconds=0.0)
    parts = assembly(folder, world.plan)
    parts.now = RunClock(lambda: world.mono, lambda: world.wall)
    intake: Any = SimpleNamespace(uploads=uploads)
    files: Any = world.files
    listener: Any = workers
    world.control = parts.control(world.store, intake, files, listener, None)
    await world.control.tick()
    return world, uploads, workers


def test_an_upload_that_waits_keeps_its_retry_window_open(tmp_path: Path) -> None:
    """Control knows of those who are excused by the intake."""

    async def story() -> None:
        world, uploads, _ = await controlled(tmp_path)
        await world.attempt(E2E)
        uploads.excused.add(E2E)
        await world.pass_time(1_000, step=10)
        assert (State.RUNNING, None) == world.state(E2E)
        uploads.excused.clear()
        await world.pass_time(10)
        assert (State.FAILED, Cause.UPLOAD_FAILED) == world.state(E2E)

    play(story())


def test_an_upload_in_the_queue_keeps_its_deadline_open(tmp_path: Path) -> None:
    """Control knows of those who had come in time, and passes them over while they stay."""

    async def story() -> None:
        world, uploads, _ = await controlled(tmp_path)
        uploads.queued.add(E2E)
        await world.pass_time(5_000, step=10)
        assert (State.RUNNING, None) == world.state(E2E)
        assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(NODE1)
        uploads.queued.clear()
        await world.pass_time(10)
        assert (State.TIMED_OUT, Cause.DEADLINE) == world.state(E2E)

    play(story())


def test_an_upload_is_cut_by_the_clock_of_the_run(tmp_path: Path) -> None:
    """Whatever becomes of the wall clock meanwhile."""
    world = World()
    parts = assembly(tmp_path, PLAN)
    parts.now = RunClock(lambda: world.mono, lambda: world.wall)
    deadline = parts.now()
    store: Any = SimpleNamespace(entry=lambda _: Entry(E2E, deadline=deadline))
    intake = parts.intake(store)
    world.wall += 3_600
    world.mono += 10

    assert 10 - FINISH == intake.uploads.late(E2E, Upload(deadline, 0, began=deadline))
    asyncio.run(intake.close())


def test_a_launcher_asks_the_intake_before_it_deletes_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which keys have an upload, and that one takes no more."""
    monkeypatch.setattr(launcher, "Launcher", lambda *_, **given: SimpleNamespace(**given))
    parts, none = assembly(tmp_path, PLAN), cast(Any, SimpleNamespace())
    parts._api = parts.launch = none
    uploads = SimpleNamespace(holding=set[Key](), close=lambda key: key != E2E)
    intake: Any = SimpleNamespace(uploads=uploads)
    authority: Any = SimpleNamespace(ca=b"", client=print, forget_key=print)
    made: Any = parts.launcher(none, intake, authority)
    uploads.holding.add(E2E)

    assert ({E2E}, True, False) == (made.uploading(), made.close(NODE1), made.close(E2E))


def test_logs_of_pods_leave_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the disk on which the results are."""
    monkeypatch.setattr(launcher, "Launcher", lambda *_, **given: SimpleNamespace(**given))
    parts = assembly(tmp_path, PLAN, DISK_RESERVE_BYTES=str(2**50))
    none: Any = SimpleNamespace(uploads=SimpleNamespace(close=print))
    parts._api = parts.launch = none
    parts.layout.prepare()
    authority: Any = SimpleNamespace(ca=b"", client=print, forget_key=print)
    made: Any = parts.launcher(none, none, authority)

    with pytest.raises(OSError, match="No space left above the reserve"):
        made.logs._check_room(0)


def test_a_crowd_at_the_door_makes_nobody_silent(tmp_path: Path) -> None:
    """Control knows of the time in which the listener had no place for workers."""

    async def story() -> None:
        world, _, workers = await controlled(tmp_path)
        world.beat(NODE1)
        for _ in range(100):
            workers.full_seconds += 5.0
            await world.pass_time(5, step=5)
        assert (State.RUNNING, None) == world.state(NODE1)
        await world.pass_time(150, step=5)
        assert State.TIMED_OUT is world.state(NODE1)[0]

    play(story())


def test_a_connection_is_kept_between_two_heartbeats(tmp_path: Path) -> None:
    """For as long as the run's rhythm says, here for a moment."""
    parts = assembly(tmp_path, parse_plan(http_scene.PLAN), LISTEN="127.0.0.1:0")
    parts.rhythm = replace(parts.rhythm, keep_alive=0.2)
    authority: Any = SimpleNamespace(ca=certs.authority().certificate, server=certs.server())

    async def story() -> None:
        store = QuickStore()
        await store.open_run(parts.plan, now=parts.wall())
        parts.layout.prepare()
        intake = parts.intake(store)
        listener = parts.workers(store, intake, authority)
        address = await listener.start()
        async with connected(address, certs.client_context(certs.client("e2e"))) as wire:
            await wire.send(request("GET", http_scene.HEALTH))
            assert 200 == (await wire.reply()).status
            async with asyncio.timeout(HANG):
                assert b"" == await wire.rest()
        await listener.close(grace=1.0)
        await intake.close()
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("memory", "most"), [(4 * MIB, 99), (2**40, None)], ids=["memory", "files"]
)
def test_connections_that_are_kept(tmp_path: Path, memory: int, most: int | None) -> None:
    """As many as the memory is for, 41 KiB each, and at most half as many as files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    parts = assembly(tmp_path, PLAN, CONNECTION_MEMORY_BYTES=str(memory))

    assert (files // 2 if most is None else most) == parts.connections
