"""Fixtures of the tests of the sidecar."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregators.scripted import Scripted
from tests.blackbox.sidecar.scene import Scene, staged


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A fake API server and a directory for the adapter's files; no reporter yet."""
    with staged(tmp_path) as scene:
        yield scene


@pytest.fixture
def aggregator() -> Iterator[Scripted]:
    """An aggregator that takes everything."""
    with Scripted() as scripted:
        yield scripted
