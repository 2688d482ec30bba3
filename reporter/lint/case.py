"""What a rule looks at, and what it says."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from reporter.lint.jobs import Job, Place, Reporter
from reporter.lint.rights import Account, Right, Rights

Judge = Callable[[Mapping[str, str]], Iterable[tuple[str, str, bool]]]
"""What is wrong with variables: name, text, and whether the reporter refuses to start with it."""


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"


class Hit(NamedTuple):
    """What a rule has found: where in the document, what is wrong, and what to do."""

    place: Place
    what: str
    todo: str


@dataclass(frozen=True, slots=True)
class World:
    """What is known besides the Job.

    `rights` are those of all files. `denied` are those that a cluster does not give, where it was
    asked, by account and name of the Job.
    """

    judge: Judge
    rights: Rights = field(default_factory=Rights)
    denied: Mapping[tuple[Account, str], frozenset[Right]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """One reporter in one Job."""

    job: Job
    reporter: Reporter
    world: World


def nothing(_: object) -> Iterator[Hit]:
    """Find nothing."""
    yield from ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. `partial` says that it fits Jobs that are only a part of one, as a patch is.

    `summary` says in the documents what is found. `check` is for each reporter of a Job, `without`
    for a Job that asks for one and has none.
    """

    id: str
    severity: Severity
    summary: str
    check: Callable[[Case], Iterator[Hit]]
    partial: bool = False
    without: Callable[[Job], Iterator[Hit]] = nothing


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that would go wrong."""

    rule: Rule
    place: Place
    what: str
    todo: str


def findings(rules: Sequence[Rule], job: Job, world: World) -> list[Finding]:
    """Apply all rules to all reporters of a Job, in the order of the rules."""
    found = [
        Finding(rule, *hit)
        for rule in rules
        if job.whole or rule.partial
        for hit in _hits(rule, job, world)
    ]
    # A mistake in the Pod is found once for each reporter.
    return list(dict.fromkeys(found))


def _hits(rule: Rule, job: Job, world: World) -> Iterator[Hit]:
    if not job.reporters:
        yield from rule.without(job)
    for reporter in job.reporters:
        yield from rule.check(Case(job, reporter, world))


def shown(names: Iterable[Any]) -> str:
    """Return a list of names as people read it."""
    return ", ".join(map(repr, names)) or "none"
