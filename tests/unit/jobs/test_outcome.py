"""When a verdict on a Job is the last one: what `status-ctl wait JOB` goes by."""

import pytest

from reporter.jobs.outcome import JobOutcome, nobody_writes, open_because, outcome
from reporter.jobs.repeats import no_pod_follows
from reporter.verdict import rows
from reporter.verdict.facts import ResultPayload
from tests.fakekube import make_job, make_pod
from tests.verdicts import with_verdicts

TRUE = rows.result(ResultPayload(True, "Fine", "fine"))
FALSE = rows.result(ResultPayload(False, "Bad", "bad"))
UNKNOWN = rows.interrupted("The Pod was deleted", None)
RUNNING = rows.running(None, None)


def ends(kind, status="True"):
    return {"conditions": [{"type": kind, "status": status}]}


def job(*reports, final=True, spec=None, status=None):
    return with_verdicts(
        *reports, final=final, spec={"backoffLimit": 6} | (spec or {}), status=status
    )


NEEDED = ("JOB_NAME", "JOB_NAMESPACE", "POD_NAME")
IGNORED = {"rules": [{"action": "FailJob"}, {"action": "Ignore"}]}
CASES = {
    "nothing yet": (job(), JobOutcome.OPEN),
    "work goes on": (job(RUNNING, final=False), JobOutcome.OPEN),
    "success": (job(TRUE), JobOutcome.GOOD),
    "a success that may still change": (job(TRUE, final=False), JobOutcome.OPEN),
    "the same, when the Job has ended": (
        job(TRUE, final=False, status=ends("Complete")),
        JobOutcome.OPEN,
    ),
    "failure, another Pod may follow": (job(FALSE), JobOutcome.OPEN),
    "Unknown, another Pod may follow": (job(UNKNOWN), JobOutcome.OPEN),
    "failure, the Job is complete": (job(FALSE, status=ends("Complete")), JobOutcome.FAILED),
    "failure, the Job has failed": (job(FALSE, status=ends("Failed")), JobOutcome.FAILED),
    "failure, the Job is failing": (job(FALSE, status=ends("FailureTarget")), JobOutcome.FAILED),
    "failure, the Job's success is sure": (
        job(FALSE, status=ends("SuccessCriteriaMet")),
        JobOutcome.FAILED,
    ),
    "failure, the Job is not failing": (
        job(FALSE, status=ends("Failed", "False")),
        JobOutcome.OPEN,
    ),
    "Unknown, the Job has failed": (job(UNKNOWN, status=ends("Failed")), JobOutcome.FAILED),
    "a revisable failure of a Job that has failed": (
        job(FALSE, final=False, status=ends("Failed")),
        JobOutcome.OPEN,
    ),
    "failure, no retry": (job(FALSE, spec={"backoffLimit": 0}), JobOutcome.FAILED),
    "Unknown, no retry": (job(UNKNOWN, spec={"backoffLimit": 0}), JobOutcome.FAILED),
    "a revisable failure without retry": (
        job(FALSE, final=False, spec={"backoffLimit": 0}),
        JobOutcome.OPEN,
    ),
    "no retry, but this failure may not count": (
        job(UNKNOWN, spec={"backoffLimit": 0, "podFailurePolicy": IGNORED}),
        JobOutcome.OPEN,
    ),
    "no retry, and a rule that ignores nothing": (
        job(FALSE, spec={"backoffLimit": 0, "podFailurePolicy": {"rules": [{"action": "Count"}]}}),
        JobOutcome.FAILED,
    ),
    "suspended: it starts again": (
        job(UNKNOWN, spec={"backoffLimit": 0, "suspend": True}),
        JobOutcome.OPEN,
    ),
    "more Pods are to complete": (
        job(FALSE, spec={"backoffLimit": 0, "completions": 2}),
        JobOutcome.OPEN,
    ),
    "success of one of several": (job(TRUE, spec={"completions": 2}), JobOutcome.OPEN),
    "success of the last of several": (
        job(TRUE, spec={"completions": 2}, status=ends("Complete")),
        JobOutcome.GOOD,
    ),
    "several Pods at once": (
        job(FALSE, spec={"backoffLimit": 0, "parallelism": 2}),
        JobOutcome.OPEN,
    ),
    "two types, one of them open": (job(TRUE, FALSE), JobOutcome.OPEN),
    "two types, one of them failed": (job(TRUE, FALSE, status=ends("Failed")), JobOutcome.FAILED),
    "two types, both good": (job(TRUE, TRUE), JobOutcome.GOOD),
}


@pytest.mark.parametrize("name", CASES)
def test_outcome(name):
    """A final True at once; anything else only when no other Pod can take its place."""
    made, expected = CASES[name]

    assert expected == outcome(made)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(("REPORTER_CONTAINER_NAME",), JobOutcome.OPEN, id="a reporter"),
        pytest.param(("REPORTER_FORM",), JobOutcome.OPEN, id="a reporter that says its form"),
        pytest.param(("CONDITION_TYPE",), JobOutcome.OPEN, id="a reporter of a second type"),
        pytest.param((), JobOutcome.GOOD, id="an adapter that knows its Job"),
    ],
)
def test_a_second_reporter_that_has_said_nothing_is_waited_for(more, expected):
    """Two in one Pod, each with a type of its own; an adapter is not a reporter."""
    made = job(TRUE)
    containers = made["spec"]["template"]["spec"]["containers"]
    entries = [{"name": name, "value": "x"} for name in (*NEEDED, *more)]
    containers.append({"name": "second", "env": entries})

    assert expected == outcome(made)


def test_a_reporter_by_another_name():
    """The three variables are enough where no container says that it is a reporter."""
    container = {"name": "verdict", "env": [{"name": name} for name in NEEDED]}

    assert "" == open_because(job(spec={"template": {"spec": {"containers": [container]}}}))


def writes(value):
    """A reporter whose REPORT_CONDITION is this."""
    variables = {**dict.fromkeys(NEEDED, "x"), "REPORT_CONDITION": value}
    env = [{"name": name, "value": each} for name, each in variables.items()]
    return {"name": "verdict", "env": env}


@pytest.mark.parametrize(
    ("values", "silent"),
    [(["false"], True), (["0"], True), (["true"], False), ([""], False), (["false", "t"], False)],
    ids=["false", "0", "true", "empty", "one of two"],
)
def test_a_reporter_that_writes_no_condition_is_waited_for_in_vain(values, silent):
    """Its Job says so from the beginning, not only at the end."""
    template = {"spec": {"containers": [writes(value) for value in values]}}
    words = "its status reporter writes no condition (REPORT_CONDITION=false); waiting"

    assert (words if silent else "") == open_because(job(spec={"template": template}))


def test_one_that_writes_no_condition_is_not_waited_for_beside_one_that_does():
    """The other's word is all there will be."""
    template = {"spec": {"containers": [writes("false"), writes("true")]}}

    assert JobOutcome.GOOD == outcome(job(TRUE, spec={"template": template}))


def test_the_word_of_an_older_reporter_counts():
    """It writes no annotation, and only verdicts."""
    made = job(TRUE)
    del made["metadata"]["annotations"]

    assert JobOutcome.GOOD == outcome(made)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (job(), ""),
        (job(RUNNING, final=False), ""),
        (job(TRUE), ""),
        (job(FALSE), "Available=False Bad: bad (the Job may start another Pod); waiting"),
        (
            job(TRUE, final=False),
            "Available=True Fine: fine (not final: the adapter may run again); waiting",
        ),
        (
            job(TRUE, final=False, status=ends("Complete")),
            "Available=True Fine: fine (not final yet); waiting",
        ),
        (
            job(rows.trouble("W1", "no such image"), final=False),
            "Available=False AdapterImagePullFailed: no such image (not final: the adapter may "
            "still start); waiting",
        ),
        (
            job(rows.timeout(300.0, refused=False), final=False),
            "Available=False AdapterTimeout: Adapter did not produce results within 5m0s (not "
            "final yet); waiting",
        ),
        (job(FALSE, spec={"suspend": True}), "suspended; waiting"),
        (
            job(spec={"template": {"spec": {"containers": [{"name": "adapter"}]}}}),
            "no status reporter in its Pod template; waiting",
        ),
    ],
)
def test_why_it_is_not_decided(made, words):
    """Said where somebody may wonder."""
    assert words == open_because(made)


@pytest.mark.parametrize(
    ("status", "phases", "expected"),
    [
        (None, (), False),
        (ends("Failed"), (), True),
        (ends("Failed"), ("Failed", "Succeeded"), True),
        (ends("Failed"), ("Failed", "Running"), False),
        (ends("Complete"), ("Pending",), False),
    ],
)
def test_who_could_still_write(status, phases, expected):
    """While a Pod is not over its reporter may be at work."""
    pods = [make_pod(make_job(), phase=phase) for phase in phases]

    assert expected == nobody_writes(job(status=status), pods)


def test_a_job_that_shows_no_limit_may_start_more_pods():
    """An answer with a part missing decides nothing."""
    made = job(FALSE)
    del made["spec"]["backoffLimit"]

    assert not no_pod_follows(made)
