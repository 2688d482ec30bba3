"""The Event that announces a final verdict: what it says, its name, and what the API accepts."""

import hashlib
import json

import pytest

from reporter.jobs.finding import last_event
from reporter.verdict.condition import Attempt, Statement, build_event
from reporter.verdict.rows import Report
from tests.fakekube.events import created

DONE = Report("R", "True", "AllChecked", "12 of 12")
ATTEMPT = Attempt("validate-x7k2p", "pod-uid", 1.0, 2.0)


def event(
    report=DONE,
    attempt=ATTEMPT,
    now=1893499200.25,
    *,
    job_name="validate",
    kind="Available",
    late=False,
):
    """The Event of a Job, checked as the API server checks it."""
    made = build_event(
        Statement(report, True, attempt, {}, now),
        namespace="space",
        job_name=job_name,
        job_uid="job-uid",
        condition_type=kind,
        late=late,
    )
    created(json.dumps(made).encode(), "space", "application/json", "Strict")
    return made


def name(**options):
    """The Event's name."""
    return event(**options)["metadata"]["name"]


def test_the_event_to_the_letter():
    """Reason and message of the condition, on the Job, from the reporter in its Pod."""
    assert {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "validate.e459748ca6638d3a", "namespace": "space"},
        "eventTime": "2030-01-01T12:00:00.250000Z",
        "reportingController": "status-reporter",
        "reportingInstance": "validate-x7k2p",
        "action": "Report",
        "type": "Normal",
        "reason": "AllChecked",
        "note": "12 of 12",
        "regarding": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "space",
            "name": "validate",
            "uid": "job-uid",
        },
    } == event()


@pytest.mark.parametrize(
    ("status", "expected"), [("True", "Normal"), ("False", "Warning"), ("Unknown", "Warning")]
)
def test_only_a_good_verdict_is_normal(status, expected):
    """Whoever looks for warnings finds the others."""
    assert expected == event(Report("X", status, "Reason", "m"))["type"]


def test_one_name_for_one_attempt_and_type():
    """Whatever the verdict and the time: a second Event of an attempt is refused by its name."""
    assert name() == name(report=Report("X", "False", "Other", "m"), now=5.0)


def test_a_late_result_has_a_name_of_its_own():
    """Of Pod UID, type and `/late`, whichever process sends it."""
    digest = hashlib.sha256(b"pod-uid/Available/late").hexdigest()[:16]

    assert f"validate.{digest}" == name(late=True)


def test_other_attempts_and_types_have_other_names():
    """Two Pods of a Job, and two reporters in one Pod, each have their own."""
    names = {
        name(),
        name(attempt=Attempt("validate-x7k2p", "another", 1.0, 2.0)),
        name(attempt=Attempt("validate-x7k2p", "", None, 2.0)),
        name(attempt=Attempt("validate-zzzzz", "", None, 2.0)),
        name(kind="example.com/Checked"),
        name(job_name="another"),
    }

    assert 6 == len(names)


@pytest.mark.parametrize(
    "options",
    [
        {"report": Report("R", "False", "ü" * 64, "ü" * 512)},
        {"attempt": Attempt("p" * 253, "", None, 0.0)},
        {"job_name": "a" * 253},
        {"job_name": "a" * 199 + "-b"},
        {"job_name": "a" * 199 + ".b"},
        {"now": 1893499200.0},
    ],
)
def test_what_is_long_is_cut_to_what_the_api_accepts(options):
    """A refused Event would be a lost one."""
    assert event(**options)


def test_the_reporters_own_events_explain_nothing():
    """Their reasons may be an adapter's words: they are no evidence of what the cluster did."""
    theirs = {"reason": "FailedCreate", "message": "no quota", "reportingComponent": "job-control"}
    ours = {"reason": "FailedCreate", "message": "!", "reportingComponent": "status-reporter"}

    assert "" == last_event([ours], "FailedCreate")
    assert "FailedCreate: no quota" == last_event([ours, theirs], "FailedCreate")
