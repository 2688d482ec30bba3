"""What starts whole aggregators for a test, and ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.aggregators.served import Aggregator

Start = Callable[..., Aggregator]
PLAN = {
    "run": "faults",
    "plugins": [{"name": "e2e"}, {"name": "sysd", "nodes": ["node1", "node2", "node3"]}],
}


@contextmanager
def starting(folder: Path, make: Start = Aggregator) -> Iterator[Start]:
    """Give a function that starts an aggregator with flags of its own."""
    with ExitStack() as running:

        def started(
            *flags: str,
            document: dict[str, Any] | None = None,
            folder: Path = folder / "run",
            **more: Any,
        ) -> Aggregator:
            folder.mkdir(exist_ok=True)
            return running.enter_context(make(folder, document or PLAN, *flags, **more))

        yield started


def unfinished(aggregator: Aggregator) -> list[str]:
    """What lies about of works in progress."""
    folders = (aggregator.state / "staging", aggregator.output / ".staging")
    return [path.name for folder in folders for path in folder.iterdir()]
