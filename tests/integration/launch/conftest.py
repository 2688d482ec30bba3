"""What several files of tests here begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reporter.run.plan import Plugin
from tests.fakekube import FakeKube
from tests.integration.launch.world import World, plan_of


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries to read a log."""
    monkeypatch.setattr("reporter.launch.logs.PAUSE", 0.01)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A run with a plugin for the cluster and one for each node."""
    with FakeKube() as fake:
        made = World(fake, tmp_path)
        with made.prepared():
            yield made


@pytest.fixture
def one(tmp_path: Path) -> Iterator[World]:
    """A run of a single entry that ends by itself."""
    with FakeKube() as fake:
        made = World(fake, tmp_path, plan_of(Plugin("check")))
        with made.prepared():
            yield made
