"""Where the Jobs of an object are: of every kind that makes some, and of lists."""

import pytest

from reporter.inject.jobs import get, jobs, labels_of, put
from tests.unit.inject.scene import CRON, job, one

JOB_SET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "s"},
    "spec": {
        "replicatedJobs": [
            {"name": "one", "template": {"spec": job()["spec"]}},
            "broken",
            {"name": "two", "template": {"spec": job()["spec"]}},
        ]
    },
}


class TestWhereJobsAre:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (job(), ["job.batch/j"]),
            (job(metadata={"name": "", "generateName": "g-"}), ["job.batch/g-*"]),
            (CRON, ["cronjob.batch/c"]),
            (JOB_SET, ["jobset.jobset.x-k8s.io/s (one)", "jobset.jobset.x-k8s.io/s (two)"]),
            (
                {"kind": "List", "items": [job(), {"kind": "JobList", "items": [CRON]}]},
                ["job.batch/j", "cronjob.batch/c"],
            ),
            ({**job(), "apiVersion": "other/v1"}, []),
            ({**CRON, "spec": {}}, []),
            ({"kind": "List"}, []),
            ({"kind": "Pod"}, []),
            ([job()], []),
            ({"kind": "List", "items": [5, None, "x"]}, []),
            (None, []),
        ],
    )
    def test_kinds(self, value, shown):
        """By kind and group; a list is looked into."""
        assert shown == [found.shown for found in jobs(value)]

    def test_a_cronjobs_labels_are_those_of_its_jobs_before_its_own(self):
        """Either may ask for a form; what makes the Jobs is nearer."""
        found = one(CRON)

        assert {"a": "1", "b": "3"} == labels_of(CRON["spec"]["jobTemplate"], found)
        assert ("c", "n", ("spec", "jobTemplate")) == (found.name, found.namespace, found.job)


def test_nothing_is_at_a_place_that_leads_nowhere():
    """As an empty value, never an error."""
    assert [None] * 3 == [get(value, path) for value, path in [({}, (0,)), ([], (0,)), (1, ("a",))]]


def test_a_changed_part_leaves_the_old_value_and_shares_the_rest():
    """A copy of a whole list would cost each of its Jobs."""
    old = {"a": [{"b": 1}, {"c": {}}], "d": {"e": 2}}

    new = put(old, ("a", 0), 5)

    assert ({"a": [5, {"c": {}}], "d": {"e": 2}}, 1) == (new, old["a"][0]["b"])
    assert new["d"] is old["d"]
