"""`status-ctl lint` finds nothing in what deploy/ ships, and its measure is the published one."""

import re

import pytest
import yaml

from reporter.lint.case import World
from reporter.lint.jobs import read_jobs
from reporter.lint.manifest import load_manifests
from reporter.lint.pod_rules import PEAK
from reporter.lint.rights import Rights
from reporter.lint.rules import findings
from reporter.sidecar.settings import Settings
from tests.unit.repository.manifests import DEPLOY, FORMS, load

RBAC = [load(f"base/{name}.yaml") for name in ("serviceaccount", "role", "rolebinding")]

COMPLETED = ("greeting", "greeting", "network", "quota", "storage")
"""The examples that kustomize completes, by their label: greeting in each form."""


def found(value: dict) -> list[tuple[str, str]]:
    """Apply all rules, beside the rights of deploy/base."""
    (read,) = read_jobs(value, ())
    rights = Rights({each["kind"]: [each] for each in RBAC})
    return [
        (each.rule.id, each.what) for each in findings(read, World(Settings.complaints, rights))
    ]


def with_component(example: dict, *forms: str) -> dict:
    """Return an example as the components make it: what they add comes first."""
    spec = example["spec"]["template"]["spec"]
    for form in forms:
        added = load(f"components/{form}/job.yaml")["spec"]["template"]["spec"]
        for key, value in added.items():
            spec[key] = value + spec.get(key, []) if isinstance(value, list) else value
    return example


def test_every_file_of_deploy():
    """As they stand there: also the components, which are patches of Jobs with an account.

    The examples for kustomize get the reporter from the component (see below): the label asks
    for it.
    """
    # The chart's templates are no YAML yet.
    folders = sorted(str(each) for each in DEPLOY.iterdir() if each.name != "chart")
    files = list(load_manifests(folders))
    jobs = [
        job
        for file in files
        for each in file.manifests
        for job in read_jobs(each.value, each.place)
    ]
    objects: dict[str, list] = {}
    for file in files:
        for each in file.manifests:
            objects.setdefault(each.value["kind"], []).append(each.value)
    world = World(Settings.complaints, Rights(objects))

    assert [] == [mistake for file in files for mistake in file.mistakes]
    assert 7 <= len(jobs)
    said = [
        (job.name, each.rule.id)
        for job in jobs
        for each in findings(job, world)
        if not (job.name == "any" and each.rule.id.endswith("-rights"))
    ]
    assert sorted(said) == [(name, "not-injected") for name in COMPLETED]


@pytest.mark.parametrize("form", FORMS)
def test_examples_with_their_component(form):
    """Whole Jobs, so that all rules apply."""
    assert [] == found(with_component(load(f"examples/{form}/job.yaml"), form))


@pytest.mark.parametrize("name", ["network", "quota", "storage"])
def test_examples_of_a_run(name):
    """The component is that of the label."""
    example = load(f"examples/run/{name}.yaml")

    assert [] == found(
        with_component(example, example["metadata"]["labels"]["status-reporter.io/inject"])
    )


def test_the_mistakes_that_an_example_can_have():
    """So that the tests above are about something: without the rights, and after the adapter."""
    example = with_component(load("examples/classic/job.yaml"), "classic")
    spec = example["spec"]["template"]["spec"]
    spec["containers"].reverse()
    spec["serviceAccountName"] = "other"

    assert ["classic-not-first", "missing-rights", "missing-optional-rights"] == [
        rule for rule, _ in found(yaml.safe_load(yaml.safe_dump(example)))
    ]


def test_the_memory_that_was_measured():
    """No figure of the reporter's peak in the benchmarks is above the rule's."""
    page = (DEPLOY.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    (peak,) = re.findall(r"^\| peak resident memory \(VmHWM\) \| ([\d.]+) MB", page, re.M)
    imports = re.findall(r"^\| the same, imports only: .* ([\d.]+)/([\d.]+) MB", page, re.M)

    assert max(map(float, (peak, *imports[0]))) * 10**6 <= PEAK
