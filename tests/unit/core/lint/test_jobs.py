"""Which objects of manifests are Jobs with a reporter."""

import pytest

from reporter.core.lint.jobs import objects_in, read_job
from tests.unit.core.lint.manifests import cron_job, job, pod_of


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
    assert read_job(value, ()) is None


def test_without_a_reporter():
    """Not ours either."""
    value = job()
    pod_of(value)["initContainers"] = []

    assert read_job(value, ()) is None


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
    found = read_job(job() | {"metadata": metadata}, (), elsewhere)

    assert found is not None
    assert title == found.title


def test_a_cron_job_of_the_older_version():
    """batch/v1beta1 is one too."""
    value = cron_job(job()) | {"apiVersion": "batch/v1beta1"}

    assert read_job(value, ()) is not None
