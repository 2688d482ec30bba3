"""A deadline does not hide its cause: why the adapter never started, or how its runs ended."""

from dataclasses import replace

import pytest

from reporter.verdict.case import Policy
from reporter.verdict.facts import Blocker, Container, Disruption, Form, Job, PodGone, Waiting
from tests.saying import said, settled
from tests.situations import (
    LOOPING,
    LOST,
    OOM,
    PULLING,
    START_ERROR,
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
JOBS = "; the Job's activeDeadlineSeconds (20s) passed"
PODS = "; the Pod's activeDeadlineSeconds (20s) passed"
EVICTED = Disruption("EvictionByEvictionAPI", "by the API")

unprepared = pod(blocker=Blocker(Container("prepare", ended(6)), for_good=True))
limited = Job(started_at=at(0), deadline=20)
told = Job(started_at=at(0), deadline=20, failure="DeadlineExceeded")
pulling = pod(PULLING, phase="Pending")
keyless = pod(Waiting("CreateContainerConfigError", "no key"), phase="Pending")
meshless = pod(blocker=Blocker(Container("istio-proxy", PULLING), for_good=False))


def looping(last, restarts=4):
    """The kubelet waits before it starts the adapter again."""
    return retried(LOOPING, last=last, restarts=restarts)


def over(before, *file, shown=None):
    """The Job's deadline passes a second after a look at the Pod as it was before."""
    return observed((19, before, *file), (20, deleted(shown or before), *file), job=limited)


def given_up(before):
    """The Pod's own deadline passes: the kubelet shows no more than PodFailed, and no time."""
    before = replace(before, deadline=20.0)
    return observed((19, before), (20, replace(before, failing_at=at(0))))


HIDDEN = {
    "image": (f"W1? ...{JOBS}", over(pulling)),
    "image, told by the Job alone": (f"W1? ...{JOBS}", observed((19, pulling), job=told)),
    "image, the Pod gone": (
        f"W1? ...{JOBS}",
        observed((19, pulling), (21, PodGone(deleted(pulling))), job=limited),
    ),
    "image, the Pod shows nothing any more": (f"W1? ...{JOBS}", over(pulling, shown=pod())),
    "image, the kubelet breaks the pull off": (
        f"W1? ...{JOBS}",
        over(pulling, shown=pod(Waiting("ErrImagePull", "context canceled"))),
    ),
    "image, the Pod's deadline": (f"W1? ...{PODS}", given_up(pulling)),
    "key of a ConfigMap": (f"W2? ...{JOBS}", over(keyless)),
    "key of a ConfigMap, the Pod's deadline": (f"W2? ...{PODS}", given_up(keyless)),
    "another sidecar's image": (
        f"W1? init container 'istio-proxy': ErrImagePull: 401 Unauthorized{JOBS}",
        over(meshless),
    ),
    "OnFailure: command not found": (f"W3? ...{JOBS}", over(looping(START_ERROR))),
    "OnFailure: exit 1": (f"X? ...{JOBS}", over(looping(ended(1)))),
    "OnFailure: exit 1, the last state not shown any more": (
        f"X? ...{JOBS}",
        over(looping(ended(1)), shown=looping(None)),
    ),
    "OnFailure: exit 1, shown as ended because nothing starts it again": (
        f"X? ...{JOBS}",
        over(looping(ended(1)), shown=retried(ended(1), restarts=4)),
    ),
    "OnFailure: exit 1 in the second of the deadline": (
        f"X? ...{JOBS}",
        over(retried(ended(1, end=20))),
    ),
    "OnFailure: exit 1, first seen after the deadline": (
        f"X? ...{JOBS}",
        observed((20, deleted(retried(ended(1)))), job=limited),
    ),
    "OnFailure: exit 1, the Pod's deadline": (f"X? ...{PODS}", given_up(looping(ended(1)))),
    "OnFailure: exit 1 just before the Pod's deadline": (
        f"X? ...{PODS}",
        given_up(retried(ended(1))),
    ),
    "OnFailure: OOM kill": (f"O? ...{JOBS}", over(looping(OOM))),
    "OnFailure: invalid file": (f"I? ...{JOBS}", over(looping(ended(1)), invalid(9))),
    "OnFailure: lost": (f"N? was lost ... ended with exit code 137{JOBS}", over(looping(LOST))),
    "OnFailure: the image of the next run": (
        f"X? ...{JOBS}",
        over(retried(PULLING, last=ended(1), restarts=1)),
    ),
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("situation", HIDDEN)
def test_the_cause_is_said_at_once_and_settled_as_a_deadline_is(situation, form):
    expected, o = HIDDEN[situation]
    o = in_form(o, form)
    stopped = replace(o, stopping_since=o.now)

    assert expected == said(o)
    assert settled(expected) == said(stopped if form is Form.NATIVE else later(stopped, o.now + 27))


@pytest.mark.parametrize("form", Form)
def test_a_result_of_the_last_run_gets_no_ending(form):
    """It is the adapter's own word."""
    assert "R!" == said(in_form(over(looping(ended(1)), valid(9)), form))


def test_a_result_that_the_last_runs_end_contradicts_is_hidden_no_more_than_it():
    """RESULT_TRUST=at-exit: success and then exit 1 is no success, at a deadline too."""
    o = over(looping(ended(1)), valid(9))

    assert f"X? ...{JOBS}" == said(o, Policy(at_exit=True))
    assert f"X! ...{JOBS}" == said(replace(o, stopping_since=20), Policy(at_exit=True))


def test_a_result_of_the_last_run_that_was_removed_counts():
    """As remembered when the run's end was shown."""
    looks = [(19, looping(ended(1)), valid(9)), (20, deleted(looping(ended(1))))]

    assert "R?" == said(observed(*looks, job=limited))


ALONE = {
    "runs": ("D!", over(pod(running()))),
    "second run, after a failed one": (
        "D! ...; last exit code 1, restarted once",
        over(retried(running(15), last=ended(1), restarts=1)),
    ),
    "fifth run, the last state not shown": (
        "D! ...; restarted 4 times",
        over(retried(running(15), restarts=4)),
    ),
    "started after all, before the deletion was seen": (
        "D!",
        over(pulling, shown=pod(running(19.5))),
    ),
    "trouble that was over": (
        "D!",
        observed((5, pulling), (19, pod()), (20, deleted(pod())), job=limited),
    ),
    "trouble that shows only after the deletion": ("D!", over(pod(), shown=pulling)),
    "an init container that the deletion ended": ("D!", over(pod(), shown=unprepared)),
    "killed by the deletion, would be restarted": (
        "D!",
        over(pod(running()), shown=retried(ended(143, end=21))),
    ),
    "nothing known": ("D!", over(pod())),
    "misfit": ("D!", over(pod(adapter=None, misfit="none"))),
}


@pytest.mark.parametrize("situation", ALONE)
def test_a_deadline_speaks_for_itself_where_nothing_else_is_known(situation):
    """The adapter ran, or nobody knows what kept it; after failed runs it says so."""
    expected, o = ALONE[situation]

    assert expected == said(replace(o, stopping_since=o.now))


BESIDE = {
    "command not found": ("W3!", over(pod(START_ERROR))),
    "an init container failed for good": (
        f"W3! init container 'prepare': exited with code 6: Error{JOBS}",
        over(unprepared),
    ),
    "evicted": (
        "E? Pod was disrupted: Evicted: low on memory",
        over(
            pulling,
            shown=replace(
                pulling, disruption=Disruption("Evicted", "low on memory", under_way=True)
            ),
        ),
    ),
    "gone before its announced eviction was shown": (
        "E?",
        observed((19, pulling), (20, PodGone(replace(pulling, disruption=EVICTED))), job=told),
    ),
}


@pytest.mark.parametrize("situation", BESIDE)
def test_what_a_deadline_has_no_part_in(situation):
    expected, o = BESIDE[situation]

    assert expected == said(o)


def test_the_ending_survives_a_long_message():
    """The kubelet's words are cut, the deadline is not."""
    message = said(over(pod(Waiting("ErrImagePull", "\u20ac" * 1000)))).removeprefix("W1? ")

    assert message.endswith("\u20ac" + JOBS)
    assert 1022 <= len(message.encode()) <= 1024


# The Pod's own deadline, which the kubelet shows only as PodFailed while containers still end.

ANNOUNCED = Disruption("PreemptionByScheduler", "a Pod of higher priority")
PREEMPTED = "E? Pod was disrupted: PreemptionByScheduler: a Pod of higher priority"
GIVEN_UP_EARLY = {
    "never ready": (POD_LATE, pod()),
    "runs, though another container never was ready": (POD_LATE, pod(running(5))),
    "ended for good": ("X!", pod(ended(1, end=3))),
    "misfit": (
        "N? Pod was stopped by the kubelet ... cannot be observed",
        pod(adapter=None, misfit="none"),
    ),
    "an init container failed": (
        "W3! init container 'prepare': exited with code 6: Error",
        unprepared,
    ),
    "disrupted": (PREEMPTED, pod(disruption=ANNOUNCED)),
}


@pytest.mark.parametrize("situation", GIVEN_UP_EARLY)
def test_a_pod_given_up_without_a_telling_time(situation):
    """The condition turned False before the adapter ran: only what else is known counts."""
    expected, shown = GIVEN_UP_EARLY[situation]

    assert expected == said(observed((20, replace(shown, failing_at=at(3), deadline=20.0))))


def test_a_running_adapter_of_a_pod_that_was_given_up_early_is_interrupted():
    """It was ready until then, so the time is right: the deadline had not passed."""
    o = observed((9, replace(pod(running(5)), failing_at=at(8), deadline=20.0)))

    assert "N? Pod was stopped by the kubelet ... is running" == said(o)
