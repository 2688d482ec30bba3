"""Fixtures of the tests of the aggregator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.aggregators.trapped import Trapped
from tests.blackbox.aggregator.starting import Start, starting


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts an aggregator with a trap and flags of its own; it ends with the test."""
    with starting(tmp_path, partial(Trapped, trap=tmp_path / "trap")) as start:
        yield start
