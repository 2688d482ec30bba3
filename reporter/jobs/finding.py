"""What a diagnosis is made from, and the findings it consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Object = Mapping[str, Any]


class Weight(StrEnum):
    """How much a finding matters."""

    PROBLEM = "problem"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth knowing: what is so, what it is based on, and what to do about it.

    `code` is a stable word for programs. `todo` is empty where nothing needs to be done. `about` is
    the container concerned, if it is one.
    """

    code: str
    weight: Weight
    what: str
    todo: str = ""
    evidence: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class Objects:
    """What was read of the cluster. `now` is Unix seconds.

    `events` are of the Job and its Pods; `logs` are the ends of the reporters' logs by Pod;
    `unread` says what could not be read and why.
    """

    job: Object
    pods: Sequence[Object]
    now: float
    events: Sequence[Object] = ()
    logs: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


def problem(code: str, what: str, todo: str = "", *evidence: str) -> Finding:
    """Make a finding about something that is in the way."""
    return Finding(code, Weight.PROBLEM, what, todo, tuple(filter(None, evidence)))


def warning(code: str, what: str, todo: str = "", *evidence: str) -> Finding:
    """Make a finding about something that may cause trouble later."""
    return Finding(code, Weight.WARNING, what, todo, tuple(filter(None, evidence)))


def info(code: str, what: str, todo: str = "", *evidence: str) -> Finding:
    """Make a finding about something that is as it should be, or that only explains."""
    return Finding(code, Weight.INFO, what, todo, tuple(filter(None, evidence)))
