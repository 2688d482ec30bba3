"""Jobs that are Helm hooks: what their rights are told, and what comes too late for them."""

import pytest
import yaml

from reporter.inject.container import Wishes
from reporter.inject.hooks import Hook, comes_later, hook_of
from reporter.inject.stream import injected, uninjected
from tests.unit.inject.scene import job

PRE = {"helm.sh/hook": "pre-install,pre-upgrade"}
POST = {"helm.sh/hook": "post-install", "helm.sh/hook-weight": "3"}
GONE = {"helm.sh/hook-delete-policy": "hook-succeeded"}
EARLIER = {"helm.sh/hook-weight": "-1"}


def everything(labels):
    return True


def granting(stream):
    return injected(stream, Wishes("i"), everything, with_rights=True).text


def told(stream):
    """Return by name what Helm is told of each Role; of its RoleBinding it is the same."""
    found = {"Role": {}, "RoleBinding": {}}
    for each in yaml.safe_load_all(stream):
        if each["kind"] in found:
            metadata = each["metadata"]
            given = {k: v for k, v in metadata["annotations"].items() if k.startswith("helm.sh/")}
            found[each["kind"]][metadata["name"]] = given
    assert found["Role"] == found["RoleBinding"]
    return found["Role"]


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([{}], {"": {}}, id="no hook"),
        pytest.param([PRE], {"-hook": PRE | EARLIER}, id="a hook"),
        pytest.param(
            [POST], {"-hook": POST | {"helm.sh/hook-weight": "2"}}, id="a hook with a weight"
        ),
        pytest.param(
            [PRE | GONE], {"-hook": PRE | EARLIER}, id="deleted later: its reporter may still run"
        ),
        pytest.param(
            [POST, PRE],
            {"-hook": {"helm.sh/hook": "post-install,pre-install,pre-upgrade"} | EARLIER},
            id="two hooks",
        ),
        pytest.param(
            [{}, {"helm.sh/hook": "post-delete"}],
            {"": {}, "-hook": {"helm.sh/hook": "post-delete"} | EARLIER},
            id="a hook and a Job of the release: Helm deletes its rights before, or creates later",
        ),
    ],
)
def test_rights_are_created_before_the_jobs(jobs, expected):
    """One Role for the hooks of each account, and one for its other Jobs."""
    stream = yaml.safe_dump_all(
        job(metadata={"annotations": each} if each else {}) for each in jobs
    )

    made = granting(stream)

    assert {f"status-reporter-default{name}": each for name, each in expected.items()} == told(made)
    assert stream == uninjected(made, everything).text


def test_rights_of_a_hook_that_has_changed():
    """They are those of an earlier injection, and follow their Jobs."""
    first = yaml.safe_dump(job(metadata={"annotations": POST}))
    once = granting(first)

    twice = granting(once.replace("post-install", "pre-install").replace("'3'", "'5'"))

    expected = {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "4"}
    assert {"status-reporter-default-hook": expected} == told(twice)
    assert once == granting(twice.replace("pre-install", "post-install").replace("'5'", "'3'"))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"helm.sh/hook": " Pre-Install, ,test"}, Hook("j", ("pre-install", "test"))),
        ({"helm.sh/hook": "test", "helm.sh/hook-weight": "first"}, Hook("j", ("test",))),
        ({"helm.sh/hook": "test", "helm.sh/hook-weight": "-5"}, Hook("j", ("test",), -5)),
        ({"helm.sh/hook": 5}, Hook("j")),
    ],
)
def test_annotations_as_helm_reads_them(annotations, expected):
    assert expected == hook_of({"metadata": {"name": "j", "annotations": annotations}})


@pytest.mark.parametrize(
    ("other", "events", "expected"),
    [
        pytest.param("role", "", False, id="no hook at all"),
        pytest.param("role", "pre-install", True, id="of the release, before it"),
        pytest.param("role", "pre-upgrade", False, id="of the release that is upgraded"),
        pytest.param("role", "post-install,test", False, id="of the release, after it"),
        pytest.param("role pre-install", "pre-install", True, id="the same weight, a later name"),
        pytest.param("a pre-install", "pre-install", False, id="the same weight, an earlier name"),
        pytest.param("a pre-install 1", "pre-install", True, id="a greater weight"),
        pytest.param("role pre-install -1", "pre-install", False, id="a lower weight"),
        pytest.param("role pre-install", "post-install", False, id="an earlier event"),
        pytest.param("role post-install", "pre-install", True, id="a later event"),
        pytest.param("role post-upgrade", "pre-upgrade", True, id="a later event of upgrades"),
        pytest.param("role pre-upgrade", "post-upgrade", False, id="an earlier one of upgrades"),
        pytest.param("a pre-upgrade", "pre-install,pre-upgrade", True, id="not at each event"),
        pytest.param("role post-install", "pre-upgrade", False, id="since the installation"),
    ],
)
def test_what_comes_later_than_a_hook(other, events, expected):
    """The Job's name is `check`."""
    name, made, weight = (*other.split(), "", "")[:3]
    hook = Hook(name, tuple(filter(None, made.split(","))), int(weight or 0))

    assert expected == comes_later(hook, Hook("check", tuple(filter(None, events.split(",")))))
