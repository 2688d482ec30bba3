"""Fixtures of the tests of a run's control."""

from __future__ import annotations

import pytest

from tests.integration.aggregator.control.world import World


@pytest.fixture
def world() -> World:
    """The usual run, not yet started."""
    return World()
