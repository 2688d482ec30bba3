"""A file that cannot be read just now: what waits for it, and for how long."""

from dataclasses import replace

import pytest

from reporter.verdict.case import Policy
from reporter.verdict.decide import decide, nothing_more
from reporter.verdict.facts import FileUnread, Form
from tests.situations import (
    LOOPING,
    ON_FAILURE,
    OOM,
    PENDING,
    START_ERROR,
    again,
    deleted,
    ended,
    final,
    in_form,
    later,
    observed,
    pod,
    revisable,
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import FAILED, KILLED, NO_FILE, RUNS, SUCCESS
from tests.unit.verdict.stopping import DELETED

STALE = FileUnread("the file cannot be opened: stale file handle", None)
UNREAD = (
    "I",
    "False",
    "InvalidResultFormat",
    "Failed to parse adapter result: the file cannot be opened: stale file handle",
)
FINISHED = pod(ended(0))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(FINISHED, PENDING, id="exit 0: neither X nor S"),
        pytest.param(pod(ended(1)), PENDING, id="exit 1: not X"),
        pytest.param(pod(running(-300)), PENDING, id="the wait time is over: neither I nor T"),
        pytest.param(pod(running()), revisable(*RUNS), id="running"),
        pytest.param(pod(OOM), revisable(*KILLED), id="OOM: a result would still replace it"),
        pytest.param(deleted(pod(running())), revisable(*DELETED), id="deleted"),
    ],
)
def test_nothing_is_final_while_a_read_error_may_pass(shown, expected):
    assert expected == verdict(observed((11, shown, STALE)))


def test_a_read_error_that_passes_leaves_the_result():
    o = observed((11, FINISHED, STALE), (11.3, FINISHED, valid()))

    assert final(*SUCCESS) == verdict(o)


def test_a_read_error_of_ten_seconds_is_an_invalid_file():
    o = observed((11, FINISHED, STALE), (20.9, FINISHED, STALE))

    assert PENDING == verdict(o)
    assert final(*UNREAD) == verdict(later(o, 21))
    assert final(*UNREAD) == verdict(
        later(observed((290, pod(running()), STALE), (300, pod(running()), STALE)), 301)
    )


def test_the_ten_seconds_begin_again_after_a_good_read():
    o = observed((11, FINISHED, STALE), (15, FINISHED), (16, FINISHED, STALE))

    assert PENDING == verdict(later(o, 25.9))
    assert final(*UNREAD) == verdict(later(o, 26))


def test_the_file_is_looked_at_often_meanwhile():
    o = observed((11, FINISHED, STALE))

    assert 11.5 == decide(o, Policy()).next_look
    assert 21 == decide(later(o, 20.8), Policy()).next_look


def test_a_command_that_was_not_found_has_no_file_to_wait_for():
    assert "W3" == decide(observed((11, pod(START_ERROR), STALE)), Policy()).report.row


def test_after_sigterm_a_read_error_is_waited_for_until_a_second_before_the_end():
    o = in_form(observed((30, pod(ended(0, end=29), grace=10), STALE), stopped=30), Form.NATIVE)

    assert PENDING == verdict(later(o, 36.9))
    assert not nothing_more(later(o, 36.9), Policy())
    assert final(*UNREAD) == verdict(later(o, 37))


def test_a_reporter_that_was_stopped_alone_waits_for_a_read_error_to_pass():
    """Longer than for the Pod: 10 s since the first error."""
    o = in_form(observed((30, pod(running()), STALE), stopped=30), Form.CLASSIC)

    assert not nothing_more(later(o, 39.9), Policy())
    assert nothing_more(later(o, 40), Policy())


def test_a_result_that_was_read_before_the_error_stays():
    before = valid(5)
    stale = replace(STALE, before=before)
    runs = pod(running(), restart=ON_FAILURE)

    assert revisable(*SUCCESS) == verdict(observed((6, runs, before), (7, runs, stale)))
    assert final(*SUCCESS) == verdict(
        observed((6, runs, before), (11, pod(ended(0), restart=ON_FAILURE), stale))
    )


def test_the_result_of_an_earlier_run_does_not_stand_for_the_present_one():
    stale = replace(STALE, before=valid(9))
    o = observed((31, again(ended(0, start=20, end=30)), stale))

    assert PENDING == verdict(o)


def test_the_file_of_a_run_that_ended_is_read_again_after_an_error():
    first = pod(ended(1), restart=ON_FAILURE)
    looping = again(LOOPING, restarts=0)

    assert (
        valid(9)
        == observed(
            (11, first, STALE), (12, looping, STALE), (13, looping, valid(9))
        ).memory.last_run.file
    )


def test_a_missing_file_is_no_error():
    assert final(*NO_FILE) == verdict(observed((11, FINISHED)))
    assert final(*FAILED) == verdict(observed((11, pod(ended(1)))))
