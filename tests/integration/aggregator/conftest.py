"""Fixtures of the tests of the aggregator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.aggregator_process import (
    Site,
    site,
)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    """A folder with the usual plan: e2e once, sysd on two nodes."""
    with site(tmp_path) as found:
        yield found
