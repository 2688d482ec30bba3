"""Fixtures of the tests of the aggregator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.aggregator.process import Site, site
from tests.blackbox.aggregator.starting import Start, starting
from tests.blackbox.sidecar.scene import Scene, staged


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    """A folder with the usual plan: e2e once, sysd on two nodes."""
    with site(tmp_path) as found:
        yield found


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts an aggregator with flags of its own; it ends with the test."""
    with starting(tmp_path) as start:
        yield start


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A fake API server and a directory for the adapter's files; no reporter yet."""
    with staged(tmp_path / "scene") as scene:
        yield scene
