"""The exit code of the classic form, and the end of a delivery, as tables."""

import pytest

from reporter.link.delivery import LEAST_TRY
from reporter.sidecar.ending import (
    BAD_SETTINGS,
    LAST_TRY,
    LAST_WORD,
    LEAVE,
    code_after_crash,
    delivery_end,
    exit_code,
    linger_end,
)
from reporter.sidecar.publish import LoopOutcome
from reporter.verdict.case import Case, Observation, Policy
from reporter.verdict.condition import Attempt, Note, Standing
from reporter.verdict.decide import Settled
from reporter.verdict.facts import Form, Job, PodGone, PodLook, PodRefused, PodUnknown
from reporter.verdict.rows import Report
from tests.situations import ON_FAILURE, deleted, ended, in_form, observed, pod, running

POLICIES = ("infrastructure", "failure", "never")
ROWS_OF_OUR_OWN = ("T", "O", "I", "X", "W1", "W2", "W3", "C", "D", "E", "N", "M", "A")


def standing(row: str, status: str, *, final: bool = True) -> Standing:
    """What stands on the Job."""
    note = Note(Attempt("pod", "uid", 1.0, 1.0), final, row)
    return Standing(job=Job(), resource_version="1", status=status, note=note)


@pytest.mark.parametrize(
    ("row", "status", "codes"),
    [
        ("R", "True", (0, 0, 0)),
        ("R", "False", (0, 1, 0)),
        ("S", "True", (0, 0, 0)),
        *[(row, "False", (1, 1, 0)) for row in ROWS_OF_OUR_OWN],
    ],
)
def test_a_verdict_that_was_written(row: str, status: str, codes: tuple[int, ...]) -> None:
    """By row, status and EXIT_POLICY."""
    found = tuple(
        exit_code(LoopOutcome.FINAL, standing(row, status), policy, None) for policy in POLICIES
    )

    assert codes == found


@pytest.mark.parametrize(
    ("own", "codes"),
    [
        (Settled(Report("R", "True", "AllGood", "index 1: fine")), (0, 0, 0)),
        (Settled(Report("X", "False", "AdapterMissingResults", "index 1: none")), (1, 1, 0)),
    ],
)
def test_beside_the_verdict_of_another_index_its_own_decides(own, codes) -> None:
    stands = standing("R", "False")

    assert codes == tuple(
        exit_code(LoopOutcome.OTHER_INDEX_FAILED, stands, policy, own) for policy in POLICIES
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (LoopOutcome.GAVE_UP, 1),
        (LoopOutcome.JOB_NEVER_SEEN, 1),
        (LoopOutcome.JOB_GONE, 0),
        (LoopOutcome.SUPERSEDED, 0),
    ],
)
def test_an_end_without_a_verdict(outcome: LoopOutcome, code: int, policy: str) -> None:
    """Whatever the policy, and whatever stands on the Job from before."""
    assert (code, code) == (
        exit_code(outcome, standing("R", "True"), policy, None),
        exit_code(outcome, None, policy, None),
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_stopped_before_anything_was_written(policy: str) -> None:
    """There is no verdict to be good."""
    assert 1 == exit_code(LoopOutcome.STOPPED, None, policy, None)


RUNS = observed((30, pod(running())))


@pytest.mark.parametrize(
    ("o", "form", "code"),
    [
        pytest.param(RUNS, Form.CLASSIC, 1, id="classic, never restarted"),
        pytest.param(RUNS, Form.NATIVE, 0, id="native"),
        pytest.param(
            observed((30, pod(running(), restart=ON_FAILURE))), Form.CLASSIC, 0, id="OnFailure"
        ),
        pytest.param(observed((30, PodRefused())), Form.CLASSIC, 0, id="policy not known"),
        pytest.param(None, None, 0, id="nothing seen"),
    ],
)
def test_the_last_try_after_crashes_ends_with_a_code_that_fails_no_job(
    o: Observation | None, form: Form | None, code: int
) -> None:
    """A code other than 0 is left to those whom nobody restarts."""
    case = Case(o, Policy(form=form)) if o else None

    assert code == code_after_crash(case, began=0, now=30, last=True)
    assert code_after_crash(case, began=0, now=30, last=False) is None


@pytest.mark.parametrize(
    ("form", "began", "end"),
    [(Form.CLASSIC, 0, 361), (Form.CLASSIC, 500, 560), (Form.NATIVE, 0, float("inf"))],
    ids=["a minute after the wait time", "a minute after the start", "native: no end"],
)
def test_a_reporter_that_crashes_again_and_again_holds_a_classic_pod_no_longer_than_a_verdict(
    form: Form, began: float, end: float
) -> None:
    """The adapter started at 1 and has 300 s; a native reporter holds up nothing."""
    case = Case(RUNS, Policy(form=form))

    assert code_after_crash(case, began=began, now=min(end - 0.1, 1e9), last=False) is None
    if end < float("inf"):
        assert 1 == code_after_crash(case, began=began, now=end, last=False)


def test_bad_settings_have_a_code_of_their_own() -> None:
    """Published."""
    assert 2 == BAD_SETTINGS


@pytest.mark.parametrize(
    ("form", "stopped", "concluded", "waiting", "expected"),
    [
        (Form.CLASSIC, None, 10, 11, 41),
        (Form.CLASSIC, 12, 10, 13, 41),
        (Form.CLASSIC, 5, 30, 31, 34),
        (Form.NATIVE, None, 10, 11, float("inf")),
        (Form.NATIVE, 12, 10, 13, 41),
        (Form.NATIVE, 500, 10, 501, 529),
    ],
)
def test_w24_end_of_a_delivery(
    form: Form, stopped: float | None, concluded: float, waiting: float, expected: float
) -> None:
    """W24: a second for a try begun 30 s after the verdict, or 2 s before the grace is over."""
    o = in_form(observed((1, pod())), form)

    assert expected == delivery_end(
        o, Policy(), stopped=stopped, concluded=concluded, waiting=waiting
    )


@pytest.mark.parametrize(
    ("stopped", "waiting", "expected"),
    [(None, None, float("inf")), (700, None, 729), (None, 600, 601), (700, 700.5, 701.5)],
    ids=["goes on", "stopped", "waited for at last", "stopped and waited for at last"],
)
def test_w24_delivery_of_a_process_that_lives_on_anyway(
    stopped: float | None, waiting: float | None, expected: float
) -> None:
    """W24: the 30 s are for what it holds up; when it does so late, once more."""
    o = in_form(observed((1, pod())), Form.CLASSIC)

    assert expected == delivery_end(o, Policy(), stopped=stopped, concluded=10, waiting=waiting)


def test_w24_end_of_a_delivery_when_the_deletion_came_long_before() -> None:
    """W24: a native sidecar has what the others have left of the Pod's grace period."""
    o = in_form(observed((20, deleted(pod(), 20))), Form.NATIVE)

    assert 49 == delivery_end(o, Policy(), stopped=45, concluded=10, waiting=46)


@pytest.mark.parametrize(("form", "expected"), [(None, 41), (Form.NATIVE, float("inf"))])
def test_w24_end_of_a_delivery_without_a_look(form: Form | None, expected: float) -> None:
    """W24: as the settings say, else as short as in the classic form."""
    assert expected == delivery_end(None, Policy(form=form), stopped=None, concluded=10, waiting=11)


@pytest.mark.parametrize("used", [0, 0.5, 8, 40])
@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("grace", [1, 2, 3, 4, 10, 30])
def test_w24_the_process_has_ended_before_the_kubelet_kills_it(
    form: Form, grace: float, used: float
) -> None:
    """W24: with half a second to spare, even where the courier or the end hangs.

    A native form has what the adapter has left of the grace period, and never less than 2 s.
    """
    stopped = 100.0
    o = in_form(observed((stopped - used, deleted(pod(grace=grace), grace=grace))), form)
    left = max(2.0, grace - (used if form is Form.NATIVE else 0.0))

    over = delivery_end(o, Policy(), stopped=stopped, concluded=99, waiting=stopped) - stopped

    assert max(1.25, left - 1) == over
    assert max(0.25, left - 2) == over - LEAST_TRY  # the last try begins
    assert left - (over + max(LAST_WORD, LEAVE)) >= 0.5


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize(
    ("grace", "concluded", "expected"),
    [
        (2, 0.75, 1.25),
        (2, 1.1, 1.6),
        (2, 1.3, 1.65),
        (2, 1.5, 1.65),
        (3, 1.4, 2),
        (3, 1.7, 2.2),
        (4, 2.2, 3),
        (30, 28.2, 29),
    ],
)
def test_w24_verdict_that_is_handed_over_late(
    form: Form, grace: float, concluded: float, expected: float
) -> None:
    """W24: half a second, as far as the kubelet leaves it, after trying to write took the rest."""
    o = in_form(observed((100, deleted(pod(), 100, grace=grace))), form)

    over = delivery_end(o, Policy(), stopped=100, concluded=100 + concluded, waiting=102) - 100

    assert expected == pytest.approx(over)
    assert grace - (over + max(LAST_WORD, LEAVE)) >= 0.1 - 1e-9


@pytest.mark.parametrize("look", [PodUnknown(), PodRefused()])
@pytest.mark.parametrize(
    ("form", "concluded", "expected"),
    [
        (Form.NATIVE, 10, 129),
        (Form.NATIVE, 123, 129),
        (Form.NATIVE, 140, 699),
        (Form.CLASSIC, 140, 171),
    ],
)
def test_w24_delivery_of_a_reporter_that_has_never_seen_its_pod(
    look: PodLook, form: Form, concluded: float, expected: float
) -> None:
    """W24: the usual grace period is over, and it goes on writing: its own may be longer."""
    o, policy = observed((90, look)), Policy(form=form)

    assert expected == delivery_end(o, policy, stopped=100, concluded=concluded, waiting=concluded)


def test_the_link_begins_a_try_for_the_time_that_is_kept_for_it() -> None:
    """One number, in two places: who has no aggregator does not load the link."""
    assert LEAST_TRY == LAST_TRY


@pytest.mark.parametrize(
    ("grace", "seconds", "expected"),
    [(30, 10, 110), (30, 60, 128), (30, 0, 100), (3, 10, 101), (2, 10, 100), (0, 10, 98)],
)
def test_a_native_reporter_stays_for_a_scrape_within_the_grace_period(
    grace: float, seconds: float, expected: float
) -> None:
    """After SIGTERM at 100: never longer than the grace period less 2 s."""
    o = in_form(observed((90, pod(ended(0), grace=grace))), Form.NATIVE)

    assert expected == linger_end(o, Policy(), seconds, 100)


@pytest.mark.parametrize(
    "o",
    [
        observed((90, deleted(pod(ended(0)), 89))),
        observed((90, PodGone(deleted(pod(ended(0)), 89)))),
        observed((90, PodRefused())),
    ],
    ids=["being deleted", "gone", "not to be read"],
)
def test_a_native_reporter_stays_no_longer_where_the_pod_is_deleted(o: Observation) -> None:
    """Or may be."""
    assert 100 == linger_end(in_form(o, Form.NATIVE), Policy(form=Form.NATIVE), 10, 100)
