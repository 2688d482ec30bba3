"""What the tests of a linked sidecar need."""

from collections.abc import Iterator

import pytest

from tests.integration.link.scripted import Scripted


@pytest.fixture
def aggregator() -> Iterator[Scripted]:
    """An aggregator that takes everything."""
    with Scripted() as scripted:
        yield scripted
