"""SIGTERM to the reporter: what is waited for, how long it goes on, when it may end."""

from dataclasses import replace

import pytest

from reporter.verdict.case import NEVER, Case, Policy
from reporter.verdict.decide import decide, nothing_more, restartable, stays
from reporter.verdict.facts import (
    Form,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    RestartPolicy,
)
from tests.saying import said
from tests.situations import (
    LOOPING,
    ON_FAILURE,
    PULLING,
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

STOPPED = "N? Reporter was stopped ... is running"
NATIVE, CLASSIC = Policy(form=Form.NATIVE), Policy(form=Form.CLASSIC)

runs = pod(running())
patient = replace(runs, grace=120.0)
going = deleted(runs)
away = PodSeen(runs, current=False)


@pytest.mark.parametrize(("form", "more"), [(Form.NATIVE, True), (Form.CLASSIC, False)])
def test_sigterm_alone_waits_two_seconds_for_the_api_to_say_why(form, more):
    """Then N, revisable; the native form goes on looking for what replaces it."""
    o = in_form(observed((30, runs), stopped=30), form)

    assert "-" == said(o)
    assert 30.05 == pytest.approx(decide(o, Policy()).next_look)
    assert "-" == said(later(o, 31.99))
    assert not nothing_more(later(o, 31.99), Policy())
    assert STOPPED == said(later(o, 32))
    assert more is not nothing_more(later(o, 32), Policy())


AFTER = {
    "two seconds are over": (STOPPED, (30, runs), (32, runs)),
    "the end is shown within two seconds": ("X!", (30, runs), (30.1, pod(ended(1, end=30)))),
    "the end is shown 12 s later, when N is written": (
        "X!",
        (30, runs),
        (33, runs),
        (42, pod(ended(1, end=30))),
    ),
    "the deletion is shown within two seconds": ("N!", (30, runs), (31, deleted(runs, 30))),
    # Whoever is being stopped does not guess.
    "the wait time is over": (STOPPED, (400, runs)),
    "cannot start": (
        "N? Reporter was stopped ... is waiting: ErrImagePull",
        (3, pod(PULLING)),
        (90, pod(PULLING)),
    ),
    "Pod never seen": ("N? Reporter was stopped ... cannot be observed", (90, PodNeverSeen())),
    "Pod refused": ("N? Reporter was stopped ... cannot be observed", (90, PodRefused())),
    # 30 s of grace less 2 s of margin and half a second for the last write
    "the API is away": ("-", (30, away), (57.4, away)),
    "the API is away until the budget ends": (STOPPED, (30, away), (57.5, away)),
    # The kubelet reports late after an outage.
    "the API returned less than 10 s ago": ("-", (30, away), (40, runs), (49.9, runs)),
    "the API returned 10 s ago": (STOPPED, (30, away), (40, runs), (50, runs)),
    "the API returned and shows the end": (
        "X!",
        (30, away),
        (40, runs),
        (45, pod(ended(1, end=29))),
    ),
    "the API returned before SIGTERM": (STOPPED, (5, PodUnknown()), (6, runs), (32, runs)),
    "the API returned late": ("-", (30, away), (55, runs), (57.4, runs)),
    "the API returned late and the budget ends": (STOPPED, (30, away), (55, runs), (57.5, runs)),
}


@pytest.mark.parametrize("situation", AFTER)
def test_after_sigterm(situation):
    expected, *looks = AFTER[situation]

    assert expected == said(observed(*looks, stopped=30))


def test_a_result_where_the_api_has_never_shown_the_pod():
    """A native sidecar is stopped when the adapter is dead; a classic one may be before that."""
    o = observed((30, PodUnknown(), valid()), stopped=30)

    assert "R!" == said(o, NATIVE)
    assert "R?" == said(o, CLASSIC)
    assert "R?" == said(replace(o, stopping_since=None), NATIVE)


PATIENT_AND_AWAY = PodSeen(patient, current=False)
LOOKS_ON = {
    "until 2 s before the kill": (58, (30, runs)),
    "30 s at most": (60, (30, patient)),
    "the API is away": (148, (30, PATIENT_AND_AWAY)),
    "30 s of answers after an outage": (80, (30, PATIENT_AND_AWAY), (50, patient)),
    "Pod refused": (32, (30, PodRefused())),
    "Pod never seen": (32, (30, PodNeverSeen())),
}


@pytest.mark.parametrize("situation", LOOKS_ON)
def test_native_form_looks_on_after_sigterm_for_an_end_that_is_shown_late(situation):
    """The kubelet reports an end again on a 10 s tick, before it kills."""
    until, *looks = LOOKS_ON[situation]
    o = observed(*looks, stopped=30)

    assert not nothing_more(later(o, until - 0.01), NATIVE)
    assert nothing_more(later(o, until), NATIVE)


def test_after_its_two_seconds_a_stopped_reporter_looks_once_a_second():
    """In the classic form nothing but the end of the wait time could still change what it says."""
    o = later(observed((30, runs), stopped=30), 33)

    assert 34 == decide(o, NATIVE).next_look
    assert 57 == decide(o, CLASSIC).next_look
    assert 301 == decide(later(o, 58), NATIVE).next_look


# How long the reporter goes on after its SIGTERM.

BUDGETS = {
    "30 s of grace": ((28, 27, 2), 30, (30, runs)),
    "10 s of grace": ((8, 7, 2), 30, (30, replace(runs, grace=10.0))),
    "2 s of grace": ((1.5, 0.5, 1), 30, (30, replace(runs, grace=2.0))),
    "1 s of grace": ((1.5, 0.5, 1), 30, (30, replace(runs, grace=1.0))),
    "deleted, both stopped": ((28, 27, 2), 30, (30, deleted(runs, 30))),
    "deleted with a longer grace than the Pod's own": (
        (58, 57, 2),
        30,
        (30, deleted(runs, 30, grace=60)),
    ),
    "deleted with 1 s of grace": ((1.5, 0.5, 1), 30, (30, deleted(runs, 30, grace=1))),
    "native: the adapter took 3 s of the grace": (
        (25, 24, 2),
        33,
        (30, deleted(runs, 30)),
        (33, deleted(runs, 30)),
    ),
    "native: the adapter used up the grace": (
        (1.5, 0.5, 1),
        60,
        (30, deleted(runs, 30)),
        (60, deleted(runs, 30)),
    ),
    "the deletion is seen long after SIGTERM": (
        (28, 27, 27.5),
        30,
        (30, away),
        (50, deleted(runs, 30)),
    ),
    "Pod unknown": ((28, 27, 27.5), 30, (30, PodUnknown())),
    "Pod gone": ((7, 6, 2), 30, (29, PodGone(replace(runs, grace=10.0)))),
}


@pytest.mark.parametrize("situation", BUDGETS)
def test_the_time_after_sigterm(situation):
    """Seconds: may go on (`max(1.5 s, grace - 2 s)`), hears the adapter, asks the API."""
    expected, stopped, *looks = BUDGETS[situation]
    case = Case(observed(*looks, stopped=stopped), Policy())
    moments = (case.stop_deadline, case.result_counts_until, case.cause_shown_by)

    assert expected == tuple(round(moment - stopped, 3) for moment in moments)


def test_before_sigterm_there_is_no_end():
    """No budget, nobody to hear out, nothing that says there is nothing more."""
    case = Case(observed((30, runs)), Policy())

    assert {NEVER} == {case.stop_deadline, case.result_counts_until, case.cause_shown_by}
    assert not nothing_more(case.o, Policy())


restarting = retried(running())


GOING_ON = deleted(restarting)
NOT_AT_ALL = float("-inf")
HELD_BACK = {
    "not deleted": (NOT_AT_ALL, observed((21, restarting))),
    "Never": (NOT_AT_ALL, observed((21, going))),
    "gone": (NOT_AT_ALL, observed((21, PodGone(restarting)))),
    "deleted": (22.5, observed((21, GOING_ON))),
    "stopped": (22.5, observed((21, GOING_ON), (22, GOING_ON), stopped=22)),
    "stopped, with 2 s of grace: a second is kept for the write": (
        21.5,
        observed((21, deleted(restarting, grace=2)), stopped=21),
    ),
}


@pytest.mark.parametrize("situation", HELD_BACK)
def test_how_long_a_deletion_under_on_failure_holds_writes_back(situation):
    """The Job controller may be ending the Job, and has yet to write so."""
    expected, o = HELD_BACK[situation]

    assert expected == Case(o, Policy()).no_write_before


# When a classic reporter may end.

STAYS = {
    "runs": (True, (30, restarting)),
    "in back-off": (True, (30, retried(LOOPING, last=ended(1)))),
    "exit 1": (True, (30, retried(ended(1)))),
    "exit 0": (False, (30, retried(ended(0)))),
    "ended, deleted": (False, (30, deleted(retried(ended(1))))),
    "stopping": (True, (30, deleted(restarting))),
    "gone": (False, (30, PodGone(runs))),
    "Never": (False, (30, runs)),
    "refused, wait time not over": (True, (30, PodRefused())),
    "refused, wait time over": (False, (270, PodRefused()), (300, PodRefused())),
    "refused for less than 30 s, wait time over": (True, (271, PodRefused()), (300, PodRefused())),
    "never seen, wait time over": (False, (300, PodNeverSeen())),
    "no answer, wait time over": (False, (300, PodUnknown())),
    "misfit, wait time over": (False, (300, retried(adapter=None, misfit="none"))),
}


@pytest.mark.parametrize("situation", STAYS)
def test_a_reporter_whose_end_would_be_counted_stays(situation):
    """OnFailure, or unknown: until the adapter has ended for good, as far as it can be seen."""
    expected, *looks = STAYS[situation]

    assert expected is stays(observed(*looks), Policy())


@pytest.mark.parametrize(
    ("expected", "looks"),
    [
        (False, [runs]),
        (True, [restarting]),
        (True, [pod(running(), own_restart=ON_FAILURE)]),
        (True, [pod(running(), restart=RestartPolicy("Always"))]),
        (True, [PodRefused()]),
        (False, [runs, PodUnknown()]),
    ],
    ids=["Never", "OnFailure", "OnFailure for us alone", "Always", "refused", "known from before"],
)
def test_who_may_be_restarted_must_not_end_with_an_error(expected, looks):
    """Any other exit than 0 would be restarted and counted against the back-off limit."""
    assert expected is restartable(observed(*enumerate(looks)))
