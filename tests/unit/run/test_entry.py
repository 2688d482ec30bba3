"""What becomes of an expected result, and when its run may close."""

import json
from dataclasses import replace

import pytest

from reporter.run.entry import (
    Entry,
    Marked,
    State,
    Window,
    due,
    fail,
    launch,
    lose,
    may_close,
    next_close,
    next_due,
    receive,
    returned,
    silence,
    start,
)
from reporter.run.plan import Key
from reporter.run.record import TIMEOUT_TEXT, Cause, Failure
from reporter.run.upload import UploadOutcome
from tests.tables import table
from tests.unit.run.world import E2E, LOST, RESULT, START, WORKER_ERROR, ours

OPEN = Entry(E2E)
TIMED_OUT = ours(Cause.DEADLINE)
RETRYING = Entry(E2E, window=Window(START, START + 120, "cut"), attempts=1)
HELD = {"nothing": None, "lost": LOST, "ours": TIMED_OUT, "worker": WORKER_ERROR, "result": RESULT}


def attempt(at, text="bad archive"):
    """A try that failed so many seconds after the start."""
    return Failure("attempt", START + at, text)


def given_up(at=9.0, cause=Cause.POD_FAILED, text="the pod is gone", **more):
    """An error of the aggregator's own."""
    return Failure("final", START + at, text, cause, **more)


def after(entry, *failures):
    """The entry after these failures in the open run."""
    for failure in failures:
        entry, _ = fail(entry, failure, closed=False)
    return entry


@table(
    ("record", "state", "late"),
    {
        "open": (None, State.RUNNING, False),
        "result": (RESULT, State.COMPLETE, False),
        "worker's error": (WORKER_ERROR, State.FAILED, False),
        "lost": (LOST, State.FAILED, False),
        **{
            str(cause): (ours(cause), State.FAILED, False)
            for cause in (Cause.UPLOAD_FAILED, Cause.START_FAILED, Cause.POD_FAILED, None)
        },
        "deadline": (ours(Cause.DEADLINE), State.TIMED_OUT, False),
        "heartbeat": (ours(Cause.HEARTBEAT), State.TIMED_OUT, False),
    },
)
def test_the_state_follows_from_the_record(record, state, late):
    """The cause decides between failed and timed out, never the text."""
    entry = Entry(E2E, record)
    assert (state, record is not None, late) == (entry.state, entry.terminal, entry.late)


def test_a_text_about_a_timeout_is_no_timeout():
    """`failed` with the cause `pod_failed`, whatever the message says."""
    entry = Entry(E2E, ours(Cause.POD_FAILED, text="timeout while pulling"))
    assert State.FAILED is entry.state


@pytest.mark.parametrize(
    ("held", "new", "open_run", "closed_run"),
    [
        ("nothing", "ours", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("nothing", "worker", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("nothing", "result", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("lost", "lost", UploadOutcome.DUPLICATE, UploadOutcome.DUPLICATE),
        ("lost", "ours", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("lost", "worker", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("lost", "result", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("ours", "ours", UploadOutcome.DUPLICATE, UploadOutcome.DUPLICATE),
        ("ours", "worker", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("ours", "result", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("worker", "ours", UploadOutcome.DUPLICATE, UploadOutcome.DUPLICATE),
        ("worker", "worker", UploadOutcome.DUPLICATE, UploadOutcome.DUPLICATE),
        ("worker", "result", UploadOutcome.ACCEPTED, UploadOutcome.CLOSED),
        ("result", "ours", UploadOutcome.DUPLICATE, UploadOutcome.DUPLICATE),
        ("result", "worker", UploadOutcome.DUPLICATE, UploadOutcome.DUPLICATE),
        ("result", "result", UploadOutcome.DUPLICATE, UploadOutcome.DUPLICATE),
    ],
)
def test_what_replaces_what(held, new, open_run, closed_run):
    """Only a higher rank, and only while the run is open; else the entry stays as it is."""
    entry, record = replace(RETRYING, record=HELD[held]), HELD[new]
    for closed, expected in ((False, open_run), (True, closed_run)):
        after_it, outcome = receive(entry, record, closed=closed)
        accepted = replace(entry, record=record, superseded=HELD[held], window=None)
        assert expected is outcome
        assert (accepted if outcome is UploadOutcome.ACCEPTED else entry) == after_it


def test_a_late_result_replaces_a_timeout_once():
    """A31: complete and late, the error kept; the next upload is a duplicate."""
    entry = after(OPEN, given_up(cause=Cause.DEADLINE))
    assert State.TIMED_OUT is entry.state
    entry, outcome = receive(entry, RESULT, closed=False)
    assert (UploadOutcome.ACCEPTED, State.COMPLETE, True) == (outcome, entry.state, entry.late)
    assert Cause.DEADLINE is entry.superseded.cause
    assert (entry, UploadOutcome.DUPLICATE) == receive(entry, RESULT, closed=False)


def test_a_result_after_the_workers_own_error_is_not_late():
    """A42: the worker changed its mind, we had not given it up; the first record is superseded."""
    entry, _ = receive(OPEN, WORKER_ERROR, closed=False)
    entry, _ = receive(entry, RESULT, closed=False)
    assert (State.COMPLETE, False, WORKER_ERROR) == (entry.state, entry.late, entry.superseded)


def test_a_result_that_comes_again_after_its_bytes_were_lost():
    """It is no late result: it was there in time."""
    entry = lose(replace(OPEN, record=RESULT), START + 9, "the blob is missing")
    assert (State.FAILED, Cause.LOST) == (entry.state, entry.record.cause)
    assert {"error": "the blob is missing", "cause": "lost"} == json.loads(entry.record.document)
    entry, outcome = receive(entry, RESULT, closed=False)
    assert (UploadOutcome.ACCEPTED, State.COMPLETE, False) == (outcome, entry.state, entry.late)


@table(
    ("tries", "until"),
    {
        "one failure": ([0.0], 120.0),
        "each further failure moves the end": ([0.0, 50.0], 170.0),
        "A48 every 100 s: 600 s at most": ([100.0 * n for n in range(6)], 600.0),
        "told out of order: never back": ([50.0, 0.0], 170.0),
    },
)
def test_the_retry_window(tries, until):
    """From the last failure 120 s, from the first 600 s."""
    entry = after(OPEN, *(attempt(at) for at in tries))
    assert (True, False, State.RUNNING) == (entry.retrying, entry.terminal, entry.state)
    assert (len(tries), START + until) == (entry.attempts, entry.window.until)


def test_ten_bad_archives():
    """A30: every one is counted, the entry stays open, and a good one still completes it."""
    entry = after(OPEN, *(attempt(at) for at in range(10)))
    assert (10, State.RUNNING) == (entry.attempts, entry.state)
    entry, outcome = receive(entry, RESULT, closed=False)
    assert (UploadOutcome.ACCEPTED, None, False) == (outcome, entry.window, entry.retrying)
    assert (10, False) == (entry.attempts, entry.late)


def test_settings_of_the_window():
    """The window and its cap are the caller's; a window cannot outlast the cap."""
    entry, _ = fail(OPEN, attempt(0), closed=False, window=1.0)
    assert START + 1 == entry.window.until
    entry, _ = fail(OPEN, attempt(0), closed=False, window=900.0, cap=600.0)
    assert START + 600 == entry.window.until


def test_a_failure_told_twice_counts_once():
    """The store may repeat an operation whose answer was lost."""
    for failure in (attempt(3), given_up()):
        once, first = fail(OPEN, failure, closed=False)
        again, _ = fail(once, failure, closed=False)
        assert (Marked.RECORDED, once) == (first, again)


@pytest.mark.parametrize("held", ["ours", "worker", "result", "lost"])
def test_a_failed_try_of_a_decided_entry_changes_nothing(held):
    """The run does not wait for it; a good upload is taken by its rank anyway."""
    entry = Entry(E2E, HELD[held])
    assert (entry, Marked.IGNORED) == fail(entry, attempt(1), closed=False)


@pytest.mark.parametrize(
    ("held", "marked"),
    [
        ("nothing", Marked.RECORDED),
        ("lost", Marked.RECORDED),
        ("ours", Marked.IGNORED),
        ("worker", Marked.IGNORED),
        ("result", Marked.IGNORED),
    ],
)
def test_an_error_of_ours_against_what_is_held(held, marked):
    """It is a guess: nothing that a worker sent gives way to it."""
    entry, what = fail(Entry(E2E, HELD[held]), given_up(), closed=False)
    assert marked is what
    assert (
        Cause.POD_FAILED if marked is Marked.RECORDED else getattr(HELD[held], "cause", None)
    ) is entry.record.cause


@pytest.mark.parametrize("failure", [attempt(1), given_up()])
def test_nothing_fails_after_closing(failure):
    """The set of results is final."""
    assert (OPEN, Marked.CLOSED) == fail(OPEN, failure, closed=True)


def test_the_error_document_is_made_when_none_is_given():
    """What ends up in `error.json`."""
    made = after(OPEN, given_up(reason="OOMKilled")).record
    expected = {"error": "the pod is gone", "cause": "pod_failed", "reason": "OOMKilled"}
    assert expected == json.loads(made.document)
    assert "{}" == after(OPEN, given_up(document="{}")).record.document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TIMEOUT_TEXT, TIMEOUT_TEXT),
        (f"{TIMEOUT_TEXT}: x", f"{TIMEOUT_TEXT}: x"),
        ("the network is gone", f"{TIMEOUT_TEXT}: the network is gone"),
    ],
)
@pytest.mark.parametrize("cause", [Cause.DEADLINE, Cause.HEARTBEAT])
def test_both_timeouts_begin_with_the_words_that_readers_look_for(cause, text, expected):
    """Whoever reports one."""
    record = after(OPEN, given_up(cause=cause, text=text)).record
    assert (expected, expected) == (record.text, json.loads(record.document)["error"])


def test_the_deadline_counts_from_the_start_and_only_once():
    """A restart of the aggregator launches nothing anew."""
    launched = start(launch(OPEN, START), START + 5, 60.0)
    assert (START, START + 5, START + 65) == (
        launched.launched_at,
        launched.started_at,
        launched.deadline,
    )
    assert launched == start(launch(launched, START + 50), START + 50, 60.0)


def test_pulling_an_image_takes_nothing_of_a_plugins_time():
    """Launched, but not started: no deadline, and an outage has none to move."""
    launched = launch(OPEN, START)
    assert (None, None) == (launched.deadline, next_due(launched))
    assert launched == returned(launched, START + 500, 400.0, 60.0)


LAUNCHED = start(launch(OPEN, START), START, 60.0)


@table(
    ("entry", "moment", "cause", "text"),
    {
        "nothing runs out": (OPEN, None, None, None),
        "deadline": (LAUNCHED, 60.0, Cause.DEADLINE, TIMEOUT_TEXT),
        "A29 retry window": (RETRYING, 120.0, Cause.UPLOAD_FAILED, "cut"),
        **{
            f"inside the window it decides, whenever the deadline is: {deadline}": (
                replace(RETRYING, deadline=START + deadline),
                120.0,
                Cause.UPLOAD_FAILED,
                "cut",
            )
            for deadline in (60, 120, 200)
        },
        "complete": (replace(LAUNCHED, record=RESULT), None, None, None),
        "failed": (replace(RETRYING, record=WORKER_ERROR), None, None, None),
    },
)
def test_what_time_does_to_an_entry(entry, moment, cause, text):
    """Nothing a moment before, the error at that moment and ever after."""
    if moment is None:
        assert (None, None) == (next_due(entry), due(entry, START + 10**9))
        return
    assert START + moment == next_due(entry)
    assert None is due(entry, START + moment - 0.001)
    for now in (START + moment, START + moment + 1_000):
        assert Failure("final", now, text, cause) == due(entry, now)


@table(
    ("entry", "moment", "cause"),
    {
        "no window": (LAUNCHED, 60.0, Cause.DEADLINE),
        "its window does not count": (RETRYING, None, None),
        "deadline": (replace(RETRYING, deadline=START + 200), 200.0, Cause.DEADLINE),
        "both over": (replace(RETRYING, deadline=START + 60), 120.0, Cause.DEADLINE),
    },
)
def test_an_entry_whose_next_try_is_here(entry, moment, cause):
    """Excused: its retry window may end, its deadline may not."""
    if moment is None:
        assert None is due(entry, START + 10**9, excused=True)
        return
    assert None is due(entry, START + moment - 0.001, excused=True)
    assert cause is due(entry, START + moment, excused=True).cause


@table(
    ("entry", "excused", "cause"),
    {
        "no window": (LAUNCHED, False, None),
        "its window counts": (RETRYING, False, Cause.UPLOAD_FAILED),
        "both are over": (replace(RETRYING, deadline=START + 60), True, None),
    },
)
def test_an_entry_whose_upload_was_in_the_queue_at_its_deadline(entry, excused, cause):
    """It waits for us, in time: its deadline does not end it."""
    failure = due(entry, START + 10**9, excused=excused, queued=True)
    assert cause is (failure and failure.cause)


@table(
    ("back_at", "until"),
    {
        "C11 enough is left": (10.0, 120.0),
        "C11 at least 30 s from the start": (100.0, 130.0),
        "C11 it ran out meanwhile": (9_000.0, 9_030.0),
    },
)
def test_an_open_window_after_an_outage(back_at, until):
    """Workers were refused while we were away."""
    assert START + until == returned(RETRYING, START + back_at, 5.0, 60.0).window.until


@table(
    ("moved", "back_at", "outage", "deadline"),
    {
        "by the outage": (0.0, 10.0, 4.0, 64.0),
        "30 s are left at least": (0.0, 50.0, 4.0, 80.0),
        "it was over when we came back": (0.0, 75.0, 40.0, 105.0),
        "nothing was missed": (0.0, 10.0, 0.0, 60.0),
        "longer than the timeout: the 30 s still": (0.0, 500.0, 480.0, 530.0),
        "one timeout in all": (50.0, 60.0, 40.0, 120.0),
        "the last that is given": (50.0, 100.0, 40.0, 130.0),
        "all is used up": (60.0, 100.0, 40.0, 120.0),
        "and more": (70.0, 125.0, 40.0, 130.0),
    },
)
def test_the_deadline_after_an_outage(moved, back_at, outage, deadline):
    """Its timeout is 60 s; `moved` is what outages have added before."""
    before = replace(LAUNCHED, deadline=START + 60 + moved)
    found = returned(before, START + back_at, outage, 60.0)
    assert START + deadline == found.deadline
    assert found == returned(found, START + back_at, 0.0, 60.0)


def test_an_aggregator_that_comes_and_goes_for_ever():
    """The plugin's time ends all the same: a crash loop is no reason to wait for ever."""
    entry, now = LAUNCHED, START
    while due(entry, now) is None:
        now += 20.0
        entry = returned(entry, now, 2.0, 60.0)
        assert now < START + 200.0
    assert Cause.DEADLINE is due(entry, now).cause


@pytest.mark.parametrize("record", [RESULT, WORKER_ERROR, ours(at=START)])
def test_an_outage_after_the_decision(record):
    """There is nothing left to be given back."""
    entry = replace(LAUNCHED, record=record)
    assert entry is returned(entry, START + 500, 400.0, 60.0)


def test_a_failure_after_an_outage_does_not_shorten_the_window():
    """The first failure was 599 s ago: the window of the restart still stands."""
    old = Entry(E2E, window=Window(START, START + 600, "cut"), attempts=5)
    entry = after(returned(old, START + 599, 5.0, 60.0), attempt(600))
    assert START + 629 == entry.window.until


def test_silence_is_a_timeout():
    """A52: cause `heartbeat`, with the words that readers look for."""
    entry = after(OPEN, silence(START + 200, 120.4))
    assert (State.TIMED_OUT, Cause.HEARTBEAT) == (entry.state, entry.record.cause)
    assert f"{TIMEOUT_TEXT}: no heartbeat for 120 s" == entry.record.text
    assert silence(START, 120.4, "cannot resolve r").text.endswith("for 120 s: cannot resolve r")


KEYS = (Key("p", "a"), Key("p", "b"), Key("p", "c"))


def run_of(*records):
    """Entries with these records."""
    return [Entry(key, record) for key, record in zip(KEYS, records, strict=False)]


@table(
    ("records", "reading", "closes"),
    {
        "A54 an empty plan": ([], (), 0.0),
        "A28 all good: at once": ([RESULT, RESULT, RESULT], (), 0.0),
        "one is open": ([RESULT, None], (), None),
        "a worker's error is no guess": ([RESULT, WORKER_ERROR], (), 0.0),
        "A29 the retry window was the wait": ([RESULT, ours(Cause.UPLOAD_FAILED, START)], (), 0.0),
        **{
            f"held for 20 s: {cause}": ([RESULT, ours(cause, START)], (), 20.0)
            for cause in (Cause.DEADLINE, Cause.HEARTBEAT)
        },
        **{
            f"nobody is left: {cause}": ([RESULT, ours(cause, START)], (), 0.0)
            for cause in (Cause.POD_FAILED, Cause.START_FAILED)
        },
        "the newest one counts": (
            [ours(Cause.DEADLINE, START + at) for at in (-3, 0, -5)],
            (),
            20.0,
        ),
        "lost: sending it again is welcome": ([LOST], (), 24.0),
        "an upload of what is held already does not matter": (
            [RESULT, ours(at=START - 60)],
            KEYS[:1],
            0.0,
        ),
        "A57 a result may be on its way": ([RESULT, ours(at=START - 60)], KEYS[1:], None),
        "a result may replace the worker's error": ([RESULT, WORKER_ERROR], KEYS[1:], None),
    },
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
