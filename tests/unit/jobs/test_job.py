"""What `explain` says of a Job: without a reporter, deleted, ended, unreadable."""

import pytest

from reporter.jobs.finding import Weight
from reporter.run.names import NODE, PLUGIN, RUN_LABEL
from reporter.verdict import rows
from tests.fakekube import terminated
from tests.unit.jobs.world import (
    COMPLETE,
    GOOD,
    bare,
    explain,
    job,
    pod,
    setting,
    without_reporter,
)


def test_a_reporter_that_was_put_in_later():
    """An injector changes Pods, not the template: what runs counts."""
    found = explain(without_reporter(job()), pod())

    assert "no-reporter" not in {each.code for each in found}


@pytest.mark.parametrize(
    ("annotations", "part"),
    [
        ({PLUGIN: "kernel", NODE: "node1"}, "plugin kernel on node node1"),
        ({PLUGIN: "quota", NODE: "global"}, "plugin quota"),
        ({}, "its aggregator"),
    ],
)
def test_a_job_of_a_run_needs_no_reporter(annotations, part):
    """Its plugin's container delivers to the aggregator, or the Job is the aggregator's."""
    made = without_reporter(job())
    made["metadata"] |= {"labels": {RUN_LABEL: "first"}, "annotations": annotations}
    (found,) = explain(made, pod(change=bare))

    assert ("of-run", Weight.INFO) == (found.code, found.weight)
    assert f"The Job belongs to run first ({part}), whose status has the verdict." == found.what
    assert "status-ctl status first -n default" == found.todo


def test_a_job_of_a_run_with_a_verdict():
    """Both are said, the verdict first."""
    made = job(rows.result(GOOD))
    made["metadata"]["labels"] = {RUN_LABEL: "first"}

    assert ["verdict", "of-run"] == [each.code for each in explain(made, pod())]


def test_a_reporter_that_is_to_write_no_condition():
    """As in a run that may not grant `jobs/status`."""
    made = setting(job(), "REPORT_CONDITION", "false")

    assert [] == explain(made, pod())


def test_a_verdict_whose_reporter_is_nowhere_to_be_seen():
    """It was there when it wrote: nothing is said of the template."""
    made = without_reporter(job(rows.result(GOOD), conditions=[COMPLETE]))

    assert ["verdict", "job-complete"] == [
        each.code for each in explain(made, pod(terminated(0), change=bare, phase="Succeeded"))
    ]


def test_a_job_that_is_being_deleted_has_no_pod_to_wait_for():
    """Its Pod goes before it: nobody has to look for a controller manager."""
    made = job(rows.result(GOOD))
    made["metadata"]["deletionTimestamp"] = "2030-01-01T12:10:00Z"

    assert ["verdict", "deleting"] == [each.code for each in explain(made)]


def test_what_could_not_be_read_is_said():
    """And nothing is concluded from its absence."""
    found = explain(job(), unread={"pods": "forbidden"})

    assert {"unread": "The pods could not be read: forbidden"} == {
        each.code: each.what for each in found
    }


@pytest.mark.parametrize(
    "made", [{}, {"metadata": None, "status": []}, {"metadata": {"annotations": {"a": 1}}}]
)
def test_rubbish_is_no_reason_to_fail(made):
    """Whatever a server answers."""
    assert explain(made, {}, {"status": {"containerStatuses": [{"state": {"waiting": 5}}]}})
