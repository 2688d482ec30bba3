"""RESULT_TRUST=at-exit: a result is the verdict once the adapter has ended, and its end counts."""

from dataclasses import replace

import pytest

from reporter.verdict.case import Policy
from reporter.verdict.evidence import evidence
from reporter.verdict.facts import (
    Disruption,
    Form,
    Job,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodUnknown,
    Waiting,
)
from tests.saying import said, seen
from tests.situations import (
    BAD,
    GOOD,
    LOOPING,
    LOST,
    OOM,
    again,
    at,
    deleted,
    ended,
    in_form,
    later,
    observed,
    pod,
    retried,
    running,
    valid,
)

AT_EXIT = Policy(at_exit=True)
FAILURE = "R! False QuotaLow: 2 of 12 failed"
RECEIVED = "A? ...; result received: AllChecked"
DRAINED = Disruption("EvictionByEvictionAPI", "drained")
THROWN_AWAY = Job(failure="BackoffLimitExceeded")
LIMITED = Job(started_at=at(0), deadline=20.0)
# As a deletion leaves it: without `lastState`.
BETWEEN_RUNS = retried(LOOPING)

misfit = pod(adapter=None, misfit="no container 'adapter'; containers: worker")


def extra_run(ended_run, result=GOOD):
    """The run after this one is stopped, because the Job has used up its back-off limit."""
    file = valid(9, result)
    second = deleted(again(running(12), last=ended_run), 13)
    return observed((11, retried(ended_run), file), (13, second, file), job=THROWN_AWAY, stopped=13)


SITUATIONS = {
    # while it runs
    "success while it runs": (RECEIVED, (3, pod(running()), valid())),
    "failure while it runs": (
        "A? ...; result received: QuotaLow",
        (3, pod(running()), valid(result=BAD)),
    ),
    "success, the API still shows it waiting": (
        "A? is waiting: PodInitializing; result received: AllChecked",
        (3, pod(Waiting("PodInitializing")), valid()),
    ),
    "OnFailure: success while it runs": (RECEIVED, (3, retried(running()), valid())),
    # it ended by itself
    "success and exit 0": ("R!", (11, pod(ended(0)), valid())),
    "success and exit 1": ("X!", (11, pod(ended(1)), valid())),
    "success and OOM kill": ("O!", (11, pod(OOM), valid())),
    "success and OOM kill of a child, exit 0": ("O!", (11, pod(ended(0, "OOMKilled")), valid())),
    "failure and exit 0": (FAILURE, (11, pod(ended(0)), valid(result=BAD))),
    "failure and exit 1": (FAILURE, (11, pod(ended(1)), valid(result=BAD))),
    "failure and OOM kill": (FAILURE, (11, pod(OOM), valid(result=BAD))),
    "success and container lost": ("R!", (11, pod(LOST), valid())),
    "success and exit 1, then deletion": ("X!", (25, deleted(pod(ended(1)), 20), valid())),
    # under OnFailure it may run again
    "OnFailure: success and exit 0": ("R!", (11, retried(ended(0)), valid())),
    "OnFailure: success and exit 1, it runs again": (
        "A? ended with exit code 1",
        (11, retried(ended(1)), valid()),
    ),
    "OnFailure: success and exit 1, in back-off": (
        "A? is waiting: CrashLoopBackOff",
        (11, again(LOOPING, restarts=0), valid()),
    ),
    "OnFailure: failure and exit 1, in back-off": (
        "A? is waiting: CrashLoopBackOff; result received: QuotaLow",
        (11, again(LOOPING, restarts=0), valid(result=BAD)),
    ),
    "OnFailure: success and exit 1, in a crash loop": (
        "C?",
        (31, again(LOOPING, last=ended(1, start=20, end=30), restarts=2), valid(25)),
    ),
    "OnFailure: success and exit 1, in back-off at the end of the wait time": (
        "T!",
        (301, again(LOOPING, restarts=0), valid()),
    ),
    "OnFailure: failure and exit 1, in back-off at the end of the wait time": (
        FAILURE,
        (301, again(LOOPING, restarts=0), valid(result=BAD)),
    ),
    "OnFailure: the second run has a result": (RECEIVED, (22, again(running(20)), valid(21))),
    "back-off limit: success and exit 1 of the run before the extra run": (
        "X!",
        extra_run(ended(1)),
    ),
    "back-off limit: success and exit 1, the last state not shown any more": (
        "X!",
        observed(
            (11, again(LOOPING, restarts=0), valid(9)),
            (13, deleted(BETWEEN_RUNS, 13), valid(9)),
            job=THROWN_AWAY,
            stopped=13,
        ),
    ),
    "deadline: success and exit 1, the last state not shown any more": (
        "X! ...; the Job's activeDeadlineSeconds (20s) passed",
        observed(
            (19, again(LOOPING, restarts=0), valid(9)),
            (20, deleted(BETWEEN_RUNS, 20), valid(9)),
            job=LIMITED,
            stopped=20,
        ),
    ),
    "the Pod's deadline, whose time is that of the run's end: success and exit 1": (
        "X! ...; the Pod's activeDeadlineSeconds (20s) passed",
        observed(
            (19, again(LOOPING, restarts=0, deadline=20.0), valid(9)),
            (20, again(LOOPING, restarts=0, deadline=20.0, failing_at=at(10)), valid(9)),
            stopped=20,
        ),
    ),
    "deletion: success and exit 1, then an end that the kubelet has invented": (
        "N! Pod was deleted ... ended with exit code 137",
        observed(
            (19, again(LOOPING, restarts=0), valid(9)),
            (20, deleted(retried(LOST), 20), valid(9)),
            stopped=20,
        ),
    ),
    "back-off limit: success and OOM kill of the run before the extra run": ("O!", extra_run(OOM)),
    "back-off limit: success and the container lost before the extra run": ("R!", extra_run(LOST)),
    "back-off limit: failure and exit 1 of the run before the extra run": (
        FAILURE,
        extra_run(ended(1), BAD),
    ),
    # nobody sees its end: the wait time
    "success, still running at the end of the wait time": ("R!", (301, pod(running()), valid())),
    "OnFailure: success, still running at the end of the wait time": (
        "R!",
        (301, retried(running()), valid()),
    ),
    "success, not started at the end of the wait time": ("R?", (301, pod(), valid())),
    "success and exit 1 at the end of the wait time": ("X!", (301, pod(ended(1)), valid())),
    # the Pod cannot be read
    "Pod refused for less than 30 s": (
        "A? cannot be observed; result received: AllChecked",
        (3, PodRefused()),
        (32, PodRefused(), valid()),
    ),
    "Pod refused for 30 s": ("R?", (3, PodRefused()), (33, PodRefused(), valid())),
    "Pod refused when SIGTERM comes": ("R?", observed((3, PodRefused(), valid()), stopped=3)),
    "Pod refused for less than 30 s after it was shown, the wait time is over": (
        RECEIVED,
        (3, pod(running())),
        (299, PodRefused()),
        (301, PodRefused(), valid()),
    ),
    "Pod refused for 30 s after it was shown": (
        "R?",
        (3, pod(running())),
        (5, PodRefused()),
        (35, PodRefused(), valid()),
    ),
    "Pod refused after exit 1 was shown": (
        "X!",
        (11, pod(ended(1)), valid()),
        (12, PodRefused(), valid()),
    ),
    "Pod refused at the end of the wait time": (
        "R!",
        (270, PodRefused()),
        (300, PodRefused(), valid()),
    ),
    "Pod never seen": ("R?", (3, PodNeverSeen(), valid())),
    "Pod never seen at the end of the wait time": ("R!", (300, PodNeverSeen(), valid())),
    "no answer about the Pod yet": (
        "A? cannot be observed; result received: AllChecked",
        (3, PodUnknown(), valid()),
    ),
    "misfit": ("M?", (3, misfit, valid())),
    "misfit at the end of the wait time": ("R!", (300, misfit, valid())),
    "Pod gone while it ran": ("R!", (21, PodGone(pod(running())), valid())),
    "Pod gone after exit 1": ("X!", (21, PodGone(pod(ended(1))), valid())),
    # the Pod is taken away
    "success and exit 143 after the deletion": (
        "R!",
        (25, deleted(pod(ended(143, end=22)), 20), valid()),
    ),
    "success and OOM kill after the deletion": (
        "R!",
        (25, deleted(pod(replace(OOM, finished_at=at(22))), 20), valid()),
    ),
    "success, evicted": (
        "R!",
        (25, deleted(pod(ended(137, end=22), disruption=DRAINED), 20), valid()),
    ),
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_at_exit(situation, form):
    """In both forms the same, except for when a deletion is settled."""
    expected, *looks = SITUATIONS[situation]
    o = seen(*looks)
    if o.stopping_since is not None and form is Form.CLASSIC:
        o = later(o, o.stopping_since + 29)

    assert expected == said(in_form(o, form), AT_EXIT)


def test_a_result_that_waits_for_a_deletion_to_settle():
    """Until then the deletion is shown, because a True before the end may have to be taken back."""
    running_on = deleted(pod(running()), 20)

    assert "N?" == said(observed((21, running_on, valid())), AT_EXIT)
    assert "D?" == said(observed((21, running_on, valid()), job=LIMITED), AT_EXIT)
    stopped = observed((22, running_on, valid()), stopped=22)
    assert "R!" == said(stopped, AT_EXIT)
    classic = in_form(stopped, Form.CLASSIC)
    assert "N?" == said(classic, AT_EXIT)
    assert "R!" == said(later(classic, 51), AT_EXIT)


def test_a_run_that_a_deletion_finds_between_two_tries():
    """Its own exit code stands against its result, so the deletion is the verdict."""
    o = observed((21, deleted(again(LOOPING), 20), valid()), stopped=21)

    assert "N! Pod was deleted ... is waiting: CrashLoopBackOff" == said(o, AT_EXIT)


def test_a_reporter_that_was_stopped_alone_waits_for_the_end_first():
    """Then the result is the best that is known; whoever starts next may know better."""
    o = observed((21, pod(running()), valid()), stopped=21)

    assert "-" == said(o, AT_EXIT)
    assert "R?" == said(later(o, 24), AT_EXIT)


@pytest.mark.parametrize("run", [ended(1), OOM])
def test_what_the_file_said_is_in_the_evidence(run):
    """The reason of the result that its run's end has outranked."""
    o = observed((11, pod(run), valid()))

    file = evidence(o, at(11))["file"]
    assert ("valid", "AllChecked") == (file["state"], file["resultReason"])


def test_what_the_file_of_the_run_before_said_is_in_the_evidence():
    """Also where the extra run of the back-off limit has taken its place."""
    extra = deleted(retried(running(12), restarts=1), 13)
    o = observed((11, retried(ended(1)), valid(9)), (13, extra, valid(9)), job=THROWN_AWAY)

    assert "AllChecked" == evidence(o, at(13))["lastEndedRun"]["resultReason"]
