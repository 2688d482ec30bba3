"""Fixtures of the tests of snapshots."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakekube import FakeKube
from tests.integration.collect.scene import Take


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube(role="admin") as fake:
        yield fake


@pytest.fixture
def take(tmp_path: Path) -> Take:
    return Take(tmp_path)
