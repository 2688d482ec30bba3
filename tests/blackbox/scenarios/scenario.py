"""A named situation: the adapter, what happens to it, and what the Job has to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.blackbox.scenarios.jobs import FORMS

if TYPE_CHECKING:
    from tests.blackbox.scenarios.run import Run

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


@dataclass(frozen=True)
class Expected:
    """The condition in the end, and what is allowed before.

    `message` is a pattern for the whole text. `before` are the reasons that a revisable condition
    may have had on the way; `finals` the rows of all final verdicts in their order, by default the
    last condition's own. `exit_code` is the reporter's in the classic form, by default by its row.
    """

    row: str
    status: str
    reason: str
    message: str
    final: bool = True
    before: frozenset[str] = frozenset({"AdapterRunning"})
    finals: tuple[str, ...] | None = None
    exit_code: int | None = None

    @property
    def all_finals(self) -> tuple[str, ...]:
        """The rows of every final verdict that has to be written, in order."""
        if self.finals is not None:
            return self.finals
        return (self.row,) if self.final else ()


@dataclass(frozen=True)
class Scenario:
    """One situation.

    `act` is what happens to the Job while it runs, `change` edits it before it is created;
    `container`, `pod` and `job` are fields for the adapter, the Pod's spec and the Job's spec.
    Where `ends` is false the Pod would never end by itself (its adapter cannot start): the Job is
    deleted once the condition is right. `errors` allows lines of level error in the reporter's log,
    `lines` are the allowed numbers of canonical lines per final verdict.
    `check` looks further than the condition, `judge` looks in its place; `seconds` is a hang bound.
    """

    name: str
    script: str
    expected: Expected
    forms: tuple[str, ...] = FORMS
    settings: Mapping[str, str] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)
    job: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[dict[str, Any], str], None] | None = None
    act: Callable[[Run], None] | None = None
    check: Callable[[Run], None] | None = None
    judge: Callable[[Run], None] | None = None
    role: str = "shipped"
    grace: int = 30
    ends: bool = True
    errors: bool = False
    lines: tuple[int, ...] = (1,)
    seconds: float = 120


def result(
    status: str = TRUE, reason: str = "Checked", message: str = "All is well", **more: Any
) -> Expected:
    """Row R as `jobs.writes` makes it."""
    return Expected("R", status, reason, message, **more)


def reasons(*names: str) -> frozenset[str]:
    """What may stand before, besides that work goes on."""
    return frozenset({"AdapterRunning", *names})
