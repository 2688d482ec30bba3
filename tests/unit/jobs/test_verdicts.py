"""What `explain` says of each verdict of the contract."""

import json

import pytest

from reporter.jobs import finding
from reporter.jobs.check_job import Look, findings
from reporter.jobs.finding import Weight
from reporter.jobs.job import JobView
from reporter.verdict import rows
from reporter.verdict.evidence import shown_container
from reporter.verdict.facts import (
    Container,
    FileInvalid,
    Progress,
    ResultPayload,
    Running,
    Terminated,
    Waiting,
)
from tests.fakekube import terminated, waiting
from tests.unit.jobs.world import (
    BAD,
    COMPLETE,
    EXITED,
    GOOD,
    NOW,
    POD,
    event,
    explain,
    job,
    pod,
    without_reporter,
)

EXIT = rows.exited(EXITED, result_required=True)
VERDICTS = [
    ("", rows.result(GOOD), {}, "Available=True AllChecked: 12 of 12 (final)"),
    ("R", rows.result(BAD), {}, "Available=False QuotaMissing: no quota"),
    (
        "T",
        rows.timeout(300),
        {"adapter": {"container": "adapter", "restarts": 0, "state": "running"}},
        "Adapter did not produce results within 5m0s",
    ),
    ("O", rows.out_of_memory(), {}, "OOMKilled"),
    (
        "I",
        rows.invalid(FileInvalid("not JSON", None)),
        {"file": {"state": "invalid", "cause": "not JSON"}},
        "Failed to parse adapter result: not JSON",
    ),
    ("X", EXIT, {"adapter": {"state": "terminated", "exitCode": 3}}, "exited with code 3"),
    (
        "contradicted",
        EXIT,
        {"file": {"state": "valid", "resultReason": "AllChecked"}},
        "exited with code 3",
    ),
    (
        "missing",
        rows.exited(Terminated(0, "Completed"), result_required=True),
        {"file": {"state": "absent"}},
        "did not produce a valid result file",
    ),
    ("", rows.exited(Terminated(0), result_required=False), {}, "AdapterSucceeded"),
    (
        "W1",
        rows.trouble(rows.Row.IMAGE, "ErrImageNeverPull: no"),
        {},
        "AdapterImagePullFailed: ErrImageN",
    ),
    ("W2", rows.trouble(rows.Row.CONFIG, 'configmap "x" not found'), {}, 'configmap "x" not found'),
    (
        "W3",
        rows.trouble(rows.Row.START, "StartError: no such file"),
        {},
        "AdapterStartFailed: StartError",
    ),
    (
        "C",
        rows.crash_looping(Container("adapter", Waiting("CrashLoopBackOff"), EXITED, 4)),
        {},
        "last exit code 3, restarted 4 times",
    ),
    ("D", rows.deadline("Job", 60), {}, "within the Job's activeDeadlineSeconds (1m0s)"),
    (
        "E",
        rows.evicted("EvictionByEvictionAPI", "drained"),
        {"pod": {"look": "seen", "disruption": "EvictionByEvictionAPI: drained"}},
        "disrupted: EvictionByEvictionAPI: drained",
    ),
    ("N", rows.interrupted("The Pod was deleted", Running()), {}, "The Pod was deleted before a"),
    (
        "M",
        rows.misfit("'x' is not a container of the Pod"),
        {},
        "'x' is not a container of the Pod",
    ),
    (
        "",
        rows.running(Running(), Progress("step 3", 10, 3, (), ())),
        {},
        "3 of 10 completed, step 3",
    ),
]


@pytest.mark.parametrize(("advice", "report", "evidence", "said"), VERDICTS)
def test_every_row_of_the_contract(advice, report, evidence, said):
    """The condition in one line, its evidence, and what that row asks people to do."""
    first, *_ = explain(job(report, evidence=evidence), pod())

    assert "verdict" == first.code
    assert said in first.what
    adapter = " -c adapter" if "container" in evidence.get("adapter", {}) else ""
    log = f"kubectl logs {POD} -n default{adapter}"
    assert finding.advice().get(advice, "").format(log=log) == first.todo
    good = report.status == "True" or report.row == "A"
    assert (Weight.INFO if good else Weight.PROBLEM) == first.weight


def test_the_table_has_no_other_advice():
    others = {"after", "late", "looping", "failed", "forbidden", "unwritten", "passed"}
    assert set(finding.advice()) - others == {each[0] for each in VERDICTS} - {""}


@pytest.mark.parametrize("forbidden", [True, False])
def test_a_verdict_that_could_not_be_written_is_known(forbidden):
    """As the reaper has read it; only after a success is another run of no use."""
    for report, passed in (
        (rows.result(BAD), False),
        (rows.timeout(300), False),
        (rows.interrupted("Pod was deleted", None), False),
        (rows.result(GOOD), True),
    ):
        words = rows.last_words(report, "no rights", forbidden=forbidden)
        first, *_ = explain(job(rows.unwritten(words)))

        said = f"the verdict was {report.status} {report.reason}: {report.message}; writing it"
        assert said in first.what
        assert forbidden == ("jobs/status: get, patch" in first.todo)
        assert passed == ("need not run again" in first.todo)


def test_a_long_message_hides_no_missing_right():
    """Of an adapter, and of the API server; the Job has several completions."""
    long = rows.result(ResultPayload(True, "R" * 128, "m" * 1024))
    words = rows.last_words(long, f"jobs.batch is forbidden: {'x' * 1024}", forbidden=True)
    written = rows.of_index(rows.unwritten(words), 100_000, completions=100_001)
    first, *_ = explain(job(written))

    assert words in written.message
    assert "; writing it was forbidden: jobs.batch is forbidden: " in first.what
    assert "jobs/status: get, patch" in first.todo


def test_the_evidence_is_told_in_words():
    """What the annotation holds, one fact a line."""
    evidence = {
        "file": {"state": "invalid", "cause": "not JSON"},
        "adapter": {
            "container": "adapter",
            "restarts": 2,
            "state": "waiting",
            "reason": "CrashLoopBackOff",
            "last": {"exitCode": 137, "maybeOutOfMemory": True},
        },
        "lastEndedRun": {"exitCode": 1, "reason": "Error"},
        "pod": {
            "look": "gone",
            "disruption": "Preempted: by x",
            "blockedBy": {"container": "init", "state": "terminated", "exitCode": 2},
        },
        "reaper": {},
        "waitedSeconds": 12.3,
    }
    first, *_ = explain(job(rows.timeout(300), evidence=evidence), pod())

    assert (
        "result file: invalid (not JSON)",
        "adapter 'adapter': waiting (CrashLoopBackOff), restarted 2 times; previous run: exit "
        "code 137, killed, possibly out of memory",
        "its last run that ended: exit code 1 (Error)",
        "init container 'init' blocks it: exit code 2",
        "the Pod was disrupted: Preempted: by x",
        "reading the Pod: gone",
        "written by status-ctl reap, which cannot read the result file",
        f"waited 12 s; seen at 2030-01-01T12:00:30Z in Pod {POD}",
    ) == first.evidence


_LOOP = Waiting("CrashLoopBackOff", "back-off 2m40s restarting failed container")
_EXIT_1 = {"exitCode": 1, "reason": "Error"}


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (
            {"adapter": shown_container(Container("adapter", _LOOP, EXITED, 5))},
            "fails repeatedly, last with exit code 3. ",
        ),
        (
            {"adapter": shown_container(Container("adapter", _LOOP, None, 5))},
            "fails repeatedly. ",
        ),
        (
            {"adapter": {"state": "running", "restarts": 4, "last": _EXIT_1}},
            "fails repeatedly, last with exit code 1. ",
        ),
        (
            {"adapter": {"state": "terminated", "restarts": 4, **_EXIT_1, "last": {"exitCode": 2}}},
            "fails repeatedly, last with exit code 1. ",
        ),
        (
            {"adapter": {"state": "running", "restarts": 4}, "lastEndedRun": _EXIT_1},
            "fails repeatedly, last with exit code 1. ",
        ),
    ],
    ids=["waits", "its last run is unknown", "runs again", "just ended", "only remembered"],
)
def test_the_wait_time_ends_in_a_crash_loop(evidence, said):
    """More time would not help: the log of the run before says why it fails."""
    first, *_ = explain(job(rows.timeout(300), evidence=evidence), pod())

    assert said in first.todo
    adapter = " -c adapter" if "container" in evidence["adapter"] else ""
    assert f"kubectl logs {POD} -n default{adapter} --previous" in first.todo
    assert "MAX_WAIT_TIME_SECONDS" not in first.todo
    assert "hangs" not in first.todo


@pytest.mark.parametrize(
    "adapter",
    [
        {"state": "running", "restarts": 0},
        {"state": "running", "restarts": 4, "last": {"exitCode": 0}},
        {"state": "waiting", "restarts": 0, "reason": "PodInitializing"},
    ],
)
def test_the_wait_time_ends_without_a_failed_run(adapter):
    """It may hang, or need more time."""
    first, *_ = explain(job(rows.timeout(300), evidence={"adapter": adapter}), pod())

    assert "MAX_WAIT_TIME_SECONDS" in first.todo
    assert "--previous" not in first.todo


def test_the_wait_time_ends_after_one_failed_run():
    """The run after it may hang all the same: both are told."""
    adapter = {"state": "running", "restarts": 1, "last": _EXIT_1}
    first, *_ = explain(job(rows.timeout(300), evidence={"adapter": adapter}), pod())

    assert "A run of the adapter failed with exit code 1: " in first.todo
    assert f"kubectl logs {POD} -n default --previous" in first.todo
    assert "MAX_WAIT_TIME_SECONDS" in first.todo


def test_a_deadline_passes_in_the_fifth_run():
    """It was running then; a longer deadline alone would only let it fail more often."""
    adapter = {"state": "running", "restarts": 4, "last": _EXIT_1}
    first, *_ = explain(job(rows.deadline("Job", 600), evidence={"adapter": adapter}), pod())

    assert "fails repeatedly, last with exit code 1. " in first.todo
    assert "activeDeadlineSeconds" not in first.todo


def test_a_good_verdict_alone_is_all_that_is_said():
    """No advice where nothing is wrong."""
    done = pod(terminated(0), phase="Succeeded")
    found = explain(job(rows.result(GOOD), conditions=[COMPLETE]), done)

    assert ["verdict", "job-complete"] == [each.code for each in found]
    assert {Weight.INFO} == {each.weight for each in found}


def test_a_success_that_was_contradicted():
    """It is a warning, and tells how the adapter ended."""
    after = {"exitCode": 137, "reason": "OOMKilled"}
    first, *_ = explain(job(rows.result(GOOD), after=after), pod())

    assert Weight.WARNING == first.weight
    assert "after that the adapter ended: exit code 137 (OOMKilled)" in first.evidence


def test_a_result_that_came_after_the_timeout():
    late = {"observedAt": "2030-01-01T12:06:00Z", "status": "True", "reason": "AllChecked"}
    first, *_ = explain(job(rows.timeout(300), late=late), pod())

    assert (
        "a result arrived after the verdict: True AllChecked (2030-01-01T12:06:00Z)"
        in first.evidence
    )
    assert first.todo.startswith("The adapter needs more time: raise MAX_WAIT_TIME_SECONDS")


def test_a_condition_of_an_older_reporter():
    """Without an annotation it counts by its type; whether it is final nobody knows."""
    made = job()
    made["status"]["conditions"] = [
        {"type": "Available", "status": "False", "reason": "AdapterTimeout", "message": "m"}
    ]
    (verdict,) = JobView(made).verdicts
    first, *_ = explain(made, pod())

    assert (None, "") == (verdict.final, verdict.row)
    assert "Available=False AdapterTimeout: m" == first.what
    assert "MAX_WAIT_TIME_SECONDS" in first.todo


def test_a_foreign_condition_is_not_ours():
    """Neither the Job controller's nor somebody else's."""
    made = without_reporter(job(conditions=[COMPLETE, {"type": "Mine", "status": "True"}]))

    assert [] == JobView(made).verdicts


@pytest.mark.parametrize("reason", ["AdapterExitedWithError", "AdapterMissingResults", "Odd"])
def test_the_row_of_a_condition_without_an_annotation(reason):
    """By its reason; another one is the adapter's own word."""
    made = job()
    made["status"]["conditions"] = [
        {"type": "Available", "status": "False", "reason": reason, "message": "m"}
    ]
    first, *_ = explain(made, pod())
    todo = {"AdapterExitedWithError": "log", "AdapterMissingResults": "RESULT_REQUIRED"}

    assert todo.get(reason, "reported this itself") in first.todo


def test_progress_of_a_second_verdict():
    """Two reporters with two types: both are told."""
    found = explain(job(rows.result(GOOD), rows.timeout(12)), pod())

    assert ["Available=True", "Other1=False"] == [
        each.what.split()[0] for each in found if each.code == "verdict"
    ]


def test_an_annotation_that_is_not_ours():
    """Not JSON, or of another shape: the condition counts as one without."""
    made = job()
    made["metadata"]["annotations"] = {
        "status-reporter.io/Available": "{",
        "status-reporter.io/run-status": json.dumps({"status": "running"}),
    }

    assert [] == JobView(made).verdicts


def test_an_image_that_is_not_there_is_told_once():
    """By the verdict; neither its evidence nor the Event that says the same comes with it."""
    cause = 'failed to resolve reference "x:1": not found'
    verdict = rows.trouble(rows.Row.IMAGE, f"container 'adapter': ErrImagePull: {cause}")
    state = waiting("ImagePullBackOff", 'Back-off pulling image "x:1"')
    shown = shown_container(Container("adapter", Waiting("ErrImagePull", cause), None, 0))
    said = event("Failed", f'Failed to pull image "x:1": {cause}')
    made = job(verdict, final=False, evidence={"adapter": shown})
    first, *others = explain(made, pod(state, phase="Pending"), events=[said])

    assert () == tuple(each for each in first.evidence if cause in each)
    assert [] == [each for each in others if "pull" in each.what]


@pytest.mark.parametrize("reason", ["PodInitializing", "ContainerCreating", "CrashLoopBackOff"])
def test_a_result_that_came_before_the_kubelets_word(reason):
    """It is final; that the container was about to start is no news."""
    shown = shown_container(Container("adapter", Waiting(reason), None, 0))
    first, *_ = explain(job(rows.result(BAD), evidence={"adapter": shown}), pod(terminated(1)))

    assert (reason == "CrashLoopBackOff") == any(reason in each for each in first.evidence)


def test_what_the_log_has_is_not_told_twice():
    """The kubelet takes the end of a log for the termination message."""
    shown = shown_container(Container("adapter", Terminated(1, "Error", message="no quota"), None))
    made = job(rows.result(BAD), evidence={"adapter": shown})
    for printed, expected in (("begin\nno quota\n", False), ("another\n", True), ("", True)):
        look = Look(JobView(made), [pod(terminated(1))], NOW, printed=printed)
        first, *_ = findings(look)

        told = next(each for each in first.evidence if each.startswith("adapter 'adapter'"))
        assert expected == ("no quota" in told)
