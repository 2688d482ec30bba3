"""Deletion, deadlines, eviction: rows E, D and N, and how long the reporter goes on."""

from dataclasses import replace

import pytest

from reporter.verdict.case import Case, Policy
from reporter.verdict.decide import Pending, decide, nothing_more
from reporter.verdict.facts import (
    Blocker,
    Container,
    Disruption,
    Form,
    Job,
    PodGone,
    PodRefused,
    Waiting,
)
from reporter.verdict.memory import Memory
from tests.situations import (
    LOST,
    ON_FAILURE,
    OOM,
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
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import FAILED, KILLED, SUCCESS
from tests.unit.verdict.stopping import (
    BEFORE,
    DELETED,
    EVICTED,
    GIVEN_UP,
    GONE,
    JOB_LATE,
    POD_LATE,
    SHUT_DOWN,
    SUSPENDED,
    evicting,
    failing,
    going,
    limited,
    runs,
    shut_down,
    suspended,
)

TAKEN_AWAY = {
    "Pod deleted": (observed((21, going)), DELETED),
    "Pod deleted, invalid file": (observed((21, going), (21, going, invalid())), DELETED),
    "Pod deleted after the wait time": (observed((500, deleted(runs, 499))), DELETED),
    "Pod deleted while it waits for its image": (
        observed((21, deleted(pod(Waiting("ErrImagePull"))))),
        (*DELETED[:3], f"Pod was deleted {BEFORE} is waiting: ErrImagePull"),
    ),
    "Pod deleted before the adapter started": (
        observed((21, deleted(pod()))),
        (*DELETED[:3], f"Pod was deleted {BEFORE} has not started yet"),
    ),
    "Pod of a misfit deleted": (
        observed((21, deleted(pod(adapter=None, misfit="none")))),
        (
            *DELETED[:3],
            "Pod was deleted before a verdict was known; adapter container cannot be observed",
        ),
    ),
    "Pod gone": (observed((20, runs), (21, PodGone(runs))), GONE),
    "Pod gone after its deletion": (observed((21, PodGone(going))), DELETED),
    "OnFailure: Pod gone between two runs": (
        observed((21, PodGone(pod(ended(1), restart=ON_FAILURE)))),
        (*GONE[:3], f"Pod is gone {BEFORE} ended with exit code 1"),
    ),
    "Job suspended": (observed((21, going), job=suspended), SUSPENDED),
    "Job suspended, Pod gone": (observed((21, PodGone(runs)), job=suspended), SUSPENDED),
    "Job deadline": (observed((21, going), job=limited), JOB_LATE),
    "Job deadline, to the second": (
        observed((21, deleted(runs, 20)), job=limited),
        JOB_LATE,
    ),
    "Pod deleted a second before the Job deadline": (
        observed((21, deleted(runs, 19)), job=limited),
        DELETED,
    ),
    "Job deadline told by the Job": (
        observed((21, going), job=Job(deadline=20, failure="DeadlineExceeded")),
        JOB_LATE,
    ),
    "Job deadline of a Job that shows no start": (
        observed((21, going), job=Job(deadline=20)),
        DELETED,
    ),
    "Job deadline told before the deletion is seen": (
        observed((21, runs), job=Job(deadline=20, failure="DeadlineExceeded")),
        JOB_LATE,
    ),
    "Pod deadline": (observed((21, replace(failing, deadline=20.0))), POD_LATE),
    "Pod deadline told by the Pod": (
        observed((21, pod(running(), deadline=20.0, reason="DeadlineExceeded"))),
        POD_LATE,
    ),
    "Pod given up before its deadline": (
        observed((21, replace(failing, deadline=21.0))),
        GIVEN_UP,
    ),
    "Pod given up, reason unknown": (observed((21, failing)), GIVEN_UP),
    "Pod deadline before the Job's": (
        observed((21, replace(going, failing_at=at(20), deadline=20.0)), job=limited),
        POD_LATE,
    ),
    "evicted through the API": (observed((21, evicting)), EVICTED),
    "evicted, gone before the deletion is shown": (
        observed((21, PodGone(replace(runs, disruption=evicting.disruption)))),
        EVICTED,
    ),
    "evicted by the kubelet, which sets no deletion time": (
        observed((21, replace(failing, disruption=evicting.disruption))),
        EVICTED,
    ),
    "evicted by the kubelet from a Pod with a deadline": (
        observed((21, replace(failing, disruption=evicting.disruption, deadline=600.0))),
        EVICTED,
    ),
    "evicted, then the Job deadline": (observed((21, evicting), job=limited), EVICTED),
    "evicted without a word": (
        observed((21, replace(going, disruption=Disruption("", "")))),
        (*EVICTED[:3], "Pod was disrupted: no reason given"),
    ),
    "node shutdown": (observed((21, shut_down)), SHUT_DOWN),
}


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
@pytest.mark.parametrize(("o", "expected"), TAKEN_AWAY.values(), ids=TAKEN_AWAY.keys())
def test_what_takes_the_pod_away_is_said_at_once(o, expected, form):
    """E, D or N is written as soon as it is seen, and may still be replaced."""
    assert revisable(*expected) == verdict(in_form(o, form))


@pytest.mark.parametrize(("o", "expected"), TAKEN_AWAY.values(), ids=TAKEN_AWAY.keys())
def test_native_settles_with_its_own_sigterm(o, expected):
    """Then the adapter is dead and its file final: there is nothing to wait for."""
    o = in_form(replace(o, stopping_since=o.now), Form.NATIVE)

    assert final(*expected) == verdict(o)


@pytest.mark.parametrize(("o", "expected"), TAKEN_AWAY.values(), ids=TAKEN_AWAY.keys())
def test_classic_hears_the_adapter_until_shortly_before_the_kill(o, expected):
    """Both get SIGTERM at once; 3 s before the end of 30 s of grace what is known is settled."""
    o = in_form(replace(o, stopping_since=o.now), Form.CLASSIC)

    assert revisable(*expected) == verdict(later(o, o.now + 26.9))
    assert final(*expected) == verdict(later(o, o.now + 27))


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
@pytest.mark.parametrize("second", [21.0, 24.0, 50.0])
@pytest.mark.parametrize("gone", [going, failing, evicting, shut_down])
def test_a_result_written_while_stopping_is_heard(form, second, gone):
    """A valid file wins until the very end."""
    o = in_form(observed((second, gone, valid(20)), stopped=21), form)

    assert final(*SUCCESS) == verdict(o)


ENDED_THEN_AWAY = {
    "exit 1, deleted a second later": (deleted(pod(ended(1, end=19))), None, FAILED),
    "exit 1 in the second of the deletion": (
        deleted(pod(ended(1, end=20))),
        None,
        (*DELETED[:3], f"Pod was deleted {BEFORE} ended with exit code 1"),
    ),
    "exit 143 after the deletion": (
        deleted(pod(ended(143, end=25))),
        None,
        (*DELETED[:3], f"Pod was deleted {BEFORE} ended with exit code 143"),
    ),
    "an end without a time": (
        deleted(pod(replace(ended(1), finished_at=None))),
        None,
        (*DELETED[:3], f"Pod was deleted {BEFORE} ended with exit code 1"),
    ),
    "OOM kill while stopping": (deleted(pod(replace(OOM, finished_at=at(25)))), None, KILLED),
    "exit 1 before the Job deadline": (deleted(pod(ended(1, end=19))), limited, FAILED),
    "exit 143 at the Job deadline": (deleted(pod(ended(143, end=20))), limited, JOB_LATE),
    "exit 0 without file at the Job deadline": (
        deleted(pod(ended(0, end=21))),
        limited,
        JOB_LATE,
    ),
    "exit 1 before the Pod deadline": (
        pod(ended(1, end=19), failing_at=at(20), deadline=20.0, phase="Failed"),
        None,
        FAILED,
    ),
    "exit 143 at the Pod deadline": (
        pod(ended(143, end=21), failing_at=at(20), deadline=20.0, phase="Failed"),
        None,
        POD_LATE,
    ),
    "exit 143 at a Pod deadline told only by its reason": (
        pod(ended(143), deadline=20.0, reason="DeadlineExceeded", phase="Failed"),
        None,
        POD_LATE,
    ),
    "OnFailure: exit 143 at the Pod deadline, the phase not yet told": (
        pod(ended(143, end=21), failing_at=at(20), deadline=20.0, restart=ON_FAILURE),
        None,
        POD_LATE,
    ),
    "exit 1, and the Pod failed by that": (
        pod(ended(1, end=20), failing_at=at(20), phase="Failed"),
        None,
        FAILED,
    ),
    "exit 1 before the eviction": (
        deleted(pod(ended(1, end=19), disruption=evicting.disruption)),
        None,
        FAILED,
    ),
    "exit 143 by the eviction": (
        deleted(pod(ended(143, end=21), disruption=evicting.disruption)),
        None,
        EVICTED,
    ),
    "exit 143 by node shutdown": (
        replace(shut_down, adapter=pod(ended(143)).adapter),
        None,
        SHUT_DOWN,
    ),
    "exit 1 in a suspended Job": (
        deleted(pod(ended(143, end=21))),
        suspended,
        (*DELETED[:3], f"Job was suspended {BEFORE} ended with exit code 143"),
    ),
    "container lost in a deleted Pod": (
        deleted(pod(LOST)),
        None,
        (*DELETED[:3], f"Pod was deleted {BEFORE} ended with exit code 137"),
    ),
    "command not found, deleted later": (
        deleted(pod(START_ERROR)),
        None,
        (
            "W3",
            "False",
            "AdapterStartFailed",
            "container 'adapter': StartError: exec: \"nope\": not found",
        ),
    ),
}


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
@pytest.mark.parametrize(
    ("shown", "job", "expected"), ENDED_THEN_AWAY.values(), ids=ENDED_THEN_AWAY.keys()
)
def test_an_end_before_the_wish_is_the_adapters_own(shown, job, expected, form):
    """By the API's whole seconds; within one second nobody can tell, and nothing is made up."""
    o = in_form(observed((30, shown), job=job), form)

    assert final(*expected) == verdict(o)


def test_an_adapter_that_had_ended_in_a_pod_that_vanished_is_judged_by_its_end():
    """A forced deletion shows no moment in which it was asked for."""
    o = observed((11, pod(ended(1))), (12, PodGone(pod(ended(1)))))

    assert final(*FAILED) == verdict(o)


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

    assert final(*DELETED) == verdict(o)
    assert revisable(*DELETED) == verdict(o, Policy(form=Form.CLASSIC))


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
def test_a_pod_deleted_after_another_init_container_failed_for_good(form):
    """Rows E, D and N come before W3, and an adapter that never ran has no end to be judged."""
    blocker = Blocker(Container("prepare", ended(6, start=0, end=1)), for_good=True)
    o = in_form(observed((21, deleted(pod(Waiting("PodInitializing"), blocker=blocker)))), form)

    assert final(*DELETED[:3], f"Pod was deleted {BEFORE} is waiting: PodInitializing") == verdict(
        o
    )


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
def test_a_pod_that_failed_by_another_init_container(form):
    """The kubelet gives such a Pod up: that is trouble with starting, nobody interrupted it."""
    blocker = Blocker(Container("prepare", ended(6, start=0, end=1)), for_good=True)
    waiting = pod(Waiting("PodInitializing"), blocker=blocker, failing_at=at(1))
    o = in_form(observed((3, waiting), stopped=3), form)

    assert final(
        "W3", "False", "AdapterStartFailed", "init container 'prepare': exited with code 6: Error"
    ) == verdict(o)


def test_a_job_without_a_deadline_has_none_to_pass():
    """Its start alone says nothing about a deletion."""
    assert revisable(*DELETED) == verdict(observed((21, going), job=Job(started_at=at(0))))


def test_a_pod_that_does_not_show_the_form_is_taken_for_classic():
    """The form that ends by itself is the safer guess."""
    unknown = replace(going, form=None)

    assert Form.CLASSIC is Case(observed((30, unknown)), Policy()).form
    assert Form.CLASSIC is Case(observed((30, PodRefused())), Policy()).form


def test_the_time_the_pod_was_taken_away_is_remembered_once():
    """The grace period does not start anew with every look."""
    o = observed((21, going), (25, going), (29, PodGone(going)))

    assert 21 == o.memory.taken_away_since
    assert Memory(0.0, at(0)).taken_away_since is None
    assert not isinstance(decide(o, Policy()), Pending)
