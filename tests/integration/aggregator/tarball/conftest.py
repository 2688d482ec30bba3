"""Fixtures of the tests of the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.aggregators.bucket import SIGNATURE, Bucket
from tests.integration.aggregator.tarball.scene import World


@pytest.fixture
def world(tmp_path: Path):
    """A world with a store that takes everything."""
    with Bucket(tmp_path) as bucket:
        world = World(tmp_path, bucket)
        yield world
        if world.events:
            assert SIGNATURE not in world.words()
