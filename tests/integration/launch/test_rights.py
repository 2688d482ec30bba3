"""The Role of a run's aggregator beside what its launcher asks: enough, and nothing in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakekube import FakeKube
from tests.fakekube.journal import Entry
from tests.integration.launch.world import HANG, World, definition, launch_of, plan_of

NOT_THE_LAUNCHERS = {
    ("", "pods", "patch"),  # the annotation on the aggregator's own Pod
    ("batch", "jobs", "get"),  # a Job that somebody else has made meanwhile
    ("", "secrets", "get"),
    ("apps", "daemonsets", "get"),
}
"""What this run gives no reason to ask."""


def right(entry: Entry) -> tuple[str, str, str]:
    """Name the right that a request needs, as (API group, resource, verb)."""
    words = entry.path.strip("/").split("/")
    group = words[1] if words[0] == "apis" else ""
    _, _, resource, *rest = words[words.index("namespaces") :]
    verbs = {"POST": "create", "DELETE": "delete", "PATCH": "patch"}
    verb = verbs.get(entry.method, "get" if rest else "list")
    return group, "/".join([resource, *rest[1:]]), "watch" if entry.is_watch else verb


def with_both(fake: FakeKube, folder: Path) -> World:
    """A run with Jobs and a DaemonSet."""
    plan = plan_of()
    disk = definition("disk", driver="Node", order=1, dispatch="daemonset")
    return World(fake, folder, plan, launch_of(plan, disk))


@pytest.mark.parametrize("make", [World, with_both])
def test_a_whole_run_needs_every_right_and_is_refused_nothing(
    tmp_path: Path, make: Callable[[FakeKube, Path], World]
) -> None:
    """From the first Job to the last Secret that is deleted; DaemonSets only where one is made."""
    asyncio.run(asyncio.wait_for(whole_run(tmp_path, make), HANG))


async def whole_run(folder: Path, make: Callable[[FakeKube, Path], World]) -> None:
    with FakeKube() as fake:
        world = make(fake, folder)
        with world.prepared():
            async with world.begun():
                await world.until(lambda: world.launcher.through)
            asked = fake.requests()
        granted = {
            (group, resource, verb)
            for rule in fake.tokens.roles["launcher"]
            for group in rule.groups
            for resource in rule.resources
            for verb in rule.verbs
        }
    assert [] == [entry.path for entry in asked if entry.status == 403]
    assert granted - NOT_THE_LAUNCHERS == {right(entry) for entry in asked}
