"""When the rows of the contract come and go: the wait time."""

import pytest

from reporter.verdict.case import Policy
from reporter.verdict.decide import decide
from reporter.verdict.facts import PodRefused, Running
from tests.situations import (
    ABSENT,
    ON_FAILURE,
    OOM,
    PULLING,
    ended,
    final,
    invalid,
    later,
    observed,
    pod,
    revisable,
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import EMPTY, FAILED, KILLED, NO_FILE, RUNS, SUCCESS, TIMEOUT


@pytest.mark.parametrize(
    ("wait", "shown"), [(12, "12s"), (300, "5m0s"), (3600, "1h0m0s"), (90061, "25h1m1s")]
)
def test_timeout_names_the_wait_time_as_go_prints_it(wait, shown):
    """Row T's message is the older product's, to the letter."""
    o = observed((100_000, pod(running())))

    assert final(
        "T", "False", "AdapterTimeout", f"Adapter did not produce results within {shown}"
    ) == verdict(o, Policy(wait=wait))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(
            ended(0),
            final(
                "S", "True", "AdapterSucceeded", "Adapter container exited successfully (code 0)"
            ),
            id="exit 0",
        ),
        pytest.param(ended(1), final(*FAILED), id="exit 1"),
        pytest.param(OOM, final(*KILLED), id="OOM kill"),
    ],
)
def test_without_a_required_result_only_exit_0_is_good(run, expected):
    """RESULT_REQUIRED=false changes nothing but exit 0 without file."""
    assert expected == verdict(observed((11, pod(run))), Policy(result_required=False))


def test_without_a_required_result_an_invalid_file_is_still_invalid():
    """Row I comes before row S."""
    o = observed((11, pod(ended(0)), invalid()))

    assert final(*EMPTY) == verdict(o, Policy(result_required=False))


def test_the_wait_time_counts_from_the_adapters_first_start():
    """An image that took 4 minutes leaves the adapter its full wait time."""
    o = observed((240, pod()), (241, pod(running(241))))

    assert revisable(*RUNS) == verdict(later(o, 540.9))
    assert final(*TIMEOUT) == verdict(later(o, 541))


def test_a_timeout_before_the_first_start_is_taken_back():
    """The adapter that starts late gets its time, and its result counts."""
    late = observed((300, pod()), (400, pod(running(399))))

    assert revisable(*RUNS) == verdict(late)
    assert final(*SUCCESS) == verdict(observed((300, pod()), (401, pod(running(399)), valid(400))))


def test_a_file_of_an_earlier_run_is_no_result_of_this_one():
    """OnFailure: the second run's end counts without the first run's file."""
    first = pod(ended(1, end=10), restart=ON_FAILURE)
    second = pod(ended(0, start=20, end=30), last=ended(1, end=10), restarts=1, restart=ON_FAILURE)
    looks = [(11, first, valid(9)), (31, second, valid(9))]

    assert revisable(*SUCCESS) == verdict(observed(looks[0]))
    assert final(*NO_FILE) == verdict(observed(*looks))


def test_the_next_look_is_when_time_alone_changes_the_verdict():
    """End of the wait time, the minute in a row, 30 s of 403; nothing when all are over."""
    assert 301 == decide(observed((3, pod(running()))), Policy()).next_look
    assert 63 == decide(observed((3, pod(PULLING))), Policy()).next_look
    assert 300 == decide(later(observed((3, pod(PULLING))), 63), Policy()).next_look
    assert float("inf") == decide(observed((300, pod())), Policy()).next_look
    assert 33 == decide(observed((3, PodRefused())), Policy()).next_look


def test_a_container_that_runs_without_a_time_has_started_when_it_was_first_seen():
    """Where the API shows no start, the first look at it stands for it."""
    o = observed((7, pod(Running())), (9, pod(Running())))

    assert 7 == o.memory.first_started
    assert revisable(*RUNS) == verdict(later(o, 306))
    assert final(*TIMEOUT) == verdict(later(o, 307))
    assert ABSENT == o.file
