"""The back-off limit is used up: the extra run is thrown away, the last ended one is judged."""

from dataclasses import replace

import pytest

from tests.situations import (
    LOOPING,
    LOST,
    ON_FAILURE,
    OOM,
    START_ERROR,
    deleted,
    ended,
    final,
    invalid,
    observed,
    pod,
    revisable,
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import FAILED, KILLED, SUCCESS
from tests.unit.verdict.stopping import BEFORE, DELETED, exhausted


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
