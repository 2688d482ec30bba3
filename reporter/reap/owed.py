"""Which conditions the reporters of a Job are to write: as its Pod template and labels say."""

from dataclasses import dataclass, field

from reporter.common.objects import items, section, text
from reporter.jobs.finding import Object
from reporter.jobs.job import written_verdicts
from reporter.jobs.setting import LABEL, Setup, find_setups
from reporter.verdict.case import Policy
from reporter.verdict.condition import DEFAULT_TYPE
from reporter.verdict.facts import Form
from reporter.verdict.pod import Names


@dataclass(frozen=True, slots=True)
class Owed:
    """A condition that somebody waits for, and how its reporter would have judged."""

    type: str
    names: Names = field(default_factory=Names)
    policy: Policy = field(default_factory=Policy)


def conditions_owed(job: Object) -> list[Owed]:
    """Return the conditions that are to be on a Job; none where it has no reporter of ours.

    A type that the template does not show, because it comes from a ConfigMap for instance, is known
    once it is on the Job.
    """
    spec = section(job, "spec", "template", "spec")
    setups = find_setups(spec)
    own = [each for each in setups if not _elsewhere(job, each)]
    unnamed = [each for each in own if _by_reference(spec, each.name)]
    known = {each.condition: _owed(each.condition, each) for each in own if each not in unnamed}
    for written in written_verdicts(job):
        if written.type not in known:
            known[written.type] = _owed(written.type, unnamed[0] if unnamed else None)
    labelled = text(section(job, "metadata", "labels"), LABEL) in set(Form)
    if labelled and not setups and not known:
        known[DEFAULT_TYPE] = Owed(DEFAULT_TYPE)
    return list(known.values())


def _owed(kind: str, setup: Setup | None) -> Owed:
    return Owed(kind) if setup is None else Owed(kind, setup.names, Policy(form=setup.form))


def _elsewhere(job: Object, setup: Setup) -> bool:
    """Return whether this reporter writes to another Job."""
    for variable, key in (("JOB_NAME", "name"), ("JOB_NAMESPACE", "namespace")):
        told = setup.values.get(variable, "").strip()
        if told and "$(" not in told and told != text(section(job, "metadata"), key):
            return True
    return False


def _by_reference(spec: Object, reporter: str) -> bool:
    """Return whether the value of the container's CONDITION_TYPE is not in the template."""
    return any(
        _hides_type(container)
        for container in (*items(spec, "initContainers"), *items(spec, "containers"))
        if text(container, "name") == reporter
    )


def _hides_type(container: Object) -> bool:
    own = [each for each in items(container, "env") if text(each, "name") == "CONDITION_TYPE"]
    if not own:
        return any(True for _ in items(container, "envFrom"))
    return any("valueFrom" in each or "$(" in text(each, "value") for each in own)
