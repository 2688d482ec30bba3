"""Uploads that wait for a slot, and uploads at a deadline."""

import asyncio
import contextlib
import time

import pytest

from reporter.run.record import Failure
from reporter.run.upload import Allowance
from tests.aggregators import run_certificates as certs
from tests.integration.aggregator.api.scene import (
    E2E,
    NODE1,
    NODE2,
    PLAN,
    RESULT,
    Scene,
    serving,
    situation,
)
from tests.integration.aggregator.api.wire import HANG, head, request

ONE = {"UPLOADS": 1}


@situation
async def test_uploads_that_wait_for_a_slot(tmp_path):
    """Two of a key are read; a third waits unread and is answered when one of them is stored."""
    async with serving(tmp_path) as scene, scene.connect() as one, scene.connect() as two:
        for wire in (one, two):
            await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        third = asyncio.create_task(scene.put(E2E, b"third" * 100_000))
        await until_waiting(scene, 3)
        assert 2 == scene.intake.uploads.active

        await one.send(b"lf")
        stored, waited = await one.reply(), await third
        await two.send(b"lf")
        late = await two.reply()

        assert [200, 409, 409] == [stored.status, waited.status, late.status]
        assert [] == list(scene.intake.uploads.present)


@situation
async def test_a_slot_that_never_comes(tmp_path):
    """After its wait: 503, and nobody's failure. Its retry window does not end meanwhile."""
    limits = {"UPLOADS": 1, "SLOT_WAIT": 0.2}
    async with serving(tmp_path, limits=limits) as scene, scene.connect() as busy:
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        reply = await scene.put(NODE1, b"result")

        assert (503, "true") == (reply.status, reply.headers["result-busy"])
        assert 0 < int(reply.headers["retry-after"]) <= 15
        assert (False, 0) == (scene.entry(NODE1).retrying, scene.entry(NODE1).attempts)
        assert {E2E, NODE1} == set(scene.intake.uploads.excused)
        assert {E2E} == set(scene.intake.uploads.holding)


@situation
async def test_more_than_four_that_wait_for_one_key(tmp_path):
    """The fifth is told at once, and others' keys are not held up."""
    async with serving(tmp_path) as scene, contextlib.AsyncExitStack() as stack:
        for count in range(1, 7):
            wire = await stack.enter_async_context(scene.connect())
            await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
            await until_waiting(scene, count)
        fifth, other = await scene.put(E2E, b"more"), await scene.put(NODE1, b"other")

        assert (503, "true") == (fifth.status, fifth.headers["result-busy"])
        assert (200, 2) == (other.status, scene.intake.uploads.active)


@pytest.mark.parametrize(
    ("look", "size"),
    [(0.05, 2_000), (600.0, 2_000), (600.0, 200_000)],
    ids=["seen while it waits", "seen at its turn", "its end is behind its bytes"],
)
@situation
async def test_a_sender_that_leaves_while_it_waits(tmp_path, look, size):
    """What has come of its body is not read: no try has failed, and its place is free."""
    limits = {**ONE, "SENDER_LOOK": look}
    async with serving(tmp_path, limits=limits) as scene, scene.connect() as busy:
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        async with scene.connect(certs.client("sysd")) as leaver:
            await leaver.send(request("PUT", RESULT[NODE1], b"x" * 300_000)[:size])
            async with asyncio.timeout(HANG):
                while NODE1 not in scene.intake.uploads.present:
                    await asyncio.sleep(0.005)
        if look < HANG:
            async with asyncio.timeout(HANG):
                while NODE1 in scene.intake.uploads.present:
                    await asyncio.sleep(0.005)
        await busy.send(b"lf")
        assert 200 == (await busy.reply()).status
        await scene.seen.until(lambda: len(scene.seen.requests) == 2)

        assert {("results", 200), ("results", 400)} == set(scene.seen.requests)
        assert (False, 0) == (scene.entry(NODE1).retrying, scene.entry(NODE1).attempts)
        assert {} == scene.intake.uploads.present


@pytest.mark.parametrize(
    ("rate", "length"),
    [
        (2**20, "Content-Length: 4"),
        (1, "Content-Length: 4"),  # four seconds
        (2**20, "Transfer-Encoding: chunked"),  # eight minutes
    ],
    ids=["short", "as long as its length allows", "as long as the largest may take"],
)
@situation
async def test_an_upload_at_its_deadline(tmp_path, rate, length):
    """Row 12: it may finish within a time that follows from its length; then it is cut."""
    limits, allowance = {"BODY_SILENCE": HANG}, Allowance(0.3, rate)
    chunked = "chunked" in length
    long = chunked or rate == 1
    plan = {**PLAN, "timeout_seconds": 1}
    async with (
        serving(tmp_path, limits=limits, plan=plan, allowance=allowance) as scene,
        scene.connect() as wire,
    ):
        await scene.store.note_plugin_launch("e2e", at=time.time() - 0.8)
        await wire.send(head("PUT", RESULT[E2E], length), b"2\r\nha\r\n" if chunked else b"ha")
        await scene.holds(wire)
        assert {E2E} == set(scene.intake.uploads.holding)
        if long:
            await asyncio.sleep(1.0)
            assert {E2E} == set(scene.intake.uploads.holding)
            await wire.send(b"2\r\nlf\r\n0\r\n\r\n" if chunked else b"lf")

        reply = await wire.reply()
        assert (200 if long else 503) == reply.status
        async with asyncio.timeout(HANG):
            while scene.intake.uploads.holding:
                await asyncio.sleep(0.005)


@situation
async def test_an_upload_that_waits_at_its_deadline(tmp_path):
    """Its entry does not time out while its sender stays, nor while it is read then."""
    plan = {**PLAN, "timeout_seconds": 1}
    async with (
        serving(tmp_path, limits=ONE, plan=plan) as scene,
        scene.connect() as busy,
        scene.connect(certs.client("sysd")) as wire,
    ):
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        await wire.send(head("PUT", RESULT[NODE1], "Content-Length: 4"), b"ha")
        async with asyncio.timeout(HANG):
            while NODE1 not in scene.intake.uploads.present:
                await asyncio.sleep(0.005)
        await scene.store.note_plugin_launch("sysd", at=time.time() - 0.9)
        await asyncio.sleep(0.2)
        assert {NODE1} == scene.intake.uploads.queued
        await busy.send(b"lf")
        assert 200 == (await busy.reply()).status
        await scene.holds(wire)
        assert {NODE1} == scene.intake.uploads.queued
        await wire.send(b"lf")

        assert 200 == (await wire.reply()).status
        assert set() == scene.intake.uploads.queued


@situation
async def test_an_upload_after_its_deadline(tmp_path):
    """It is taken while there is time, and does not keep the run open by waiting."""
    plan = {**PLAN, "timeout_seconds": 1}
    async with serving(tmp_path, limits=ONE, plan=plan) as scene, scene.connect() as busy:
        await scene.store.note_plugin_launch("sysd", at=time.time() - 10.0)
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        late = asyncio.create_task(scene.put(NODE1, b"late"))
        async with asyncio.timeout(HANG):
            while NODE1 not in scene.intake.uploads.present:
                await asyncio.sleep(0.005)
        assert {E2E} == set(scene.intake.uploads.holding)
        assert set() == scene.intake.uploads.queued
        await busy.send(b"lf")

        assert 200 == (await late).status


@situation
async def test_a_retry_after_the_deadline_within_its_window(tmp_path):
    """The window decides: the run stays open for it, though it has to wait."""
    plan = {**PLAN, "timeout_seconds": 1}
    async with serving(tmp_path, limits=ONE, plan=plan) as scene, scene.connect() as busy:
        await scene.store.note_plugin_launch("sysd", at=time.time() - 500.0)
        await scene.store.mark_failed(NODE1, Failure("attempt", time.time(), "cut off"))
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        retry = asyncio.create_task(scene.put(NODE1, b"again"))
        async with asyncio.timeout(HANG):
            while NODE1 not in scene.intake.uploads.present:
                await asyncio.sleep(0.005)
        assert {E2E, NODE1} == set(scene.intake.uploads.holding)
        await busy.send(b"lf")

        assert 200 == (await retry).status


@situation
async def test_a_key_that_takes_no_more_uploads(tmp_path):
    """Its Job is to be deleted: not while an upload waits or is read; then 410 to all others."""
    async with (
        serving(tmp_path, limits=ONE) as scene,
        scene.connect() as busy,
        scene.connect(certs.client("sysd")) as wire,
    ):
        await busy.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(busy)
        await wire.send(head("PUT", RESULT[NODE1], "Content-Length: 4"))
        async with asyncio.timeout(HANG):
            while NODE1 not in scene.intake.uploads.present:
                await asyncio.sleep(0.005)
        close = scene.intake.uploads.close
        assert [False, False] == [close(E2E), close(NODE1)]
        await busy.send(b"lf")
        await wire.send(b"half")
        assert [200, 200] == [(await each.reply()).status for each in (busy, wire)]

        assert [True, True] == [close(NODE1), close(NODE2)]
        assert 409 == (await scene.put(NODE1, b"x")).status
        words = b"the plugin's Job is being deleted; result sysd/node2 not accepted\n"
        assert (410, words) == (await scene.put(NODE2, b"x")).said


@situation
async def test_keys_with_an_upload_are_named(tmp_path):
    """A57: the run may not close over a body that is being read."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(wire)
        assert [E2E] == list(scene.intake.uploads.present)

        await wire.send(b"lf")
        assert 200 == (await wire.reply()).status
        assert [] == list(scene.intake.uploads.present)


async def until_waiting(scene: Scene, count: int) -> None:
    """Wait until so many uploads of e2e have come, be they read or not."""
    while scene.intake.uploads.present.get(E2E, 0) < count:
        await asyncio.sleep(0.005)
