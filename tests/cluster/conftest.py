"""The cluster that `make cluster` gives to people, as a fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed import node
from tests.bed.attached import attached
from tests.bed.controlplane import ControlPlane
from tests.cluster.slow_run import SlowRun


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster for people; one of a machine at a time."""
    if reason := node.why_not():
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
