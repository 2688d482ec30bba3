"""SIGTERM to the reporter: what is waited for, how long it goes on, when it may end."""

from dataclasses import replace

import pytest

from reporter.verdict.case import Case, Observation, Policy
from reporter.verdict.decide import decide, nothing_more, restartable, stays
from reporter.verdict.facts import (
    Form,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    RestartPolicy,
    Waiting,
)
from tests.situations import (
    GOOD,
    LOOPING,
    ON_FAILURE,
    PENDING,
    deleted,
    ended,
    final,
    in_form,
    later,
    observed,
    pod,
    revisable,
    rows_of,
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import FAILED
from tests.unit.verdict.stopping import BEFORE, DELETED, STOPPED, going, runs

# SIGTERM to the reporter alone.


@pytest.mark.parametrize(("form", "more"), [(Form.NATIVE, True), (Form.CLASSIC, False)])
def test_sigterm_alone_waits_two_seconds_for_the_api_to_say_why(form, more):
    """Then N, revisable; the native form goes on looking for what replaces it."""
    o = in_form(observed((30, runs), stopped=30), form)

    assert PENDING == verdict(o)
    assert 30.05 == pytest.approx(decide(o, Policy()).next_look)
    assert PENDING == verdict(later(o, 31.99))
    assert not nothing_more(later(o, 31.99), Policy())
    assert revisable(*STOPPED) == verdict(later(o, 32))
    assert more is not nothing_more(later(o, 32), Policy())


@pytest.mark.parametrize(
    ("o", "until"),
    [
        pytest.param(observed((30, runs)), 58, id="until 2 s before the kill"),
        pytest.param(observed((30, replace(runs, grace=120.0))), 60, id="30 s at most"),
        pytest.param(
            observed((30, PodSeen(replace(runs, grace=120.0), current=False))),
            148,
            id="the API is away",
        ),
        pytest.param(
            observed(
                (30, PodSeen(replace(runs, grace=120.0), current=False)),
                (50, replace(runs, grace=120.0)),
            ),
            80,
            id="30 s of answers after an outage",
        ),
        pytest.param(observed((30, PodRefused())), 32, id="Pod refused"),
        pytest.param(observed((30, PodNeverSeen())), 32, id="Pod never seen"),
    ],
)
def test_native_form_looks_on_after_sigterm_for_an_end_that_is_shown_late(o, until):
    """The kubelet reports an end again on a 10 s tick, before it kills."""
    o, policy = replace(o, stopping_since=30), Policy(form=Form.NATIVE)

    assert not nothing_more(later(o, until - 0.01), policy)
    assert nothing_more(later(o, until), policy)


def test_end_that_is_shown_twelve_seconds_after_sigterm_replaces_the_interruption():
    """The native form has written N by then."""
    looks = [(30, runs), (33, runs), (42, pod(ended(1, end=30)))]
    said = [verdict(observed(*looks[: n + 1], stopped=30)) for n in range(3)]

    assert ["-", "N", "X!"] == rows_of(said)


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


def test_a_result_where_the_api_has_never_shown_the_pod():
    """A native sidecar is stopped when the adapter is dead; a classic one may be before that."""
    o = observed((30, PodUnknown(), valid()), stopped=30)
    good = ("R", "True", GOOD.reason, GOOD.message)

    assert final(*good) == verdict(o, Policy(form=Form.NATIVE))
    assert revisable(*good) == verdict(o, Policy(form=Form.CLASSIC))
    assert revisable(*good) == verdict(replace(o, stopping_since=None), Policy(form=Form.NATIVE))


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


def test_after_its_two_seconds_a_stopped_reporter_looks_once_a_second():
    """In the classic form nothing but the end of the wait time could still change what it says."""
    o = later(observed((30, runs), stopped=30), 33)

    assert 34 == decide(o, Policy(form=Form.NATIVE)).next_look
    assert 57 == decide(o, Policy(form=Form.CLASSIC)).next_look
    assert 301 == decide(later(o, 58), Policy(form=Form.NATIVE)).next_look


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
        pytest.param(
            observed((270, PodRefused()), (300, PodRefused())),
            False,
            id="refused, wait time over",
        ),
        pytest.param(
            observed((271, PodRefused()), (300, PodRefused())),
            True,
            id="refused for less than 30 s, wait time over",
        ),
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
