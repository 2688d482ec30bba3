"""Where the Jobs of an object are: of every kind that makes some, and of lists."""

from copy import deepcopy

import pytest

from reporter.core.inject.edits import get
from reporter.core.inject.jobs import jobs, manifests
from tests.unit.core.inject.scene import CRON, job, one

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
    """jobs.py."""

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
            ({"kind": "Pod"}, []),
            ([1], []),
            (None, []),
        ],
    )
    def test_kinds(self, value, shown):
        """By kind and group; a list is looked into."""
        assert shown == [found.shown for found in jobs(value)]

    def test_a_cronjobs_labels_are_those_of_its_jobs_before_its_own(self):
        """Either may ask for a form; what makes the Jobs is nearer."""
        found = one(CRON)

        assert {"a": "1", "b": "3"} == found.labels
        assert ("c", "n", ("spec", "jobTemplate")) == (found.name, found.namespace, found.job)

    @pytest.mark.parametrize(
        ("kind", "spec", "expected"),
        [
            ("Workflow", {"templates": [{"name": "t"}, {}]}, ("spec", "templates", 0)),
            (
                "CronWorkflow",
                {"workflowSpec": {"templates": [{"name": "t"}]}},
                ("spec", "workflowSpec", "templates", 0),
            ),
        ],
    )
    def test_manifests_of_workflows(self, kind, spec, expected):
        """Only of whole objects; a patch is none."""
        spec = deepcopy(spec)
        value = {"apiVersion": "argoproj.io/v1", "kind": kind, "spec": spec}
        template = get(value, expected)
        template["resource"] = {"action": "create", "manifest": "kind: Job"}
        whole = {"kind": "List", "items": [value]}

        assert [((*expected, "resource", "manifest"), f"{kind.lower()}.argoproj.io/* (t)")] == list(
            manifests(value)
        )
        assert 1 == len(list(manifests(whole)))
        template["resource"]["action"] = "patch"
        assert [] == list(manifests(value))
        assert [] == list(manifests({"kind": "Workflow"}))

    def test_manifests_of_templates_within_others(self):
        """A step or task may have a template of its own, and all may have one as their default."""
        resource = {"resource": {"action": "create", "manifest": "kind: Job"}}
        step, deeper = {"name": "s", "inline": resource}, {"steps": [[{"inline": resource}]]}
        spec = {
            "templateDefaults": resource,
            "templates": [
                {"name": "a", "steps": [[{"name": "other"}, step], [step], "broken", {"a": 1}]},
                {"name": "b", "dag": {"tasks": [{"name": "t", "inline": resource}, "broken"]}},
                {"name": "c", "dag": {"tasks": [{"name": "d", "inline": deeper}]}},
                {"name": "e", "steps": "broken", "dag": []},
            ],
        }
        value = {"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow"}
        found = list(manifests({**value, "spec": {"workflowSpec": spec}}))

        shown = "cronworkflow.argoproj.io/*"
        end = ("resource", "manifest")
        deep = ("dag", "tasks", 0, "inline", "steps", 0, 0, "inline")
        assert [
            (("templateDefaults", *end), f"{shown} (templateDefaults)"),
            (("templates", 0, "steps", 0, 1, "inline", *end), f"{shown} (s)"),
            (("templates", 0, "steps", 1, 0, "inline", *end), f"{shown} (s)"),
            (("templates", 1, "dag", "tasks", 0, "inline", *end), f"{shown} (t)"),
            (("templates", 2, *deep, *end), f"{shown} ()"),
        ] == [(path[2:], name) for path, name in found]
        assert {("spec", "workflowSpec")} == {path[:2] for path, _ in found}
