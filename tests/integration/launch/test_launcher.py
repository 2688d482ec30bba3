"""The launcher in a fake cluster: what it makes, watches and removes, and what hinders it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reporter.core.launch.names import entry_name
from reporter.core.run.entry import State
from reporter.core.run.launched import Step
from tests.fakekube import FakeKube
from tests.integration.launch.world import CHECK, DISKS, RUN, World, on_loop


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with FakeKube() as fake:
        made = World(fake, tmp_path)
        with made.prepared():
            yield made


@on_loop
async def test_a_run_goes_through(world: World) -> None:
    """Groups one after the other; each entry's Job and its Secret go, and nothing is left."""
    async with world.begun():
        await world.until(lambda: world.launcher.through)
        assert {State.COMPLETE} == {world.entry(key).state for key in world.plan.keys}
        assert Step.DONE is world.store.snapshot().launcher.step

    names = [entry_name(RUN, key) for key in (CHECK, *DISKS)]
    assert names[0] == world.made("Job")[0]
    assert sorted(names) == sorted(world.made("Job"))
    assert 2 == len(world.made("Secret"))
    assert [] == world.names("Job") + world.names("Pod") + world.names("Secret")
