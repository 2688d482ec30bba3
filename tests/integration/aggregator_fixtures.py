"""Fixtures of the tests that have a whole aggregator as a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.aggregators.served import Aggregator

Start = Callable[..., Aggregator]
PLAN = {
    "run": "faults",
    "plugins": [{"name": "e2e"}, {"name": "sysd", "nodes": ["node1", "node2", "node3"]}],
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts an aggregator with flags of its own; it ends with the test."""
    with ExitStack() as running:

        def started(
            *flags: str,
            document: dict[str, Any] | None = None,
            folder: Path | None = None,
            limits: dict[str, float] | None = None,
        ) -> Aggregator:
            here = folder or tmp_path / "run"
            here.mkdir(exist_ok=True)
            trap = tmp_path / "trap"
            aggregator = Aggregator(here, document or PLAN, *flags, trap=trap, limits=limits)
            return running.enter_context(aggregator)

        yield started


def unfinished(aggregator: Aggregator) -> list[str]:
    """What lies about of works in progress."""
    folders = (aggregator.state / "staging", aggregator.output / ".staging")
    return [path.name for folder in folders for path in folder.iterdir()]
