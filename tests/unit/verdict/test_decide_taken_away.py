"""Deletion, deadlines, eviction: rows E, D and N, and what a deadline must not hide."""

from dataclasses import replace

import pytest

from reporter.verdict.case import Case, Policy
from reporter.verdict.decide import decide, nothing_more, why_taken_away
from reporter.verdict.facts import (
    Disruption,
    Form,
    Job,
    PodGone,
    PodRefused,
    Waiting,
)
from tests.saying import said, seen, settled
from tests.situations import (
    LOOPING,
    LOST,
    OOM,
    PULLING,
    START_ERROR,
    again,
    at,
    deleted,
    ended,
    in_form,
    invalid,
    later,
    observed,
    pod,
    retried,
    running,
    valid,
)

POD_LATE = "D? Adapter did not finish within the Pod's activeDeadlineSeconds (20s)"
EVICTED = Disruption("EvictionByEvictionAPI", "by the API")

runs = pod(running())
going = deleted(runs)  # deletion asked for at 20 s, 30 s of grace
failing = pod(running(), failing_at=at(20))
evicting = replace(going, disruption=EVICTED)
shut_down = pod(running(), disruption=Disruption("Terminated", "node shutdown", under_way=True))
suspended = Job(suspended=True)
limited = Job(started_at=at(0), deadline=20)

TAKEN_AWAY = {
    "Pod deleted": ("N?", (21, going)),
    "Pod deleted, invalid file": ("N?", (21, going), (21, going, invalid())),
    "Pod deleted after the wait time": ("N?", (500, deleted(runs, 499))),
    "Pod deleted while it waits for its image": (
        "N? Pod was deleted ... is waiting: ErrImagePull",
        (21, deleted(pod(Waiting("ErrImagePull")))),
    ),
    "Pod deleted before the adapter started": (
        "N? Pod was deleted ... has not started yet",
        (21, deleted(pod())),
    ),
    "Pod of a misfit deleted": (
        "N? Pod was deleted ... cannot be observed",
        (21, deleted(pod(adapter=None, misfit="none"))),
    ),
    "Pod gone": ("N? Pod is gone ... is running", (20, runs), (21, PodGone(runs))),
    "Pod gone after its deletion": ("N?", (21, PodGone(going))),
    "OnFailure: Pod gone between two runs": (
        "N? Pod is gone ... ended with exit code 1",
        (21, PodGone(retried(ended(1)))),
    ),
    "Job suspended": ("N? Job was suspended ... is running", observed((21, going), job=suspended)),
    "Job suspended, Pod gone": (
        "N? Job was suspended ... is running",
        observed((21, PodGone(runs)), job=suspended),
    ),
    "Job deadline": ("D?", observed((21, going), job=limited)),
    "Job deadline, to the second": ("D?", observed((21, deleted(runs, 20)), job=limited)),
    "Pod deleted a second before the Job deadline": (
        "N?",
        observed((21, deleted(runs, 19)), job=limited),
    ),
    "Job deadline told by the Job": (
        "D?",
        observed((21, going), job=Job(deadline=20, failure="DeadlineExceeded")),
    ),
    "Job deadline of a Job that shows no start": (
        "N?",
        observed((21, going), job=Job(deadline=20)),
    ),
    "Job deadline told before the deletion is seen": (
        "D?",
        observed((21, runs), job=Job(deadline=20, failure="DeadlineExceeded")),
    ),
    "Pod deadline": (POD_LATE, (21, replace(failing, deadline=20.0))),
    "Pod deadline told by the Pod": (
        POD_LATE,
        (21, pod(running(), deadline=20.0, reason="DeadlineExceeded")),
    ),
    "Pod given up before its deadline": (
        "N? Pod was stopped by the kubelet ... is running",
        (21, replace(failing, deadline=21.0)),
    ),
    "Pod given up, reason unknown": (
        "N? Pod was stopped by the kubelet ... is running",
        (21, failing),
    ),
    "Pod deadline before the Job's": (
        POD_LATE,
        observed((21, replace(going, failing_at=at(20), deadline=20.0)), job=limited),
    ),
    "evicted through the API": ("E?", (21, evicting)),
    "evicted, gone before the deletion is shown": (
        "E?",
        (21, PodGone(replace(runs, disruption=EVICTED))),
    ),
    "evicted by the kubelet, which sets no deletion time": (
        "E?",
        (21, replace(failing, disruption=EVICTED)),
    ),
    "evicted by the kubelet from a Pod with a deadline": (
        "E?",
        (21, replace(failing, disruption=EVICTED, deadline=600.0)),
    ),
    "evicted, then the Job deadline": ("E?", observed((21, evicting), job=limited)),
    "evicted without a word": (
        "E? Pod was disrupted: no reason given",
        (21, replace(going, disruption=Disruption("", ""))),
    ),
    "node shutdown": ("E? Pod was disrupted: Terminated: node shutdown", (21, shut_down)),
    "Pod deleted, its Job has a start and no deadline": (
        "N?",
        observed((21, going), job=Job(started_at=at(0))),
    ),
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("situation", TAKEN_AWAY)
def test_what_takes_the_pod_away_is_said_at_once_and_settled_with_the_end(situation, form):
    """Native: with its SIGTERM, when the adapter is dead; classic: 3 s before the kill."""
    expected, *looks = TAKEN_AWAY[situation]
    o = in_form(seen(*looks), form)
    stopped = replace(o, stopping_since=o.now)

    assert expected == said(o)
    if form is Form.NATIVE:
        assert settled(expected) == said(stopped)
    else:
        assert expected == said(later(stopped, o.now + 26.9))
        assert settled(expected) == said(later(stopped, o.now + 27))


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("second", [21.0, 24.0, 50.0])
@pytest.mark.parametrize("gone", [going, failing, evicting, shut_down])
def test_a_result_written_while_stopping_is_heard(form, second, gone):
    """A valid file wins until the very end."""
    assert "R!" == said(in_form(observed((second, gone, valid(20)), stopped=21), form))


ENDED_THEN_AWAY = {
    "exit 1, deleted a second later": ("X!", (30, deleted(pod(ended(1, end=19))))),
    "exit 1 in the second of the deletion": (
        "N! Pod was deleted ... ended with exit code 1",
        (30, deleted(pod(ended(1, end=20)))),
    ),
    "exit 143 after the deletion": (
        "N! Pod was deleted ... ended with exit code 143",
        (30, deleted(pod(ended(143, end=25)))),
    ),
    "an end without a time": (
        "N! Pod was deleted ... ended with exit code 1",
        (30, deleted(pod(replace(ended(1), finished_at=None)))),
    ),
    "OOM kill while stopping": ("O!", (30, deleted(pod(replace(OOM, finished_at=at(25)))))),
    "exit 1 before the Job deadline": (
        "X!",
        observed((30, deleted(pod(ended(1, end=19)))), job=limited),
    ),
    "exit 143 at the Job deadline": (
        "D!",
        observed((30, deleted(pod(ended(143, end=20)))), job=limited),
    ),
    "exit 0 without file at the Job deadline": (
        "D!",
        observed((30, deleted(pod(ended(0, end=21)))), job=limited),
    ),
    "exit 1 before the Pod deadline": (
        "X!",
        (30, pod(ended(1, end=19), failing_at=at(20), deadline=20.0, phase="Failed")),
    ),
    "exit 143 at the Pod deadline": (
        settled(POD_LATE),
        (30, pod(ended(143, end=21), failing_at=at(20), deadline=20.0, phase="Failed")),
    ),
    "exit 143 at a Pod deadline told only by its reason": (
        settled(POD_LATE),
        (30, pod(ended(143), deadline=20.0, reason="DeadlineExceeded", phase="Failed")),
    ),
    "OnFailure: exit 143 at the Pod deadline, the phase not yet told": (
        settled(POD_LATE),
        (30, retried(ended(143, end=21), failing_at=at(20), deadline=20.0)),
    ),
    "exit 1, and the Pod failed by that": (
        "X!",
        (30, pod(ended(1, end=20), failing_at=at(20), phase="Failed")),
    ),
    "exit 1 before the eviction": ("X!", (30, deleted(pod(ended(1, end=19), disruption=EVICTED)))),
    "exit 143 by the eviction": ("E!", (30, deleted(pod(ended(143, end=21), disruption=EVICTED)))),
    "exit 143 by node shutdown": (
        "E! Pod was disrupted: Terminated: node shutdown",
        (30, replace(shut_down, adapter=pod(ended(143)).adapter)),
    ),
    "exit 1 in a suspended Job": (
        "N! Job was suspended ... ended with exit code 143",
        observed((30, deleted(pod(ended(143, end=21)))), job=suspended),
    ),
    "container lost in a deleted Pod": (
        "N! Pod was deleted ... ended with exit code 137",
        (30, deleted(pod(LOST))),
    ),
    "command not found, deleted later": ("W3!", (30, deleted(pod(START_ERROR)))),
    "exit 1 in a Pod that vanished": ("X!", (11, pod(ended(1))), (12, PodGone(pod(ended(1))))),
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("situation", ENDED_THEN_AWAY)
def test_an_end_before_the_wish_is_the_adapters_own(situation, form):
    """By the API's whole seconds; within one second nobody can tell, and nothing is made up."""
    expected, *looks = ENDED_THEN_AWAY[situation]

    assert expected == said(in_form(seen(*looks), form))


def test_an_interrupted_attempt_has_more_to_wait_for():
    """The budget, not the two seconds, ends what a deletion has begun."""
    assert not nothing_more(observed((90, going), stopped=30), Policy())


def test_the_next_look_of_a_classic_reporter_is_when_the_adapter_was_heard_out():
    """In between only the file and the watch wake it."""
    o = in_form(observed((30, going), stopped=30), Form.CLASSIC)

    assert 32 == decide(o, Policy()).next_look
    assert 57 == decide(later(o, 32), Policy()).next_look


def test_the_form_that_was_set_counts_before_the_one_that_was_found():
    """REPORTER_FORM=classic hears the adapter, whatever the Pod's spec looks like."""
    o = observed((30, going), stopped=30)

    assert "N!" == said(o)
    assert "N?" == said(o, Policy(form=Form.CLASSIC))


def test_a_pod_that_does_not_show_the_form_is_taken_for_classic():
    """The form that ends by itself is the safer guess."""
    unknown = replace(going, form=None)

    assert Form.CLASSIC is Case(observed((30, unknown)), Policy()).form
    assert Form.CLASSIC is Case(observed((30, PodRefused())), Policy()).form


# A busy kubelet sends SIGTERM seconds after the deletion: the adapter is heard as long.


@pytest.mark.parametrize(
    ("form", "second", "expected"),
    [(Form.CLASSIC, 24.9, "N?"), (Form.CLASSIC, 25, "N!"), (Form.NATIVE, 23, "N!")],
)
def test_the_grace_of_the_classic_form_begins_with_its_sigterm(form, second, expected):
    """Deleted at 20, told at 23, killed at 28: settled with 3 s left for the write."""
    late = deleted(runs, grace=5)
    o = observed((20, late), (23, late), stopped=23)

    assert expected == said(later(o, second), Policy(form=form))


# What the platform only means to do.

ANNOUNCED = Disruption("PreemptionByScheduler", "a Pod of higher priority")
PREEMPTED = "E? Pod was disrupted: PreemptionByScheduler: a Pod of higher priority"


@pytest.mark.parametrize(
    ("expected", "second", "state"),
    [
        ("A?", 3, running()),
        ("T!", 301, running()),
        ("X!", 11, ended(1)),
        ("X0!", 11, ended(0)),
        ("O!", 11, OOM),
        ("A? is waiting: ErrImagePull", 11, PULLING),
    ],
)
def test_an_announced_disruption_ends_nothing(expected, second, state):
    """Work goes on, and an adapter that ends by itself is judged by its end."""
    assert expected == said(observed((second, pod(state, disruption=ANNOUNCED))))


def test_an_announced_disruption_is_under_way_with_the_deletion():
    announced = pod(running(), disruption=ANNOUNCED)
    o = observed((20, announced), stopped=20)

    assert PREEMPTED == said(observed((20, deleted(announced))))
    assert ("-", None) == (said(o), why_taken_away(Case(o, Policy())))


# The back-off limit is used up: the extra run is thrown away, the last ended one is judged.


def exhausted(*looks):
    """What is known then; the last look is at the Pod whose deletion has been asked for."""
    return observed(*looks, job=Job(failure="BackoffLimitExceeded"))


def extra_run(ended_run, *file):
    """The second run is stopped because the Job has given up."""
    second = deleted(retried(running(12), restarts=1), 13)
    return exhausted((11, retried(ended_run), *file), (13, second, *file))


EXHAUSTED = {
    "its file first": ("R?", extra_run(ended(1), valid(9))),
    "OOM kill": ("O?", extra_run(OOM)),
    "OOM kill before its invalid file": ("O?", extra_run(OOM, invalid(9))),
    "invalid file": ("I?", extra_run(ended(1), invalid(9))),
    "command not found": ("W3?", extra_run(START_ERROR)),
    "lost": ("N? was lost ... ended with exit code 137", extra_run(LOST)),
    "exit 1": ("X?", extra_run(ended(1))),
    "no ended run was seen": ("N?", exhausted((13, deleted(retried(running(12), restarts=1), 13)))),
    "only the last state has shown it": (
        "X?",
        exhausted((12, again(running(12))), (13, deleted(retried(running(12), restarts=1), 13))),
    ),
    "the extra run waits for yet another try": (
        "X? exited with code 4: Error",
        exhausted(
            (11, retried(ended(1))),
            (14, again(LOOPING, last=ended(4, start=12, end=13))),
            (15, deleted(again(LOOPING, last=ended(4, start=12, end=13)), 15)),
        ),
    ),
}


@pytest.mark.parametrize("situation", EXHAUSTED)
def test_the_last_ended_run_is_judged_when_the_back_off_limit_is_used_up(situation):
    """As remembered: the API drops `lastState` with the deletion."""
    expected, o = EXHAUSTED[situation]

    assert expected == said(o)
    assert settled(expected) == said(replace(o, stopping_since=o.now))


def test_an_extra_run_that_ended_by_itself_before_the_deletion_is_the_last_one():
    second = again(ended(3, start=12, end=14))
    o = exhausted((11, retried(ended(1))), (14, second), (15, deleted(second, 14)))

    assert "X! exited with code 3: Error" == said(o)
