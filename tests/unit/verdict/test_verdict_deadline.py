"""A deadline does not hide its cause: why the adapter never started, or how its runs ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reporter.verdict.case import Case, Policy
from reporter.verdict.decide import interruption
from reporter.verdict.facts import Blocker, Container, Disruption, Form, Job, PodGone, Waiting
from tests.situations import (
    LOOPING,
    LOST,
    ON_FAILURE,
    OOM,
    PENDING,
    PULLING,
    START_ERROR,
    at,
    deleted,
    ended,
    final,
    in_form,
    invalid,
    later,
    observed,
    pod,
    revisable,
    rows_of,
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import EMPTY, FAILED, KILLED

LIMITED = Job(started_at=at(0), deadline=20)
TOLD = Job(started_at=at(0), deadline=20, failure="DeadlineExceeded")
JOBS = "; the Job's activeDeadlineSeconds (20s) passed"
PODS = "; the Pod's activeDeadlineSeconds (20s) passed"
LATE = "Adapter did not finish within the Job's activeDeadlineSeconds (20s)"
UNPULLED = (
    "W1",
    "False",
    "AdapterImagePullFailed",
    "container 'adapter': ErrImagePull: 401 Unauthorized",
)
NO_KEY = (
    "W2",
    "False",
    "AdapterConfigError",
    "container 'adapter': CreateContainerConfigError: couldn't find key k",
)
NO_COMMAND = (
    "W3",
    "False",
    "AdapterStartFailed",
    "container 'adapter': StartError: exec: \"nope\": not found",
)
WAS_LOST = (
    "N",
    "Unknown",
    "AdapterInterrupted",
    "Adapter container was lost before a verdict was known; adapter container ended with exit"
    " code 137",
)
TIMEOUT = ("D", "False", "AdapterTimeout")

pulling = pod(PULLING, phase="Pending")
keyless = pod(Waiting("CreateContainerConfigError", "couldn't find key k"), phase="Pending")
meshless = pod(blocker=Blocker(Container("istio-proxy", PULLING), for_good=False))
unprepared = pod(blocker=Blocker(Container("prepare", ended(6)), for_good=True))


def after(expected, ending=JOBS):
    """The row with what a deadline adds to it."""
    *row, message = expected
    return (*row, message + ending)


def looping(last, restarts=4, **fields):
    """The kubelet waits before it starts the adapter again."""
    return pod(LOOPING, last=last, restarts=restarts, restart=ON_FAILURE, **fields)


def over(before, *, shown=None, file=None, job=LIMITED):
    """The Job's deadline passes a second after a look at the Pod as it was before."""
    files = [] if file is None else [file]
    return observed((19, before, *files), (20, deleted(shown or before), *files), job=job)


def given_up(before, **fields):
    """The Pod's own deadline passes: the kubelet shows no more than PodFailed, and no time."""
    limited = replace(before, deadline=20.0)
    return observed((19, limited), (20, replace(limited, failing_at=at(0), **fields)))


HIDDEN = {
    "image": (over(pulling), after(UNPULLED)),
    "image, told by the Job alone": (observed((19, pulling), job=TOLD), after(UNPULLED)),
    "image, the Pod gone": (
        observed((19, pulling), (21, PodGone(deleted(pulling))), job=LIMITED),
        after(UNPULLED),
    ),
    "image, the Pod shows nothing any more": (over(pulling, shown=pod()), after(UNPULLED)),
    "image, the kubelet breaks the pull off": (
        over(pulling, shown=pod(Waiting("ErrImagePull", "context canceled"))),
        after(UNPULLED),
    ),
    "image, the Pod's deadline": (given_up(pulling), after(UNPULLED, PODS)),
    "key of a ConfigMap": (over(keyless), after(NO_KEY)),
    "key of a ConfigMap, the Pod's deadline": (given_up(keyless), after(NO_KEY, PODS)),
    "another sidecar's image": (
        over(meshless),
        after((*UNPULLED[:3], "init container 'istio-proxy': ErrImagePull: 401 Unauthorized")),
    ),
    "OnFailure: command not found": (over(looping(START_ERROR)), after(NO_COMMAND)),
    "OnFailure: exit 1": (over(looping(ended(1))), after(FAILED)),
    "OnFailure: exit 1, the last state not shown any more": (
        over(looping(ended(1)), shown=looping(None)),
        after(FAILED),
    ),
    "OnFailure: exit 1, shown as ended because nothing starts it again": (
        over(looping(ended(1)), shown=pod(ended(1), restarts=4, restart=ON_FAILURE)),
        after(FAILED),
    ),
    "OnFailure: exit 1 in the second of the deadline": (
        over(pod(ended(1, end=20), restart=ON_FAILURE)),
        after(FAILED),
    ),
    "OnFailure: exit 1, first seen after the deadline": (
        observed((20, deleted(pod(ended(1), restart=ON_FAILURE))), job=LIMITED),
        after(FAILED),
    ),
    "OnFailure: exit 1, the Pod's deadline": (given_up(looping(ended(1))), after(FAILED, PODS)),
    "OnFailure: exit 1 just before the Pod's deadline": (
        given_up(pod(ended(1), restart=ON_FAILURE)),
        after(FAILED, PODS),
    ),
    "OnFailure: OOM kill": (over(looping(OOM)), after(KILLED)),
    "OnFailure: invalid file": (over(looping(ended(1)), file=invalid(9)), after(EMPTY)),
    "OnFailure: lost": (over(looping(LOST)), after(WAS_LOST)),
    "OnFailure: the image of the next run": (
        over(pod(PULLING, last=ended(1), restarts=1, restart=ON_FAILURE)),
        after(FAILED),
    ),
}


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
@pytest.mark.parametrize(("o", "expected"), HIDDEN.values(), ids=HIDDEN.keys())
def test_the_cause_is_said_at_once_and_settled_as_a_deadline_is(o, expected, form):
    """Native with its own SIGTERM, classic shortly before the kill."""
    o = in_form(o, form)
    stopped = replace(o, stopping_since=o.now)
    settled = stopped if form is Form.NATIVE else later(stopped, o.now + 27)

    assert revisable(*expected) == verdict(o)
    assert final(*expected) == verdict(settled)


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
def test_a_result_of_the_last_run_gets_no_ending(form):
    """It is the adapter's own word."""
    o = in_form(over(looping(ended(1)), file=valid(9)), form)

    assert final("R", "True", "AllChecked", "12 of 12") == verdict(o)


def test_a_result_that_the_last_runs_end_contradicts_is_hidden_no_more_than_it():
    """RESULT_TRUST=at-exit: success and then exit 1 is no success, at a deadline too."""
    o = over(looping(ended(1)), file=valid(9))

    assert revisable(*after(FAILED)) == verdict(o, Policy(at_exit=True))
    assert final(*after(FAILED)) == verdict(replace(o, stopping_since=20), Policy(at_exit=True))


def test_a_result_of_the_last_run_that_was_removed_counts():
    """As remembered when the run's end was shown."""
    looks = [(19, looping(ended(1)), valid(9)), (20, deleted(looping(ended(1))))]

    assert revisable("R", "True", "AllChecked", "12 of 12") == verdict(
        observed(*looks, job=LIMITED)
    )


ALONE = {
    "runs": (over(pod(running())), LATE),
    "second run, after a failed one": (
        over(pod(running(15), last=ended(1), restarts=1, restart=ON_FAILURE)),
        f"{LATE}; last exit code 1, restarted once",
    ),
    "fifth run, the last state not shown": (
        over(pod(running(15), restarts=4, restart=ON_FAILURE)),
        f"{LATE}; restarted 4 times",
    ),
    "started after all, before the deletion was seen": (
        over(pulling, shown=pod(running(19.5))),
        LATE,
    ),
    "trouble that was over": (
        observed((5, pulling), (19, pod()), (20, deleted(pod())), job=LIMITED),
        LATE,
    ),
    "trouble that shows only after the deletion": (over(pod(), shown=pulling), LATE),
    "an init container that the deletion ended": (over(pod(), shown=unprepared), LATE),
    "killed by the deletion, would be restarted": (
        over(pod(running()), shown=pod(ended(143, end=21), restart=ON_FAILURE)),
        LATE,
    ),
    "nothing known": (over(pod()), LATE),
    "misfit": (over(pod(adapter=None, misfit="none")), LATE),
}


@pytest.mark.parametrize(("o", "message"), ALONE.values(), ids=ALONE.keys())
def test_a_deadline_speaks_for_itself_where_nothing_else_is_known(o, message):
    """The adapter ran, or nobody knows what kept it; after failed runs it says so."""
    assert (*TIMEOUT, message) == told(replace(o, stopping_since=o.now))


def told(o):
    """What is said, final or not."""
    report = verdict(o)[1]
    return (report.row, report.status, report.reason, report.message)


def test_what_had_ended_for_good_before_the_deadline_is_no_business_of_it():
    """Neither an exit code nor a start that failed gets the ending."""
    assert final(*FAILED) == verdict(over(pod(ended(1))))
    assert final(*NO_COMMAND) == verdict(over(pod(START_ERROR)))


def test_an_init_container_that_failed_for_good_is_the_cause_at_a_deadline_too():
    """Nothing more can come, so nothing is waited for."""
    said = ("W3", "False", "AdapterStartFailed", "init container 'prepare': exited with code 6")

    assert final(*after((*said[:3], f"{said[3]}: Error"))) == verdict(over(unprepared))


@pytest.mark.parametrize("state", [PULLING, Waiting("PodInitializing")])
def test_a_deleted_pod_is_interrupted_whatever_kept_its_adapter(state):
    """Only a deadline is a judgement."""
    o = observed((19, pod(state)), (20, deleted(pod(state))))

    assert ["N"] == rows_of([verdict(o)])


def test_an_eviction_comes_before_the_deadline():
    """Whatever kept the adapter: nobody can know how it would have ended."""
    before = replace(pulling, disruption=Disruption("Evicted", "low on memory", under_way=True))

    assert ["E"] == rows_of([verdict(over(pulling, shown=before))])


def test_a_pod_that_is_gone_before_its_announced_eviction_was_shown_is_evicted():
    """The announcement is all there is to know."""
    shown = replace(pulling, disruption=Disruption("EvictionByEvictionAPI", "by the API"))
    o = observed((19, pulling), (20, PodGone(shown)), job=TOLD)

    assert ["E"] == rows_of([verdict(o)])


def test_the_ending_survives_a_long_message():
    """The kubelet's words are cut, the deadline is not."""
    o = over(pod(Waiting("ErrImagePull", "\u20ac" * 1000)))
    message = verdict(o)[1].message

    assert message.endswith("\u20ac" + JOBS)
    assert 1022 <= len(message.encode()) <= 1024


# The Pod's own deadline, which the kubelet shows only as PodFailed while containers still end.


@pytest.mark.parametrize(
    ("shown", "rows"),
    [
        pytest.param(pod(), ["D"], id="never ready"),
        pytest.param(pod(running(5)), ["D"], id="runs, though another container never was ready"),
        pytest.param(pod(ended(1, end=3)), ["X!"], id="ended for good"),
        pytest.param(pod(adapter=None, misfit="none"), ["N"], id="misfit"),
        pytest.param(unprepared, ["W3!"], id="an init container failed"),
        pytest.param(
            pod(disruption=Disruption("PreemptionByScheduler", "x")), ["E"], id="disrupted"
        ),
    ],
)
def test_a_pod_given_up_without_a_telling_time(shown, rows):
    """The condition turned False before the adapter ran: only what else is known counts."""
    o = observed((20, replace(shown, failing_at=at(3), deadline=20.0)))

    assert rows == rows_of([verdict(o)])


def test_a_running_adapter_of_a_pod_that_was_given_up_early_is_interrupted():
    """It was ready until then, so the time is right: the deadline had not passed."""
    o = observed((9, replace(pod(running(5)), failing_at=at(8), deadline=20.0)))

    assert ["N"] == rows_of([verdict(o)])


# What the platform only means to do.

ANNOUNCED = Disruption("PreemptionByScheduler", "a Pod of higher priority")


def test_an_announced_disruption_ends_nothing():
    """Work goes on, and so does the wait time."""
    o = observed((3, pod(running(), disruption=ANNOUNCED)))

    assert ["A", "T!"] == rows_of([verdict(o), verdict(later(o, 301))])


@pytest.mark.parametrize(
    ("shown", "rows"),
    [
        pytest.param(ended(1), "X!", id="exit 1"),
        pytest.param(ended(0), "X!", id="exit 0"),
        pytest.param(OOM, "O!", id="OOM kill"),
        pytest.param(PULLING, "A", id="image"),
    ],
)
def test_an_adapter_that_ends_by_itself_before_an_announced_disruption(shown, rows):
    """It is judged by its end."""
    assert [rows] == rows_of([verdict(observed((11, pod(shown, disruption=ANNOUNCED))))])


def test_an_announced_disruption_and_then_the_deletion():
    """Now the platform has taken it away."""
    shown = deleted(pod(running(), disruption=ANNOUNCED))

    assert ["E"] == rows_of([verdict(observed((20, shown)))])


def test_sigterm_and_an_announced_disruption():
    """The deletion that explains the SIGTERM is waited for."""
    o = observed((20, pod(running(), disruption=ANNOUNCED)), stopped=20)

    assert PENDING == verdict(o)
    assert interruption(Case(o, Policy())) is None
