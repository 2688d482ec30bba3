"""When a verdict on a Job is the last one: what `status-ctl wait JOB` goes by."""

import pytest

from reporter.jobs.job import JobView, Outcome
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
    "nothing yet": (job(), Outcome.OPEN),
    "work goes on": (job(RUNNING, final=False), Outcome.OPEN),
    "success": (job(TRUE), Outcome.GOOD),
    "a success that may still change": (job(TRUE, final=False), Outcome.OPEN),
    "the same, when the Job has ended": (
        job(TRUE, final=False, status=ends("Complete")),
        Outcome.OPEN,
    ),
    "failure, another Pod may follow": (job(FALSE), Outcome.OPEN),
    "Unknown, another Pod may follow": (job(UNKNOWN), Outcome.OPEN),
    "failure, the Job is complete": (job(FALSE, status=ends("Complete")), Outcome.FAILED),
    "failure, the Job has failed": (job(FALSE, status=ends("Failed")), Outcome.FAILED),
    "failure, the Job is failing": (job(FALSE, status=ends("FailureTarget")), Outcome.FAILED),
    "failure, the Job's success is sure": (
        job(FALSE, status=ends("SuccessCriteriaMet")),
        Outcome.FAILED,
    ),
    "failure, the Job is not failing": (
        job(FALSE, status=ends("Failed", "False")),
        Outcome.OPEN,
    ),
    "Unknown, the Job has failed": (job(UNKNOWN, status=ends("Failed")), Outcome.FAILED),
    "a revisable failure of a Job that has failed": (
        job(FALSE, final=False, status=ends("Failed")),
        Outcome.OPEN,
    ),
    "failure, no retry": (job(FALSE, spec={"backoffLimit": 0}), Outcome.FAILED),
    "Unknown, no retry": (job(UNKNOWN, spec={"backoffLimit": 0}), Outcome.FAILED),
    "a revisable failure without retry": (
        job(FALSE, final=False, spec={"backoffLimit": 0}),
        Outcome.OPEN,
    ),
    "no retry, but this failure may not count": (
        job(UNKNOWN, spec={"backoffLimit": 0, "podFailurePolicy": IGNORED}),
        Outcome.OPEN,
    ),
    "no retry, and a rule that ignores nothing": (
        job(FALSE, spec={"backoffLimit": 0, "podFailurePolicy": {"rules": [{"action": "Count"}]}}),
        Outcome.FAILED,
    ),
    "suspended: it starts again": (
        job(UNKNOWN, spec={"backoffLimit": 0, "suspend": True}),
        Outcome.OPEN,
    ),
    "more Pods are to complete": (
        job(FALSE, spec={"backoffLimit": 0, "completions": 2}),
        Outcome.OPEN,
    ),
    "success of one of several": (job(TRUE, spec={"completions": 2}), Outcome.OPEN),
    "success of the last of several": (
        job(TRUE, spec={"completions": 2}, status=ends("Complete")),
        Outcome.GOOD,
    ),
    "several Pods at once": (
        job(FALSE, spec={"backoffLimit": 0, "parallelism": 2}),
        Outcome.OPEN,
    ),
    "two types, one of them open": (job(TRUE, FALSE), Outcome.OPEN),
    "two types, one of them failed": (job(TRUE, FALSE, status=ends("Failed")), Outcome.FAILED),
    "two types, both good": (job(TRUE, TRUE), Outcome.GOOD),
}


@pytest.mark.parametrize("name", CASES)
def test_outcome(name):
    """A final True at once; anything else only when no other Pod can take its place."""
    made, expected = CASES[name]

    assert expected == JobView(made).outcome


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(("REPORTER_CONTAINER_NAME",), Outcome.OPEN, id="a reporter"),
        pytest.param(("REPORTER_FORM",), Outcome.OPEN, id="a reporter that says its form"),
        pytest.param(("CONDITION_TYPE",), Outcome.OPEN, id="a reporter of a second type"),
        pytest.param((), Outcome.GOOD, id="an adapter that knows its Job"),
    ],
)
def test_a_second_reporter_that_has_said_nothing_is_waited_for(more, expected):
    """Two in one Pod, each with a type of its own; an adapter is not a reporter."""
    made = job(TRUE)
    containers = made["spec"]["template"]["spec"]["containers"]
    entries = [{"name": name, "value": "x"} for name in (*NEEDED, *more)]
    containers.append({"name": "second", "env": entries})

    assert expected == JobView(made).outcome


def test_a_reporter_by_another_name():
    """The three variables are enough where no container says that it is a reporter."""
    container = {"name": "verdict", "env": [{"name": name} for name in NEEDED]}

    assert "" == JobView(job(spec={"template": {"spec": {"containers": [container]}}})).open_because


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

    assert (words if silent else "") == JobView(job(spec={"template": template})).open_because


def test_one_that_writes_no_condition_is_not_waited_for_beside_one_that_does():
    """The other's word is all there will be."""
    template = {"spec": {"containers": [writes("false"), writes("true")]}}

    assert Outcome.GOOD == JobView(job(TRUE, spec={"template": template})).outcome


def test_the_word_of_an_older_reporter_counts():
    """It writes no annotation, and only verdicts."""
    made = job(TRUE)
    del made["metadata"]["annotations"]

    assert Outcome.GOOD == JobView(made).outcome


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
            job(rows.trouble(rows.Row.IMAGE, "no such image"), final=False),
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
    assert words == JobView(made).open_because


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

    assert expected == JobView(job(status=status)).nobody_writes(pods)


def test_a_job_that_shows_no_limit_may_start_more_pods():
    """An answer with a part missing decides nothing."""
    made = job(FALSE)
    del made["spec"]["backoffLimit"]

    assert not JobView(made).last_pod
