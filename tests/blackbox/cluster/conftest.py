"""Somebody who uses the cluster that `make cluster` gives to people, as fixtures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.__main__ import import_images
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.blackbox.cluster.scene import Person
from tests.blackbox.cluster.slow_run import SlowRun


@pytest.fixture(scope="session")
def slow_run(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowRun]:
    """A run of failures that take their time, begun now."""
    run = SlowRun(cluster, tmp_path_factory.mktemp("slow"))
    try:
        run.begin()
        yield run
    finally:
        run.end()


@pytest.fixture
def person(cluster: ControlPlane, tmp_path: Path) -> Person:
    """Somebody in an empty folder."""
    return Person(cluster, tmp_path)


@pytest.fixture
def run(person: Person, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a run that is gone after the test, whatever became of it."""
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:30].strip("-")
    yield name
    person.run("delete", name, "--yes")


@pytest.fixture
def second(cluster: ControlPlane) -> Iterator[str]:
    """The name of another real node, with a kubelet of its own."""
    with Node(cluster, services=True, second=True) as node:
        import_images(node)
        yield node.name
    cluster.request("DELETE", f"/api/v1/nodes/{node.name}")
