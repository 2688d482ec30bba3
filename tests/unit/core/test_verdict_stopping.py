"""Deletion, deadlines, eviction and SIGTERM: rows E, D and N, and how long the reporter goes on."""

from dataclasses import replace

import pytest

from reporter.core.case import Case, Observation, Policy
from reporter.core.facts import (
    Blocker,
    Container,
    Disruption,
    Form,
    Job,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    RestartPolicy,
    Waiting,
)
from reporter.core.memory import Memory
from reporter.core.verdict import Pending, decide, nothing_more, restartable, stays
from tests.situations import (
    LOOPING,
    LOST,
    ON_FAILURE,
    OOM,
    PENDING,
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

BEFORE = "before a verdict was known; adapter container"
DELETED = ("N", "Unknown", "AdapterInterrupted", f"Pod was deleted {BEFORE} is running")
SUSPENDED = ("N", "Unknown", "AdapterInterrupted", f"Job was suspended {BEFORE} is running")
GONE = ("N", "Unknown", "AdapterInterrupted", f"Pod is gone {BEFORE} is running")
GIVEN_UP = (
    "N",
    "Unknown",
    "AdapterInterrupted",
    f"Pod was stopped by the kubelet {BEFORE} is running",
)
STOPPED = ("N", "Unknown", "AdapterInterrupted", f"Reporter was stopped {BEFORE} is running")
JOB_LATE = (
    "D",
    "False",
    "AdapterTimeout",
    "Adapter did not finish within the Job's activeDeadlineSeconds (20s)",
)
POD_LATE = (
    "D",
    "False",
    "AdapterTimeout",
    "Adapter did not finish within the Pod's activeDeadlineSeconds (20s)",
)
EVICTED = (
    "E",
    "Unknown",
    "AdapterEvicted",
    "Pod was disrupted: EvictionByEvictionAPI: by the API",
)
SHUT_DOWN = (
    "E",
    "Unknown",
    "AdapterEvicted",
    "Pod was disrupted: Terminated: node shutdown",
)
KILLED = (
    "O",
    "False",
    "AdapterOOMKilled",
    "Adapter container was killed due to out of memory (OOMKilled)",
)
FAILED = ("X", "False", "AdapterExitedWithError", "Adapter container exited with code 1: Error")
SUCCESS = ("R", "True", "AllChecked", "12 of 12")

runs = pod(running())
going = deleted(runs)  # deletion asked for at 20 s, 30 s of grace
failing = pod(running(), failing_at=at(20))
evicting = replace(going, disruption=Disruption("EvictionByEvictionAPI", "by the API"))
shut_down = pod(running(), disruption=Disruption("Terminated", "node shutdown", under_way=True))
suspended = Job(suspended=True)
limited = Job(started_at=at(0), deadline=20)
exhausted = Job(failure="BackoffLimitExceeded")

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


# The back-off limit is used up: the extra run is thrown away.


def exhausted_by(run, file=None, *, seen=True, more=()):
    """The first run ended as `run`, the second is stopped because the Job has given up."""
    first = (11, pod(run, restart=ON_FAILURE), *([file] if file else []))
    second = pod(running(12), restart=ON_FAILURE, restarts=1)
    return observed(
        *([first] if seen else []),
        *more,
        (13, deleted(second, 13), *([file] if file else [])),
        job=exhausted,
    )


@pytest.mark.parametrize(
    ("run", "file", "expected"),
    [
        pytest.param(ended(1), valid(9), SUCCESS, id="its file first"),
        pytest.param(OOM, None, KILLED, id="OOM kill"),
        pytest.param(OOM, invalid(9), KILLED, id="OOM kill before its invalid file"),
        pytest.param(
            ended(1),
            invalid(9),
            (
                "I",
                "False",
                "InvalidResultFormat",
                "Failed to parse adapter result: the file is empty",
            ),
            id="invalid file",
        ),
        pytest.param(
            START_ERROR,
            None,
            (
                "W3",
                "False",
                "AdapterStartFailed",
                "container 'adapter': StartError: exec: \"nope\": not found",
            ),
            id="command not found",
        ),
        pytest.param(
            LOST,
            None,
            (
                "N",
                "Unknown",
                "AdapterInterrupted",
                f"Adapter container was lost {BEFORE} ended with exit code 137",
            ),
            id="lost",
        ),
        pytest.param(ended(1), None, FAILED, id="exit 1"),
    ],
)
def test_the_last_ended_run_is_judged_when_the_back_off_limit_is_used_up(run, file, expected):
    """As remembered: the API drops `lastState` with the deletion."""
    o = exhausted_by(run, file)

    assert revisable(*expected) == verdict(o)
    assert final(*expected) == verdict(replace(o, stopping_since=13))


def test_no_ended_run_was_seen_when_the_back_off_limit_is_used_up():
    """Nothing is known, and nothing is made up."""
    assert revisable(*DELETED) == verdict(exhausted_by(ended(1), seen=False))


def test_the_run_before_the_extra_one_is_judged_by_its_last_state():
    """Where only `lastState` was ever shown it is the run."""
    second = pod(running(12), last=ended(1), restarts=1, restart=ON_FAILURE)
    o = exhausted_by(ended(1), seen=False, more=[(12, second)])

    assert revisable(*FAILED) == verdict(o)


def test_the_newest_ended_run_is_judged_though_the_last_state_shows_an_older_one():
    """The extra run has ended by itself too, just before the deletion."""
    second = pod(ended(3, start=12, end=14), last=ended(1), restarts=1, restart=ON_FAILURE)
    o = observed(
        (11, pod(ended(1), restart=ON_FAILURE)),
        (14, second),
        (15, deleted(second, 14)),
        job=exhausted,
    )

    assert final(
        "X", "False", "AdapterExitedWithError", "Adapter container exited with code 3: Error"
    ) == verdict(o)


def test_the_extra_run_in_back_off_does_not_count_either():
    """Deleted while it waits for yet another try: the run that ended by itself is the last one."""
    waits = pod(LOOPING, last=ended(4, start=12, end=13), restarts=1, restart=ON_FAILURE)
    o = observed(
        (11, pod(ended(1), restart=ON_FAILURE)),
        (14, waits),
        (15, deleted(waits, 15)),
        job=exhausted,
    )

    assert revisable(
        "X", "False", "AdapterExitedWithError", "Adapter container exited with code 4: Error"
    ) == verdict(o)


# SIGTERM to the reporter alone.


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
def test_sigterm_alone_waits_two_seconds_for_the_api_to_say_why(form):
    """Then N, revisable, and there is nothing more to wait for."""
    o = in_form(observed((30, runs), stopped=30), form)

    assert PENDING == verdict(o)
    assert 30.05 == pytest.approx(decide(o, Policy()).next_look)
    assert PENDING == verdict(later(o, 31.99))
    assert not nothing_more(later(o, 31.99), Policy())
    assert revisable(*STOPPED) == verdict(later(o, 32))
    assert nothing_more(later(o, 32), Policy())


def test_sigterm_at_a_natural_end():
    """The terminated state comes within the two seconds and decides."""
    looks = [(30, runs), (30.05, runs), (30.1, pod(ended(1, end=30)))]
    said = [verdict(observed(*looks[: n + 1], stopped=30)) for n in range(3)]

    assert ["-", "-", "X!"] == rows_of(said)


def test_sigterm_and_the_deletion_seen_later():
    """A deletion that shows within the two seconds is the reason."""
    assert final(*DELETED) == verdict(observed((30, runs), (31, deleted(runs, 30)), stopped=30))


@pytest.mark.parametrize(
    ("o", "expected"),
    [
        pytest.param(observed((400, runs), stopped=30), revisable(*STOPPED), id="wait time over"),
        pytest.param(
            later(observed((3, pod(Waiting("ErrImagePull")))), 90),
            revisable(*STOPPED[:3], f"Reporter was stopped {BEFORE} is waiting: ErrImagePull"),
            id="cannot start",
        ),
        pytest.param(
            observed((90, PodNeverSeen())),
            revisable(*STOPPED[:3], f"Reporter was stopped {BEFORE} cannot be observed"),
            id="Pod never seen",
        ),
        pytest.param(
            observed((90, PodRefused())),
            revisable(*STOPPED[:3], f"Reporter was stopped {BEFORE} cannot be observed"),
            id="Pod refused",
        ),
    ],
)
def test_sigterm_comes_before_the_wait_time_and_trouble(o, expected):
    """Whoever is being stopped does not guess."""
    assert expected == verdict(replace(o, stopping_since=30))


def test_while_the_api_is_away_a_stopped_reporter_uses_its_whole_budget():
    """30 s of grace less 2 s of margin and half a second for the last write."""
    o = observed((30, PodSeen(runs, current=False)), stopped=30)

    assert PENDING == verdict(later(o, 57.4))
    assert revisable(*STOPPED) == verdict(later(o, 57.5))


def test_for_ten_seconds_after_the_apis_return_a_stopped_reporter_goes_on():
    """The kubelet reports late after an outage."""
    o = observed((30, PodSeen(runs, current=False)), (40, runs), stopped=30)

    assert PENDING == verdict(later(o, 49.9))
    assert revisable(*STOPPED) == verdict(later(o, 50))
    assert final(*FAILED) == verdict(
        observed((45, pod(ended(1, end=29))), stopped=30, memory=o.memory)
    )


def test_an_api_that_returned_long_ago_is_not_waited_for():
    """The window after its return is over before SIGTERM comes."""
    o = observed((5, PodUnknown()), (6, runs), (30, runs), stopped=30)

    assert revisable(*STOPPED) == verdict(later(o, 32))


def test_an_api_that_returns_late_does_not_stretch_the_budget():
    """Returned at 25 s of 30 s of grace: the end of the budget comes first."""
    o = observed((30, PodSeen(runs, current=False)), (55, runs), stopped=30)

    assert PENDING == verdict(later(o, 57.4))
    assert revisable(*STOPPED) == verdict(later(o, 57.5))


# How long the reporter goes on after its SIGTERM.


def budget(o: Observation):
    """Seconds after SIGTERM: (may go on, hears the adapter, asks the API)."""
    case = Case(o, Policy())
    moments = (case.stop_deadline, case.hear_until, case.poll_until)
    return tuple(round(moment - o.stopping_since, 3) for moment in moments)


@pytest.mark.parametrize(
    ("o", "expected"),
    [
        pytest.param(observed((30, runs), stopped=30), (28, 27, 2), id="30 s of grace"),
        pytest.param(
            observed((30, replace(runs, grace=10.0)), stopped=30), (8, 7, 2), id="10 s of grace"
        ),
        pytest.param(
            observed((30, replace(runs, grace=2.0)), stopped=30), (1.5, 0.5, 1), id="2 s of grace"
        ),
        pytest.param(
            observed((30, replace(runs, grace=1.0)), stopped=30), (1.5, 0.5, 1), id="1 s of grace"
        ),
        pytest.param(
            observed((30, deleted(runs, 30)), stopped=30), (28, 27, 2), id="deleted, both stopped"
        ),
        pytest.param(
            observed((30, deleted(runs, 30, grace=60)), stopped=30),
            (58, 57, 2),
            id="deleted with a longer grace than the Pod's own",
        ),
        pytest.param(
            observed((30, deleted(runs, 30, grace=1)), stopped=30),
            (1.5, 0.5, 1),
            id="deleted with 1 s of grace",
        ),
        pytest.param(
            observed((30, deleted(runs, 30)), (33, deleted(runs, 30)), stopped=33),
            (25, 24, 2),
            id="native: the adapter took 3 s of the grace",
        ),
        pytest.param(
            observed((30, deleted(runs, 30)), (60, deleted(runs, 30)), stopped=60),
            (1.5, 0.5, 1),
            id="native: the adapter used up the grace",
        ),
        pytest.param(
            observed((30, PodSeen(runs, current=False)), (50, deleted(runs, 30)), stopped=30),
            (28, 27, 27.5),
            id="the deletion is seen long after SIGTERM",
        ),
        pytest.param(observed((30, PodUnknown()), stopped=30), (28, 27, 27.5), id="Pod unknown"),
        pytest.param(
            observed((29, PodGone(replace(runs, grace=10.0))), stopped=30), (7, 6, 2), id="Pod gone"
        ),
    ],
)
def test_the_time_after_sigterm(o, expected):
    """`max(1.5 s, time to the end of the grace period - 2 s)`, and what is done in it."""
    assert expected == budget(o)


restarting = pod(running(), restart=ON_FAILURE)


@pytest.mark.parametrize(
    ("o", "expected"),
    [
        pytest.param(observed((21, restarting)), None, id="not deleted"),
        pytest.param(observed((21, going)), None, id="Never"),
        pytest.param(observed((21, PodGone(restarting))), None, id="gone"),
        pytest.param(observed((21, deleted(restarting))), 22.5, id="deleted"),
        pytest.param(
            observed((21, deleted(restarting)), (22, deleted(restarting)), stopped=22),
            22.5,
            id="stopped",
        ),
        pytest.param(
            observed((21, deleted(restarting, grace=2)), stopped=21),
            21.5,
            id="stopped, with 2 s of grace: a second is kept for the write",
        ),
    ],
)
def test_how_long_a_deletion_under_on_failure_holds_writes_back(o, expected):
    """The Job controller may be ending the Job, and has yet to write so."""
    assert (float("-inf") if expected is None else expected) == Case(o, Policy()).held_until


def test_before_sigterm_there_is_no_end():
    """No budget, nobody to hear out, nothing that says there is nothing more."""
    case = Case(observed((30, runs)), Policy())

    assert (None, None, None) == (case.stop_deadline, case.hear_until, case.poll_until)
    assert not nothing_more(case.o, Policy())


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


def test_after_its_two_seconds_a_stopped_reporter_polls_no_more():
    """Nothing but the end of the wait time could still change what it says."""
    o = later(observed((30, runs), stopped=30), 33)

    assert 57 == decide(o, Policy()).next_look
    assert 301 == decide(later(o, 58), Policy()).next_look


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


# When a classic reporter may end.


@pytest.mark.parametrize(
    ("o", "expected"),
    [
        pytest.param(observed((30, pod(running(), restart=ON_FAILURE))), True, id="runs"),
        pytest.param(
            observed((30, pod(LOOPING, last=ended(1), restart=ON_FAILURE))), True, id="in back-off"
        ),
        pytest.param(observed((30, pod(ended(1), restart=ON_FAILURE))), True, id="exit 1"),
        pytest.param(observed((30, pod(ended(0), restart=ON_FAILURE))), False, id="exit 0"),
        pytest.param(
            observed((30, deleted(pod(ended(1), restart=ON_FAILURE)))), False, id="ended, deleted"
        ),
        pytest.param(
            observed((30, deleted(pod(running(), restart=ON_FAILURE)))), True, id="stopping"
        ),
        pytest.param(observed((30, PodGone(runs))), False, id="gone"),
        pytest.param(observed((30, runs)), False, id="Never"),
        pytest.param(observed((30, PodRefused())), True, id="refused, wait time not over"),
        pytest.param(observed((300, PodRefused())), False, id="refused, wait time over"),
        pytest.param(observed((300, PodNeverSeen())), False, id="never seen, wait time over"),
        pytest.param(observed((300, PodUnknown())), False, id="no answer, wait time over"),
        pytest.param(
            observed((300, pod(adapter=None, misfit="none", restart=ON_FAILURE))),
            False,
            id="misfit, wait time over",
        ),
    ],
)
def test_a_reporter_whose_end_would_be_counted_stays(o, expected):
    """OnFailure, or unknown: until the adapter has ended for good, as far as it can be seen."""
    assert expected is stays(o, Policy())


@pytest.mark.parametrize(
    ("o", "expected"),
    [
        pytest.param(observed((30, runs)), False, id="Never"),
        pytest.param(observed((30, pod(running(), restart=ON_FAILURE))), True, id="OnFailure"),
        pytest.param(
            observed((30, pod(running(), own_restart=ON_FAILURE))),
            True,
            id="OnFailure for us, Never for the adapter alone",
        ),
        pytest.param(
            observed((30, pod(running(), restart=RestartPolicy("Always")))), True, id="Always"
        ),
        pytest.param(observed((30, PodRefused())), True, id="refused"),
        pytest.param(observed((30, runs), (31, PodUnknown())), False, id="known from before"),
    ],
)
def test_who_may_be_restarted_must_not_end_with_an_error(o, expected):
    """Any other exit than 0 would be restarted and counted against the back-off limit."""
    assert expected is restartable(o)


def test_the_time_the_pod_was_taken_away_is_remembered_once():
    """The grace period does not start anew with every look."""
    o = observed((21, going), (25, going), (29, PodGone(going)))

    assert 21 == o.memory.taken_away_since
    assert Memory(0.0, at(0)).taken_away_since is None
    assert not isinstance(decide(o, Policy()), Pending)
