"""Laws of a run: progress stays bounded, ranks only rise, the annotation fits, whatever comes."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from reporter.run.annotation import RUN_ANNOTATION, STATUS_ANNOTATION, annotations
from reporter.run.entry import (
    Entry,
    Marked,
    State,
    due,
    fail,
    may_close,
    next_close,
    next_due,
    receive,
    returned,
    start,
)
from reporter.run.heartbeats import Beat, beaten, heard, lost, shifted
from reporter.run.plan import Key, Plan, Plugin, parse_plan, plan_document
from reporter.run.pod_status import of_reading, pick_pod, read_status
from reporter.run.progress import INT64_MAX, StoredProgress, combine
from reporter.run.record import Cause, Failure, Rank, Record
from reporter.run.state import Phase, Snapshot, Status, counts, final, percent_complete, run_status
from reporter.run.upload import UploadOutcome
from reporter.run.view import Row, rows
from tests.property.run_facts import START, json_values, tried, updates
from tests.unit.run.world import status_document

records = st.builds(
    Record,
    st.sampled_from(Rank),
    st.floats(START, START + 1_000),
    cause=st.none() | st.sampled_from(Cause),
    text=st.text(max_size=10),
)


failures = st.builds(
    Failure,
    st.sampled_from(["attempt", "final"]),
    st.floats(START, START + 1_000),
    st.text(max_size=10),
    st.none() | st.sampled_from(Cause),
)


KEY = Key("p", "n")


def apply(entry, event, closed):
    """One event of an entry's life; and whether it was taken."""
    if isinstance(event, Record):
        entry, outcome = receive(entry, event, closed=closed)
        return entry, outcome is UploadOutcome.ACCEPTED
    entry, marked = fail(entry, event, closed=closed)
    return entry, marked is Marked.RECORDED


def rank_of(entry):
    """The rank that is held; below all when nothing is."""
    return -1 if entry.record is None else entry.record.rank


@given(st.lists(records | failures, max_size=12))
def test_ranks_only_rise(events):
    """A record gives way only to a higher one, and is then the superseded one."""
    entry = Entry(KEY)
    for event in events:
        before = entry
        entry, taken = apply(entry, event, closed=False)
        if entry.record != before.record:
            assert taken
            assert rank_of(entry) > rank_of(before)
            assert (before.record or before.superseded) == entry.superseded
            assert None is entry.window
        assert entry.terminal is (entry.state is not State.RUNNING)
        assert not (entry.retrying and entry.terminal)
        assert not entry.late or entry.state is State.COMPLETE


@given(st.lists(records | failures, max_size=6), records | failures)
def test_after_closing_nothing_changes(events, event):
    """Whatever had come before."""
    entry = Entry(KEY)
    for each in events:
        entry, _ = apply(entry, each, closed=False)
    assert (entry, False) == apply(entry, event, closed=True)


@given(st.lists(records | failures, max_size=6), records | failures)
def test_an_event_told_twice_in_a_row_changes_nothing_more(events, event):
    """Except at the cap of a window, where the same failure cannot be told from a new one."""
    entry = Entry(KEY)
    for each in events:
        entry, _ = apply(entry, each, closed=False)
    once, _ = apply(entry, event, closed=False)
    twice, _ = apply(once, event, closed=False)
    assert replace(once, attempts=0) == replace(twice, attempts=0)


@given(st.lists(st.floats(START, START + 2_000), min_size=1, max_size=12), st.floats(1, 10_000))
def test_a_window_ends_and_never_moves_back(moments, timeout):
    """At most 600 s after the first failure; time does something exactly when it is due."""
    entry = start(Entry(KEY), START, timeout)
    for at in moments:
        before = entry.window
        entry, _ = fail(entry, Failure("attempt", at, "cut"), closed=False)
        assert before is None or entry.window.until >= before.until
        assert entry.window.until <= entry.window.first + 600
    back = returned(entry, START - 60, 30.0, 60.0)
    assert (entry.window, entry.deadline <= back.deadline) == (back.window, True)
    moment = next_due(entry)
    assert entry.window.until == moment
    assert None is due(entry, moment - 0.01)
    decided, marked = fail(entry, due(entry, moment), closed=False)
    assert (Marked.RECORDED, True, None) == (marked, decided.terminal, next_due(decided))


NODES = tuple(f"node-{n}" for n in range(4))


PLAN = Plan("r1", (Plugin("e2e"), Plugin("sysd", NODES)))


sent_progress = st.builds(
    StoredProgress,
    st.builds(
        lambda update, failures, errors: combine(
            None, replace(update, failures_total=failures, errors_total=errors)
        ),
        updates,
        st.integers(0, 5_000) | st.integers(0, INT64_MAX),
        st.integers(0, 3),
    ),
    st.floats(START, START + 1_000),
)


any_beat = st.builds(Beat, st.none() | st.floats(0, 1_000), st.booleans())


plans = st.just(PLAN) | st.builds(
    lambda count, nodes: Plan("r2", tuple(Plugin(f"p{n}", NODES[:nodes]) for n in range(count))),
    st.integers(0, 12),
    st.integers(0, 4),
)


@st.composite
def snapshots(draw):
    """Any run at any moment."""
    plan = draw(plans)
    held = draw(st.lists(st.none() | records, min_size=1, max_size=6))
    some = draw(st.lists(sent_progress, max_size=2))
    beats = draw(st.lists(any_beat, max_size=2))
    keys = plan.keys
    return Snapshot(
        plan,
        draw(st.integers(0, 2**40)),
        draw(st.sampled_from(Phase)),
        START,
        {key: Entry(key, held[n % len(held)]) for n, key in enumerate(keys)},
        {key: some[n % len(some)] for n, key in enumerate(keys) if some},
        {key: beats[n % len(beats)] for n, key in enumerate(keys) if beats},
        error=draw(st.none() | st.text(max_size=9)),
    )


@given(snapshots())
def test_the_roll_up_says_what_the_entries_say(run):
    """The rules of the status, told the other way round."""
    states = [entry.state for entry in run.entries.values()]
    gone = {State.FAILED, State.TIMED_OUT} & set(states)
    match run_status(run):
        case Status.FAILED:
            assert run.error is not None or gone
        case Status.RUNNING:
            assert State.RUNNING in states
            assert not gone
        case Status.POST_PROCESSING:
            assert set(states) <= {State.COMPLETE}
            assert not final(run)
        case Status.COMPLETE:
            assert set(states) <= {State.COMPLETE}
            assert final(run)
            assert None is run.error
    percent = percent_complete(run)
    assert 0 <= percent <= 1
    assert (percent == 1) is (State.RUNNING not in states)


@given(snapshots())
def test_the_counts_are_those_of_the_entries(run):
    """A reader of the summary is told what a reader of all entries counts."""
    document = status_document(run, now=START, mono=1_000.0)
    assert document["counts"] == _counted(list(rows(document)))


@given(snapshots())
def test_a_status_document_is_json_in_the_order_of_the_plan(run):
    """Whatever the workers have sent."""
    document = status_document(run, now=START, mono=1_000.0)
    assert document == json.loads(json.dumps(document).encode())
    assert [str(key) for key in run.plan.keys] == [each["key"] for each in document["plugins"]]


@settings(max_examples=2 * settings().max_examples)
@given(snapshots(), st.integers(512, 20_000), st.booleans())
def test_the_annotation_fits_and_reads_back(run, budget, strict):
    """Within the budget, valid JSON of known words, and no entry is told that is not there."""
    value = annotations(run, strict=strict, budget=budget)
    assert len(value.status.encode()) <= budget
    status, own = json.loads(value.status), json.loads(value.run)
    assert ["plugins", "status", "tar-info"] == list(status)
    rows = status["plugins"] or []
    truncated = own["truncated"]
    assert truncated or [tuple(key) for key in run.plan.keys] == [
        (row["plugin"], row["node"]) for row in rows
    ]
    for row in rows:
        assert row["node"] == "*" or Key(row["plugin"], row["node"]) in run.entries
        assert row["status"] in {"running", "complete", "failed"}
        if "progress" in row:
            progress = run.progress[Key(row["plugin"], row["node"])].progress
            totals = (
                len(row["progress"].get("failures", ())),
                len(row["progress"].get("errors", ())),
            )
            assert (progress.failures_total, progress.errors_total) == totals
    told = {STATUS_ANNOTATION: value.status, RUN_ANNOTATION: value.run}
    reading = read_status({"metadata": {"annotations": told}, "status": {"phase": "Running"}})
    assert status == reading.status
    document = of_reading(reading).document
    assert counts(run) == document["counts"]
    keys = [each["key"] for each in document["plugins"] if each["node"] != "*"]
    assert set(own["why"]) <= set(keys)
    assert len(set(keys)) == len(keys)


@given(st.lists(st.none() | records, max_size=5), st.floats(START, START + 2_000))
def test_the_run_closes_exactly_when_it_said(held, now):
    """`next_close` and `may_close` agree."""
    entries = [Entry(Key("p", f"n{at}"), record) for at, record in enumerate(held)]
    moment = next_close(entries, now)
    assert (None in held) is (moment is None)
    if moment is not None:
        assert moment >= now
        assert may_close(entries, moment)
        assert may_close(entries, now) is (moment == now)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1_000)), max_size=9), st.floats(0, 2_000))
def test_only_armed_and_silent_workers_are_lost(events, now):
    """In whatever order the requests are told; a gap that does not count never makes one lost."""
    beat = Beat()
    for real, at in events:
        beat = beaten(beat, at) if real else heard(beat, at)
    armed = any(real for real, _ in events)
    newest = max((at for _, at in events), default=None)
    assert Beat(newest, armed) == beat
    expected = armed and now - newest >= 120
    assert expected is lost(beat, now=now)
    assert not lost(shifted(beat, 50.0, max(now, newest or 0.0)), now=now) or expected


@given(
    json_values
    | st.fixed_dictionaries(
        {
            "run": st.just("r"),
            "plugins": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["a", "b", "", "é"]) | json_values},
                    optional={
                        "nodes": st.lists(st.sampled_from(["n1", "n2", "global", ""]))
                        | json_values,
                        "timeout_seconds": json_values,
                        "order": json_values,
                        "identity": json_values,
                        "heartbeats": json_values,
                    },
                ),
                max_size=3,
            ),
        }
    )
)
def test_any_document_is_a_plan_or_its_problems(document):
    """Every key of a plan is there once, and a plan survives being stored."""
    plan, refused = tried(parse_plan, document)
    if refused:
        assert refused.problems
    else:
        assert len(set(plan.keys)) == len(plan.keys)
        assert plan == parse_plan(plan_document(plan))


@given(json_values)
def test_any_pod_can_be_read(value):
    """A proxy may answer anything."""
    pod = {"metadata": value, "status": {"phase": "Running", "containerStatuses": value}}
    assert read_status(pod).outcome
    assert None is pick_pod([pod, {"status": value}]).pod
    assert read_status({"status": value}).detail


def _counted(entries: list[Row]) -> dict[str, int]:
    unknown = [row for row in entries if row.result == "unknown"]
    return {
        "entries": len(entries),
        "decided": sum(row.decided for row in entries),
        "received": sum(row.status == "complete" for row in entries),
        "failed": sum(not row.passed for row in entries if row not in unknown),
        "unknown": len(unknown),
    }
