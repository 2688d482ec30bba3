"""What the parts of an aggregator share, over a store that is quick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reporter.aggregator.context import Context
from reporter.ledger import Store
from reporter.run.clock import RunClock
from reporter.run.plan import Plan
from reporter.run.settings import Settings
from tests.aggregators.stores import QuickStore, volatile


def context(
    plan: Plan,
    folder: Path | None = None,
    *,
    store: Store | None = None,
    wall: Callable[[], float] | None = None,
    metrics: Any = None,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> Context:
    """Make it with the usual settings but for some, and with all of the disk to fill.

    `wall` is all clocks at once; `metrics` hear what the listeners tell.
    """
    store = store or QuickStore()
    folder = folder or volatile(store)
    if wall is not None:
        options["now"] = RunClock(wall, wall)
    given = {"plan": "", "state": str(folder / "state"), "output": str(folder / "output")}
    chosen = given | {"disk_reserve_bytes": 0} | (settings or {})
    made = Context(Settings.model_construct(**chosen), plan, **options)
    made.store = store
    if metrics is not None:
        made.metrics = metrics
    return made
