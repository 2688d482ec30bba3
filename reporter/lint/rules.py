"""All rules. Their ids are published: a rule may go, but its id is never reused."""

from collections.abc import Collection
from typing import Final

from reporter.lint import pod_rules, setup_rules
from reporter.lint.case import Finding, Rule, Severity, World
from reporter.lint.jobs import Job

UNREADABLE: Final = Rule(  # found where files are read
    "unreadable",
    Severity.ERROR,
    "the file is not valid YAML, or a key appears twice",
    lambda *_: iter(()),
)
RULES: Final = (UNREADABLE, *setup_rules.RULES, *pod_rules.RULES)


def findings(job: Job, world: World, ignored: Collection[str] = ()) -> list[Finding]:
    """Apply the rules to all reporters of a Job, in the order of the rules."""
    found = [
        Finding(rule, *problem)
        for rule in RULES
        if rule.id not in ignored
        for problem in rule.problems(job, world)
    ]
    # A mistake in the Pod is found once for each reporter.
    return list(dict.fromkeys(found))
