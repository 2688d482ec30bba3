"""Which objects of manifests are Jobs with a reporter."""

import pytest

from reporter.core.inject.jobs import objects_in
from reporter.core.lint.jobs import read_jobs
from tests.unit.core.lint.manifests import cron_job, env, ids, job, job_set, lint, pod_of


def test_a_list_is_its_objects():
    """Also a list in a list; what is no object is left out."""
    inner = {"kind": "JobList", "items": [{"kind": "Job"}, 5]}
    value = {"kind": "List", "items": [{"kind": "Pod"}, inner]}

    assert [
        ({"kind": "Pod"}, ("items", 0)),
        ({"kind": "Job"}, ("items", 1, "items", 0)),
    ] == list(objects_in(value))


@pytest.mark.parametrize("value", [None, 5, "text", [{"kind": "Job"}]])
def test_no_object(value):
    """A document may be anything."""
    assert [] == list(objects_in(value))


def test_a_list_without_items_is_an_object():
    """Whatever it is."""
    assert [({"kind": "List"}, ())] == list(objects_in({"kind": "List"}))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"kind": "Job", "apiVersion": "batch/v1"}, id="an empty Job"),
        pytest.param(job() | {"kind": "Pod"}, id="another kind"),
        pytest.param(job() | {"apiVersion": "batch.volcano.sh/v1alpha1"}, id="somebody else's Job"),
        pytest.param(job() | {"spec": "x"}, id="no spec"),
    ],
)
def test_not_ours(value):
    """Nothing to say."""
    assert [] == list(read_jobs(value, ()))


def test_without_a_reporter():
    """Not ours either."""
    value = job()
    pod_of(value)["initContainers"] = []

    assert [] == list(read_jobs(value, ()))


@pytest.mark.parametrize(
    ("metadata", "elsewhere", "title"),
    [
        ({"name": "a", "namespace": "b"}, "c", "Job b/a"),
        ({"name": "a"}, "c", "Job c/a"),
        ({"name": "a"}, "", "Job a"),
        ({"generateName": "a-"}, "", "Job a-*"),
    ],
)
def test_how_it_is_named(metadata, elsewhere, title):
    """With its namespace where there is one."""
    (found,) = read_jobs(job() | {"metadata": metadata}, (), elsewhere)

    assert title == found.title


def test_a_cron_job_of_the_older_version():
    """batch/v1beta1 is one too."""
    value = cron_job(job()) | {"apiVersion": "batch/v1beta1"}

    (found,) = read_jobs(value, ())

    assert "CronJob team/nightly" == found.title


def test_a_job_set():
    """Each part is a Job; one that is there once has a name that is known."""
    first, second = read_jobs(job_set(job(), None, 2), ("items", 3))

    assert ("JobSet team/nightly (part0)", "nightly-part0-0") == (first.title, first.name)
    assert ("JobSet team/nightly (part1)", "") == (second.title, second.name)
    spec_place = ("spec", "replicatedJobs", 1, "template", "spec")
    assert ("items", 3, *spec_place) == second.spec_place
    assert second.reporters[0].place == (*second.pod_place, "initContainers", 0)


def test_what_is_wrong_in_a_job_set():
    """By the same rules, where it stands; the name of its Job is no other's."""
    value = job()
    env(JOB_NAME="nightly-part0-0")(value)

    assert [] == ids(lint(job_set(value, 1)))
    assert ["job-name"] == ids(lint(job_set(value, 2)))
    assert [] == list(read_jobs(job_set(value), ()))
