"""What a run's launcher tells people: what each entry's Pod does, and how it is itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class PodState:
    """What an entry's Pod does. `since` is how long it has been so."""

    name: str
    node: str
    phase: str
    reason: str
    message: str
    since: float | None
    restarts: int


class Step(StrEnum):
    """How far the launcher is."""

    LAUNCHING = "launching"  # some entry has no Job yet
    WATCHING = "watching"
    REMOVING = "removing"  # all entries are decided
    DONE = "done"


@dataclass(frozen=True, slots=True)
class LauncherTrouble:
    """What keeps the launcher from its work since that time."""

    since: float
    reason: str


@dataclass(frozen=True, slots=True)
class LauncherState:
    """How the launcher is. `stays` has, by kind and name, why an object could not be removed."""

    step: Step
    degraded: LauncherTrouble | None = None
    stays: Mapping[str, str] = field(default_factory=dict)
