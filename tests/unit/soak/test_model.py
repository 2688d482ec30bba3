"""The soak's model of the contract: what it allows where there is only one answer, or two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.blackbox.soak.draw import Plan, draw
from tests.blackbox.soak.model import (
    EVICTED,
    FAILED,
    INTERRUPTED,
    INVALID,
    MEMORY,
    MISSING,
    NEVER,
    OLD,
    SUCCEEDED,
    TIMEOUT,
    AdapterRun,
    Attempt,
    Verdict,
    Written,
    finals,
    owes,
)
from tests.blackbox.soak.witness import COMES_BACK, delay

PASSED: Verdict = ("True", "success-0-0-pod")
REFUSED: Verdict = ("False", "failure-0-1-pod")
PLAN = replace(
    draw("any", 0),
    policy="Never",
    at_exit=False,
    required=True,
    wait=60,
    trouble="",
)
AT_EXIT = replace(PLAN, at_exit=True)
AGAIN = replace(PLAN, policy="OnFailure")
LEFT = replace(PLAN, volume="claim with an old result")


def run(
    *verdicts: Verdict,
    began: float = 100.0,
    ended: float | None = 150.0,
    code: int | None = 0,
    out_of_memory: bool = False,
) -> AdapterRun:
    """A run that writes so many results, ten seconds apart."""
    places = enumerate(verdicts, 1)
    writes = tuple(Written(began + 10 * n, began + 10 * n, each) for n, each in places)
    return AdapterRun(began, writes, ended, code, out_of_memory)


STOPPED = replace(run(code=143), stays=True)
AT_ONCE = replace(run(began=110.2, ended=130.0), writes=(Written(110.4, 110.4, PASSED),))
"""Whose it is, its times do not tell: it is of the second in which the run before ended."""


def pod(*runs: AdapterRun, **changes: object) -> Attempt:
    """A Pod to which nothing happened but these changes."""
    plain = Attempt(
        created=98.0,
        up=99.0,
        runs=runs,
        removed=None,
        deadline=NEVER,
        evicted=False,
        deleted=False,
        thrown=False,
        downs=(),
        delayed=0.0,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


SITUATIONS: list[tuple[Plan, Attempt, set[Verdict]]] = [
    (PLAN, pod(run(PASSED)), {PASSED}),
    (PLAN, pod(run(PASSED, code=3)), {PASSED}),
    (PLAN, pod(run(PASSED, REFUSED)), {PASSED}),
    (PLAN, pod(run(INVALID, REFUSED)), {REFUSED}),
    (LEFT, pod(run(PASSED)), {PASSED}),
    (LEFT, pod(run(PASSED), refused=True, others=frozenset({OLD})), {PASSED, OLD}),
    (PLAN, pod(run(INVALID)), {INVALID}),
    (PLAN, pod(run()), {MISSING}),
    (replace(PLAN, required=False), pod(run()), {SUCCEEDED}),
    (PLAN, pod(run(code=3)), {FAILED}),
    (PLAN, pod(run(INVALID, code=137, out_of_memory=True)), {MEMORY}),
    (PLAN, pod(run(ended=None, code=None)), {TIMEOUT}),
    (PLAN, pod(run(INVALID, ended=None, code=None)), {INVALID}),
    (replace(PLAN, wait=8), pod(run(PASSED)), {PASSED, TIMEOUT}),
    (replace(PLAN, wait=5), pod(run(PASSED)), {TIMEOUT}),
    (PLAN, pod(run(ended=159.0)), {MISSING, TIMEOUT}),
    (AT_EXIT, pod(run(PASSED, REFUSED)), {REFUSED}),
    (AT_EXIT, pod(run(PASSED, code=3)), {FAILED}),
    (AT_EXIT, pod(run(REFUSED, code=3)), {REFUSED}),
    (AT_EXIT, pod(run(PASSED, code=3), removed=130.0, deleted=True), {PASSED}),
    (PLAN, pod(run(), removed=130.0, deleted=True), {INTERRUPTED}),
    (PLAN, pod(run(), removed=130.0, evicted=True), {EVICTED}),
    (PLAN, pod(run(), removed=130.0, deadline=130.0), {TIMEOUT}),
    (PLAN, pod(run(), removed=149.0, deleted=True), {INTERRUPTED, MISSING}),
    (PLAN, pod(STOPPED, removed=149.0, deleted=True), {INTERRUPTED}),
    (PLAN, pod(run(PASSED), removed=130.0, deleted=True), {PASSED}),
    (AGAIN, pod(run(PASSED, code=3), run(began=152.0, ended=158.0)), {MISSING, TIMEOUT}),
    (AGAIN, pod(run(code=3, ended=110.0), run(PASSED, began=112.0, ended=130.0)), {PASSED}),
    (AGAIN, pod(run(code=3, ended=110.0), AT_ONCE), {PASSED, MISSING}),
    (AGAIN, pod(run(PASSED, code=3), removed=152.0, thrown=True), {PASSED}),
    (
        replace(PLAN, trouble="config"),
        pod(removed=115.0, deadline=115.0),
        {("False", "AdapterConfigError")},
    ),
]


@pytest.mark.parametrize("number", range(len(SITUATIONS)))
def test_what_may_be_said(number: int) -> None:
    """Exactly the verdicts that the contract has for it."""
    plan, attempt, allowed = SITUATIONS[number]

    assert allowed == finals(plan, attempt)


def test_who_was_there_to_see_the_end() -> None:
    """Neither a reporter that was gone then, nor one that had hardly started."""
    assert owes(pod(run()))
    assert owes(pod(run(), downs=((110.0, 120.0),)))
    assert not owes(pod(run(), downs=((140.0, NEVER),)))
    # Killed later than its grace period would have it, and nobody could write by then.
    late = run(code=137, ended=160.0)
    assert not owes(pod(late, removed=130.0, downs=((155.0, 170.0),)))
    assert owes(pod(late, removed=130.0, downs=((165.0, 170.0),)))
    # Refused until it was stopped, and its grace period was over before it went on.
    assert not owes(pod(run(), downs=((146.0, 155.0), (155.0, 180.0))))
    assert owes(pod(run(), downs=((146.0, 150.0), (165.0, 180.0))))
    # It never started, so nobody knows when it ended.
    assert owes(pod(downs=((90.0, 95.0),)))
    assert not owes(pod(downs=((110.0, 140.0),)))
    assert not owes(pod(run(), downs=((146.0, 150.0),), refused=True))
    assert owes(pod(run(), downs=((153.5, 180.0),)))
    # A removed one may wait for its adapter until the grace period is nearly over.
    assert owes(pod(run(ended=None), removed=130.0, downs=((110.0, 120.0), (155.0, 180.0))))
    assert not owes(pod(run(ended=None), removed=130.0, downs=((140.0, 155.0),)))
    assert not owes(pod(run(), removed=105.0))
    # It might have run again, until the Job had failed.
    thrown = pod(run(code=3), removed=157.0, thrown=True)
    assert owes(thrown)
    assert not owes(replace(thrown, downs=((156.0, NEVER),)))
    assert not owes(pod(removed=130.0, up=NEVER))


def test_how_long_a_verdict_has_taken() -> None:
    """Of the time from its end on the longest part in which nothing was away."""
    assert 20.0 == delay(pod(run(), downs=((110.0, 120.0),)), 170.0)
    assert 50.0 - COMES_BACK == delay(pod(run(), downs=((140.0, 160.0),)), 210.0)
    assert 30.0 == delay(pod(run(), downs=((140.0, 141.0), (180.0, 200.0))), 210.0)
    assert 8.0 == delay(pod(run(), downs=((158.0, 161.0), (181.0, 200.0))), 205.0)
    assert 0.0 == delay(pod(run(), removed=155.0), 170.0)
    assert 0.0 >= delay(pod(run()), 130.0)
