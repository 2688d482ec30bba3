"""When a run may close: every entry decided, nothing on its way, no fresh guess of ours."""

import pytest

from reporter.run.entry import Entry, State, due, fail, may_close, next_close, receive, start
from reporter.run.plan import Key
from reporter.run.record import Cause, Failure
from tests.unit.run.world import LOST, RESULT, START, WORKER_ERROR, ours

KEYS = (Key("p", "a"), Key("p", "b"), Key("p", "c"))


def run_of(*records):
    """Entries with these records."""
    return [Entry(key, record) for key, record in zip(KEYS, records, strict=False)]


@pytest.mark.parametrize(
    ("records", "reading", "closes"),
    [
        pytest.param([], (), 0.0, id="A54 an empty plan"),
        pytest.param([RESULT, RESULT, RESULT], (), 0.0, id="A28 all good: at once"),
        pytest.param([RESULT, None], (), None, id="one is open"),
        pytest.param([RESULT, WORKER_ERROR], (), 0.0, id="a worker's error is no guess"),
        pytest.param(
            [RESULT, ours(Cause.UPLOAD_FAILED, START)],
            (),
            0.0,
            id="A29 the retry window was the wait",
        ),
        *(
            pytest.param([RESULT, ours(cause, START)], (), 20.0, id=f"held for 20 s: {cause}")
            for cause in (Cause.DEADLINE, Cause.HEARTBEAT)
        ),
        *(
            pytest.param([RESULT, ours(cause, START)], (), 0.0, id=f"nobody is left: {cause}")
            for cause in (Cause.POD_FAILED, Cause.START_FAILED)
        ),
        pytest.param(
            [ours(Cause.DEADLINE, START + at) for at in (-3, 0, -5)],
            (),
            20.0,
            id="the newest one counts",
        ),
        pytest.param([LOST], (), 24.0, id="lost: sending it again is welcome"),
        pytest.param(
            [RESULT, ours(at=START - 60)],
            KEYS[:1],
            0.0,
            id="an upload of what is held already does not matter",
        ),
        pytest.param(
            [RESULT, ours(at=START - 60)], KEYS[1:], None, id="A57 a result may be on its way"
        ),
        pytest.param(
            [RESULT, WORKER_ERROR], KEYS[1:], None, id="a result may replace the worker's error"
        ),
    ],
)
def test_when_the_run_may_close(records, reading, closes):
    """Not a moment before, and at that moment."""
    entries = run_of(*records)
    if closes is None:
        assert False is may_close(entries, START + 10**6, reading=reading)
        return
    assert True is may_close(iter(entries), START + closes, reading=reading)
    assert False is may_close(entries, START + closes - 0.001, reading=reading) or closes == 0
    assert START + closes == next_close(entries, START)


def test_what_is_not_decided_has_no_closing_time():
    """It depends on what comes."""
    assert None is next_close(run_of(RESULT, None), START)


def test_the_hold_is_a_setting():
    """Zero closes at once."""
    assert True is may_close(run_of(ours(Cause.DEADLINE, START)), START, hold=0.0)


def test_a_bad_upload_and_no_retry():
    """A29: with a window of 1 s the run closes 1 s after the failure; failed, `upload_failed`."""
    good, bad = run_of(RESULT, None)
    bad, _ = fail(bad, Failure("attempt", START, "bad archive"), closed=False, window=1.0)
    assert None is due(bad, START + 0.999)
    bad, _ = fail(bad, due(bad, START + 1.0), closed=False)
    assert (State.FAILED, Cause.UPLOAD_FAILED, "bad archive") == (
        bad.state,
        bad.record.cause,
        bad.record.text,
    )
    assert True is may_close([good, bad], START + 1.0)


def test_an_upload_that_is_being_read_at_its_deadline():
    """A57: timed out, then the result comes, and only then the run closes."""
    first, second, last = run_of(RESULT, RESULT, None)
    last = start(last, START, 60.0)
    reading = {last.key}
    last, _ = fail(last, due(last, START + 60), closed=False)
    assert State.TIMED_OUT is last.state
    assert False is may_close([first, second, last], START + 71, reading=reading)
    last, _ = receive(last, RESULT, closed=False)
    assert (State.COMPLETE, True) == (last.state, last.late)
    assert True is may_close([first, second, last], START + 72, reading=reading)
