"""How long a run waits for an upload that is on its way, and when that is cut."""

import math

import pytest

from reporter.run.upload import Allowance, Upload

MIB = 2**20
DEADLINE = 1_000.0


@pytest.mark.parametrize(
    ("length", "seconds"), [(0, 120.0), (120 * MIB, 120.0), (121 * MIB, 121.0), (512 * MIB, 512.0)]
)
def test_two_minutes_or_a_mebibyte_per_second(length, seconds):
    """Row 12: whichever is longer."""
    assert seconds == Allowance().seconds(length)


@pytest.mark.parametrize(
    ("began", "deadline", "expected"),
    [
        pytest.param(10.0, None, math.inf, id="no deadline"),
        pytest.param(None, DEADLINE, math.inf, id="not read yet"),
        pytest.param(10.0, DEADLINE, 1_120.0, id="read before it"),
        pytest.param(1_050.0, DEADLINE, 1_170.0, id="its turn came after it"),
    ],
)
def test_the_time_counts_from_the_later_of_the_deadline_and_its_turn(began, deadline, expected):
    """Row 12: whoever was made to wait loses nothing by it."""
    assert expected == Upload(5.0, MIB, began).cut_at(deadline, Allowance())


@pytest.mark.parametrize(
    ("upload", "deadline", "now", "expected"),
    [
        pytest.param(Upload(10.0, 1), None, 9e9, True, id="no deadline"),
        pytest.param(Upload(10.0, 1), DEADLINE, 9e9, True, id="waits since before it"),
        pytest.param(Upload(10.0, 1, 11.0), DEADLINE, 1_010.0, True, id="read since before it"),
        pytest.param(Upload(1_001.0, 1), DEADLINE, 1_010.0, False, id="came later and waits"),
        pytest.param(
            Upload(1_001.0, 1, 1_001.0), DEADLINE, 1_119.0, True, id="came later and is read"
        ),
        pytest.param(
            Upload(1_119.0, 1, 1_119.0), DEADLINE, 1_120.0, False, id="cannot go on for ever"
        ),
        pytest.param(
            Upload(1_300.0, 1, retry=True), DEADLINE, 9e9, True, id="a retry in its window waits"
        ),
        pytest.param(
            Upload(1_300.0, 1, 1_301.0, retry=True), DEADLINE, 9e9, True, id="and is read"
        ),
    ],
)
def test_who_holds_the_run_open(upload, deadline, now, expected):
    """Rows 1 and 12: whoever was there at the deadline, and late ones only for a while."""
    assert expected is upload.holds(deadline, now, Allowance())


@pytest.mark.parametrize(
    ("upload", "deadline", "expected"),
    [
        pytest.param(Upload(10.0, 1), None, False, id="no deadline"),
        pytest.param(Upload(10.0, 1), DEADLINE, True, id="waits since before it"),
        pytest.param(Upload(10.0, 1, 1_010.0), DEADLINE, True, id="read since it had its turn"),
        pytest.param(Upload(10.0, 1, 11.0), DEADLINE, False, id="read since before it"),
        pytest.param(Upload(1_001.0, 1), DEADLINE, False, id="came later and waits"),
        pytest.param(Upload(1_001.0, 1, 1_002.0), DEADLINE, False, id="came later and is read"),
        pytest.param(Upload(1_001.0, 1, retry=True), DEADLINE, False, id="a later retry"),
    ],
)
def test_whose_deadline_does_not_count(upload, deadline, expected):
    """That of who had come in time and got no slot; how long it takes after that is our doing."""
    assert expected is upload.queued_at(deadline)
