"""What `explain` says of a Job: without a reporter, deleted, ended, unreadable."""

import pytest

from reporter.jobs.finding import Weight
from reporter.run.names import NODE, PLUGIN, RUN_LABEL
from reporter.verdict import rows
from reporter.verdict.facts import Running
from tests.fakekube import terminated
from tests.unit.jobs.world import (
    COMPLETE,
    FAILED,
    GOOD,
    bare,
    event,
    explain,
    job,
    pod,
    setting,
    without_reporter,
)

JOBS = {
    "no reporter at all": (
        without_reporter(job()),
        [pod(change=bare)],
        "no-reporter",
        "No status reporter runs in this Job's Pods",
        "kustomize component",
    ),
    "wait time beyond the Job's deadline": (
        setting(job(spec={"activeDeadlineSeconds": 60}), "MAX_WAIT_TIME_SECONDS", "120"),
        [pod()],
        "wait-beyond-deadline",
        "may wait 2m0s, but the Job's activeDeadlineSeconds ends all work after 1m0s",
        "at most 50, or the deadline to at least 130",
    ),
    "default wait time beyond the deadline": (
        job(spec={"activeDeadlineSeconds": 300}),
        [pod()],
        "wait-beyond-deadline",
        "may wait 5m0s, but the Job's activeDeadlineSeconds ends all work after 5m0s",
        "at most 290, or the deadline to at least 310",
    ),
    "poll interval beyond the wait time": (
        setting(job(), "POLL_INTERVAL_SECONDS", "300"),
        [pod()],
        "settings",
        "POLL_INTERVAL_SECONDS (300) has to be less than MAX_WAIT_TIME_SECONDS (300)",
        "shorter interval",
    ),
    "another Job's name": (
        setting(job(), "JOB_NAME", "other"),
        [pod()],
        "settings",
        "has JOB_NAME=other, but this Job's name is validate",
        "Set JOB_NAME to validate",
    ),
    "no such container": (
        setting(job(), "ADAPTER_CONTAINER_NAME", "main"),
        [pod()],
        "settings",
        "finds no adapter: 'main' is not a container of the Pod; containers: adapter",
        "ADAPTER_CONTAINER_NAME",
    ),
    "several Pods at once": (
        job(spec={"parallelism": 3}),
        [pod()],
        "parallel",
        "only the verdict of the newest one counts",
        "one Job for each",
    ),
    "deadline that leaves no time to wait": (
        job(spec={"activeDeadlineSeconds": 6}),
        [pod()],
        "wait-beyond-deadline",
        "ends all work after 6s",
        "Set the deadline to at least 310.",
    ),
    "suspended": (
        job(spec={"suspend": True}),
        [],
        "suspended",
        "The Job is suspended",
        'kubectl patch job validate -p \'{"spec":{"suspend":false}}\'',
    ),
    "no Pod can be made": (
        job(),
        [],
        "no-pod",
        "cannot create its Pod (FailedCreate: exceeded quota)",
        "quota",
    ),
    "no Pod yet": (job(), [], "no-pod", "The Job has no Pod.", "controller manager"),
    "Pods are gone": (
        job(rows.result(GOOD), conditions=[COMPLETE]),
        [],
        "pods-gone",
        "Its Pods are gone, and their logs with them",
        "",
    ),
    "back-off limit": (
        job(rows.timeout(300), conditions=[FAILED]),
        [],
        "job-failed",
        "(BackoffLimitExceeded): its Pods failed more often",
        "",
    ),
    "nothing written": (job(), [pod()], "no-condition", "has written nothing", "kubectl logs"),
    "the reporter died with its Pod": (
        job(rows.running(Running(), None), final=False, conditions=[FAILED]),
        [],
        "reporter-gone",
        "the reporter was killed together with its Pod",
        "run the Job again",
    ),
    "a verdict of an earlier Pod": (
        job(rows.timeout(300), pod="validate-old"),
        [pod()],
        "earlier-attempt",
        "to an earlier attempt (Pod validate-old); there is now Pod validate-x7k2p",
        "",
    ),
    "Pods refused to the reporter": (
        job(rows.timeout(300, refused=True), evidence={"pod": {"look": "forbidden"}}),
        [pod()],
        "missing-rights",
        "is not allowed to read its Pod",
        "pods: get, watch",
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_every_situation_of_a_job(name):
    """What is said beside the verdict, or instead of one."""
    made, pods, code, said, todo = JOBS[name]
    quota = [event("FailedCreate", "exceeded quota", name="validate")]
    events = quota if name == "no Pod can be made" else []
    found = [each for each in explain(made, *pods, events=events) if each.code == code]

    assert found, code
    assert any(said in each.what and todo in each.todo for each in found)


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


def test_a_job_that_is_being_deleted():
    """Said, beside its verdict."""
    made = job(rows.result(GOOD))
    made["metadata"]["deletionTimestamp"] = "2030-01-01T12:10:00Z"

    assert "deleting" in [each.code for each in explain(made, pod())]


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
