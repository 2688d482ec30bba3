"""What a rule is, what it looks at, and what it finds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reporter.common.objects import Place
from reporter.inject.rights import Right
from reporter.lint.jobs import Job, Reporter
from reporter.lint.rights import Account, Rights

Judge = Callable[[Mapping[str, str]], Iterable[tuple[str, str, bool]]]
"""What is wrong with variables: name, text, and whether the reporter refuses to start with it."""
Problems = Iterator[tuple[Place, str, str]]
"""What a rule finds: where in the document, what is wrong, and what to do."""
_Check = Callable[["Case"], Problems]
_JobCheck = Callable[[Job], Problems]


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class World:
    """What is known besides the Job.

    `rights` are those of all files. `denied` are those that a cluster does not give, where it was
    asked, by account and name of the Job. `settings` are the names of the reporter's variables.
    """

    judge: Judge
    rights: Rights = field(default_factory=Rights)
    denied: Mapping[tuple[Account, str], frozenset[Right]] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Case:
    """One reporter in one Job."""

    job: Job
    reporter: Reporter
    world: World


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. `partial` says that it fits Jobs that are only a part of one, as a patch is.

    `summary` says in the documents what is found. `check` gets a Job that has a reporter or asks
    for one.
    """

    id: str
    severity: Severity
    summary: str
    check: Callable[[Job, World], Problems]
    partial: bool = False

    def problems(self, job: Job, world: World) -> Problems:
        """Yield what this rule finds in a Job."""
        if job.whole or self.partial:
            yield from self.check(job, world)


def rule(
    table: list[Rule], severity: Severity, name: str, summary: str, *, partial: bool = False
) -> Callable[[_Check], _Check]:
    """Add a rule about each reporter to a table."""

    def add(check: _Check) -> _Check:
        def check_all(job: Job, world: World) -> Problems:
            for reporter in job.reporters:
                yield from check(Case(job, reporter, world))

        table.append(Rule(name, severity, summary, check_all, partial))
        return check

    return add


def job_rule(
    table: list[Rule], severity: Severity, name: str, summary: str, *, partial: bool = False
) -> Callable[[_JobCheck], _JobCheck]:
    """Add a rule to a table that a Job without a reporter can break too."""

    def add(check: _JobCheck) -> _JobCheck:
        table.append(Rule(name, severity, summary, lambda job, _: check(job), partial))
        return check

    return add


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that would go wrong, and where; `object` is empty for what is a whole file's."""

    rule: Rule
    place: Place
    what: str
    todo: str
    file: str = ""
    line: int = 0
    field: str = ""
    object: str = ""
