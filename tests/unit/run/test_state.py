"""What the entries of a run add up to."""

from dataclasses import replace

import pytest

from reporter.run.plan import Plan, Plugin
from reporter.run.record import Cause
from reporter.run.state import Phase, Status, final, percent_complete, run_status, share
from tests.tables import table
from tests.unit.run.world import (
    E2E,
    LOST,
    NODE1,
    NODE2,
    RESULT,
    WORKER_ERROR,
    all_in,
    ours,
    snapshot,
)

EMPTY = Plan("run-1", ())
TWO_IN = {E2E: RESULT, NODE1: RESULT}


@table(
    ("run", "status", "percent", "over"),
    {
        "K1 no results": (snapshot(), Status.RUNNING, 0.0, False),
        "two of three": (snapshot(TWO_IN), Status.RUNNING, 0.6666, False),
        "all in, not closed yet": (all_in(), Status.POST_PROCESSING, 1.0, False),
        "post-processing": (
            all_in(phase=Phase.POST_PROCESSING),
            Status.POST_PROCESSING,
            1.0,
            False,
        ),
        "complete": (all_in(phase=Phase.CLOSED), Status.COMPLETE, 1.0, True),
        **{
            f"failed at once: {record.cause}": (
                snapshot({NODE1: record}),
                Status.FAILED,
                0.3333,
                False,
            )
            for record in (
                WORKER_ERROR,
                LOST,
                ours(Cause.UPLOAD_FAILED),
                ours(Cause.DEADLINE),
                ours(Cause.HEARTBEAT),
            )
        },
        "K2 failed, while it is finalised": (
            snapshot({**TWO_IN, NODE2: ours()}, phase=Phase.POST_PROCESSING),
            Status.FAILED,
            1.0,
            False,
        ),
        "K2 failed at the end": (
            snapshot({**TWO_IN, NODE2: ours()}, phase=Phase.CLOSED),
            Status.FAILED,
            1.0,
            True,
        ),
        "packing failed and is tried again": (
            all_in(phase=Phase.POST_PROCESSING, error="disk full"),
            Status.FAILED,
            1.0,
            False,
        ),
        "packing was given up": (
            all_in(phase=Phase.CLOSED, error="disk full"),
            Status.FAILED,
            1.0,
            True,
        ),
        "the aggregator failed while entries run": (
            snapshot(error="disk full"),
            Status.FAILED,
            0.0,
            False,
        ),
        "A54 an empty plan, before it is closed": (
            snapshot(plan=EMPTY),
            Status.POST_PROCESSING,
            1.0,
            False,
        ),
        "A54 an empty plan": (snapshot(plan=EMPTY, phase=Phase.CLOSED), Status.COMPLETE, 1.0, True),
    },
)
def test_the_roll_up(run, status, percent, over):
    """First match wins."""
    assert (status, percent, over) == (run_status(run), percent_complete(run), final(run))


@pytest.mark.parametrize(
    ("phase", "expected"),
    [(Phase.RUNNING, False), (Phase.POST_PROCESSING, True), (Phase.CLOSED, True)],
)
def test_the_set_of_results_is_final_from_post_processing_on(phase, expected):
    """What the intake asks before it takes a result."""
    assert expected is snapshot(phase=phase).closed


def test_percent_has_four_decimals():
    """Of 7 entries."""
    plan = Plan("r", tuple(Plugin(f"p{n}") for n in range(7)))
    assert 0.1428 == percent_complete(snapshot({plan.keys[0]: RESULT}, plan=plan))


def test_one_of_many_is_missing():
    """All is only all."""
    assert (0.9999, 1.0) == (share(19_999, 20_000), share(20_000, 20_000))


@pytest.mark.parametrize("summed", [None, 7])
def test_how_large_the_results_are(summed):
    """It is not added up again where it is kept: it is asked for some times a second."""
    found = replace(snapshot({E2E: RESULT}), summed=summed)
    assert (RESULT.size if summed is None else summed) == found.bytes
