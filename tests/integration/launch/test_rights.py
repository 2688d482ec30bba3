"""The Role of a run's aggregator beside what its launcher asks: enough, and nothing in vain."""

from __future__ import annotations

from pathlib import Path

from tests.fakekube import FakeKube
from tests.fakekube.journal import Entry
from tests.integration.launch.world import World, on_loop

NOT_THE_LAUNCHERS = {
    ("", "pods", "patch"),  # the annotation on the aggregator's own Pod
    ("batch", "jobs", "get"),  # a Job that somebody else has made meanwhile
    ("", "secrets", "get"),
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


@on_loop
async def test_a_whole_run_needs_every_right_and_is_refused_nothing(tmp_path: Path) -> None:
    """From the first Job to the last Secret that is deleted."""
    with FakeKube() as fake:
        world = World(fake, tmp_path)
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
