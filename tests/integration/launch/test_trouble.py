"""What goes wrong in the launcher itself, or beside it: nothing foreign goes, nothing hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reporter.aggregator.launch import launcher as launching
from reporter.core.launch.names import entry_name
from reporter.core.run.entry import Cause
from reporter.core.run.plan import Plugin
from tests.fakekube import Answer, FakeKube
from tests.integration.launch.world import CHECK, RUN, World, on_loop, plan_of

CHECK_JOB = entry_name(RUN, CHECK)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[World]:
    """A run of a single entry that ends by itself."""
    with FakeKube() as fake:
        made = World(fake, tmp_path, plan_of(Plugin("check")))
        with made.prepared():
            yield made


@on_loop
async def test_a_strangers_secret_survives_a_restart(one: World) -> None:
    """The next process does not know that it was refused, and removes what may be its own."""
    one.fake.store.create("Secret", {"metadata": {"name": CHECK_JOB}, "data": {"a": "Yg=="}})
    async with one.begun():
        await one.until(lambda: one.entry(CHECK).terminal)
    async with one.begun():
        await one.until(lambda: one.launcher.through)
    assert [CHECK_JOB] == one.names("Secret")


@on_loop
async def test_a_strangers_secret_in_the_place_of_ours(one: World) -> None:
    """Somebody has deleted ours and made another one: it is not ours to delete."""
    one.passes = lambda key: False
    async with one.begun():
        await one.until(lambda: one.names("Pod"))
        one.fake.store.delete("Secret", "default", CHECK_JOB)
        one.fake.store.create("Secret", {"metadata": {"name": CHECK_JOB}, "data": {"a": "Yg=="}})
        await one.upload(CHECK)
        await one.until(lambda: one.launcher.through)
    assert [CHECK_JOB] == one.names("Secret")


@on_loop
async def test_a_secret_that_is_not_deleted_at_the_first_try(one: World) -> None:
    """It holds a key: the run is not through before it is gone."""
    one.fake.fail(Answer(500), method="DELETE", path="/secrets")
    async with one.begun():
        await one.until(lambda: one.launcher.through)
    assert [] == one.names("Secret")


@on_loop
async def test_what_no_mirror_can_read(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours ends the process: a thread that is dead would show the past for ever."""

    def broken(*_: Any) -> None:
        raise RuntimeError("no such Pod was ever seen")

    monkeypatch.setattr(launching, "read_pod", broken)
    async with one.begun():
        with pytest.raises(RuntimeError, match="no such Pod was ever seen"):
            await asyncio.shield(one.task)


@on_loop
async def test_a_request_that_cannot_be_made(one: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours ends the process, and is not tried again and again in silence."""

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such Job can be made")

    monkeypatch.setattr("reporter.aggregator.launch.requests.job", broken)
    async with one.begun():
        with pytest.raises(RuntimeError, match="no such Job can be made"):
            await asyncio.shield(one.task)


@on_loop
async def test_the_key_of_the_authority_is_lost(one: World) -> None:
    """Nobody can be given a certificate any more: the entry has failed, and says why."""
    one.fake.fail(Answer(503), method="POST", path="/secrets", times=None)
    async with one.begun():
        await one.until(lambda: one.fake.requests("POST", "/secrets"))
    (one.folder / "tls" / "ca.key").unlink()
    one.fake.clear_faults()
    async with one.begun():
        await one.until(lambda: one.launcher.through)
        record = one.entry(CHECK).record
        assert Cause.START_FAILED is record.cause
        assert "certificate authority is not kept" in record.text
