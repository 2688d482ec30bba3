"""Situations in which somebody or something ends the work from outside."""

from __future__ import annotations

from typing import Any

from tests.runs import actions
from tests.runs.jobs import ADAPTER, REPORTER, container, writes
from tests.runs.run import Run
from tests.runs.scenario import FALSE, UNKNOWN, Expected, Scenario, reasons, result

STUBBORN = "trap '' TERM; sleep 600 & wait; sleep 600"
POLITE = "trap 'exit 143' TERM; sleep 600 & wait"
LAST_WORDS = f"trap 'sleep 1; {writes()}; exit 0' TERM; sleep 600 & wait".replace("'{", '"{')


def interrupted(message: str, **more: Any) -> Expected:
    """Row N: nobody can know how it would have ended."""
    return Expected("N", UNKNOWN, "AdapterInterrupted", message, **more)


def deadline(owner: str, seconds: int) -> Expected:
    """Row D."""
    message = rf"Adapter did not finish within the {owner}'s activeDeadlineSeconds \({seconds}s\)"
    return Expected("D", FALSE, "AdapterTimeout", message)


INTERRUPTED: list[Scenario] = []
assert (actions, ADAPTER, REPORTER, container, STUBBORN, POLITE, LAST_WORDS, Run, reasons, result)
