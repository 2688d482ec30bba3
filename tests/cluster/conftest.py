"""The cluster that `make cluster` gives to people, as a fixture."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.aggregators.served import ROOT
from tests.bed import node
from tests.bed.controlplane import ControlPlane


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster for people; one of a machine at a time."""
    if reason := node.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("people")
    command = [sys.executable, "-m", "tests.bed"]
    subprocess.run([*command, "up", "--dir", str(folder)], cwd=ROOT, timeout=600, check=True)
    try:
        yield ControlPlane(folder)
    finally:
        subprocess.run([*command, "down", "--dir", str(folder)], cwd=ROOT, timeout=300, check=True)
