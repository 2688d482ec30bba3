"""The cluster that `make cluster` gives to people, and somebody who uses it, as fixtures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.__main__ import import_images
from tests.bed.attached import attached
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node, why_not
from tests.cluster.scene import Person
from tests.cluster.slow_run import SlowRun


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster for people; one of a machine at a time."""
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("people")
    controlplane = ControlPlane(folder)
    with attached(folder, up=True):
        yield controlplane
    controlplane.stop()  # what a test has started again is a child of this process


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
