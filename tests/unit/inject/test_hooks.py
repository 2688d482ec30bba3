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


def rights(*annotations):
    """Return what Helm is told of Role and RoleBinding of Jobs with these annotations."""
    jobs = [job(metadata={"annotations": each} if each else {}) for each in annotations]
    stream = yaml.safe_dump_all(jobs)
    made = injected(stream, Wishes("i"), lambda labels: True, with_rights=True)
    assert stream == uninjected(made.text, lambda labels: True).text
    role, binding = (
        each["metadata"]["annotations"]
        for each in yaml.safe_load_all(made.text)
        if each["kind"] != "Job"
    )
    assert role == binding
    return {name: value for name, value in role.items() if name.startswith("helm.sh/")}


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([{}], {}, id="no hook"),
        pytest.param([PRE], {**PRE, "helm.sh/hook-weight": "-1"}, id="a hook"),
        pytest.param([POST], {**POST, "helm.sh/hook-weight": "2"}, id="a hook with a weight"),
        pytest.param([PRE | GONE], {**PRE, **GONE, "helm.sh/hook-weight": "-1"}, id="and a policy"),
        pytest.param(
            [POST | GONE, PRE],
            {"helm.sh/hook": "post-install,pre-install,pre-upgrade", "helm.sh/hook-weight": "-1"},
            id="two hooks: what one of them deletes the other needs",
        ),
        pytest.param(
            [{}, {"helm.sh/hook": "pre-install"} | GONE],
            {**PRE, "helm.sh/hook-weight": "-1"},
            id="a hook before the installation, and a Job of the release",
        ),
        pytest.param([POST, {}], {}, id="a hook after it, and a Job of the release"),
    ],
)
def test_rights_are_created_before_the_jobs(jobs, expected):
    """One Role for each account, whatever its Jobs are."""
    assert expected == rights(*jobs)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"helm.sh/hook": " Pre-Install, ,test"}, Hook(("pre-install", "test"))),
        ({"helm.sh/hook": "test", "helm.sh/hook-weight": "first"}, Hook(("test",))),
        ({"helm.sh/hook": "test", "helm.sh/hook-weight": "-5"}, Hook(("test",), -5)),
        ({"helm.sh/hook": 5}, Hook()),
    ],
)
def test_annotations_as_helm_reads_them(annotations, expected):
    assert expected == hook_of({"metadata": {"annotations": annotations}})


@pytest.mark.parametrize(
    ("other", "events", "expected"),
    [
        pytest.param("", "", False, id="no hook at all"),
        pytest.param("", "pre-install", True, id="of the release, before it"),
        pytest.param("", "pre-upgrade", False, id="of the release that is upgraded"),
        pytest.param("", "post-install,test", False, id="of the release, after it"),
        pytest.param("pre-install", "pre-install", False, id="the same weight: rights first"),
        pytest.param("pre-install 1", "pre-install", True, id="a greater weight"),
        pytest.param("pre-install", "post-install", False, id="an earlier event"),
        pytest.param("post-install", "pre-install", True, id="a later event"),
        pytest.param("pre-upgrade", "pre-install,pre-upgrade", True, id="not at each event"),
        pytest.param("post-install", "pre-upgrade", False, id="since the installation"),
        pytest.param("post-upgrade", "test", True, id="never before"),
    ],
)
def test_what_comes_later_than_a_hook(other, events, expected):
    names, _, weight = other.partition(" ")
    made = Hook(tuple(filter(None, names.split(","))), int(weight or 0))

    assert expected == comes_later(made, Hook(tuple(filter(None, events.split(",")))))
