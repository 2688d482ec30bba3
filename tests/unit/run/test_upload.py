"""How long a run waits for an upload that is on its way, and when that is cut."""

import math

import pytest

from reporter.run.upload import Allowance, Upload
from tests.tables import table

MIB = 2**20
DEADLINE = 1_000.0


@pytest.mark.parametrize(
    ("length", "seconds"), [(0, 120.0), (120 * MIB, 120.0), (121 * MIB, 121.0), (512 * MIB, 512.0)]
)
def test_two_minutes_or_a_mebibyte_per_second(length, seconds):
    """Row 12: whichever is longer."""
    assert seconds == Allowance().seconds(length)


@table(
    ("began", "deadline", "expected"),
    {
        "no deadline": (10.0, None, math.inf),
        "not read yet": (None, DEADLINE, math.inf),
        "read before it": (10.0, DEADLINE, 1_120.0),
        "its turn came after it": (1_050.0, DEADLINE, 1_170.0),
    },
)
def test_the_time_counts_from_the_later_of_the_deadline_and_its_turn(began, deadline, expected):
    """Row 12: whoever was made to wait loses nothing by it."""
    assert expected == Upload(5.0, MIB, began).cut_at(deadline, Allowance())


@table(
    ("upload", "deadline", "now", "expected"),
    {
        "no deadline": (Upload(10.0, 1), None, 9e9, True),
        "waits since before it": (Upload(10.0, 1), DEADLINE, 9e9, True),
        "read since before it": (Upload(10.0, 1, 11.0), DEADLINE, 1_010.0, True),
        "came later and waits": (Upload(1_001.0, 1), DEADLINE, 1_010.0, False),
        "came later and is read": (Upload(1_001.0, 1, 1_001.0), DEADLINE, 1_119.0, True),
        "cannot go on for ever": (Upload(1_119.0, 1, 1_119.0), DEADLINE, 1_120.0, False),
        "a retry in its window waits": (Upload(1_300.0, 1, retry=True), DEADLINE, 9e9, True),
        "and is read": (Upload(1_300.0, 1, 1_301.0, retry=True), DEADLINE, 9e9, True),
    },
)
def test_who_holds_the_run_open(upload, deadline, now, expected):
    """Rows 1 and 12: whoever was there at the deadline, and late ones only for a while."""
    assert expected is upload.holds(deadline, now, Allowance())


@table(
    ("upload", "deadline", "expected"),
    {
        "no deadline": (Upload(10.0, 1), None, False),
        "waits since before it": (Upload(10.0, 1), DEADLINE, True),
        "read since it had its turn": (Upload(10.0, 1, 1_010.0), DEADLINE, True),
        "read since before it": (Upload(10.0, 1, 11.0), DEADLINE, False),
        "came later and waits": (Upload(1_001.0, 1), DEADLINE, False),
        "came later and is read": (Upload(1_001.0, 1, 1_002.0), DEADLINE, False),
        "a later retry": (Upload(1_001.0, 1, retry=True), DEADLINE, False),
    },
)
def test_whose_deadline_does_not_count(upload, deadline, expected):
    """That of who had come in time and got no slot; how long it takes after that is our doing."""
    assert expected is upload.queued_at(deadline)
