"""Laws of the decisions: they never raise, keep their word, and care for no order of arrival."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reporter.common.retry import next_delay
from reporter.common.schema import load
from reporter.verdict.case import Case
from reporter.verdict.condition import (
    SIZE_LIMIT,
    Attempt,
    Statement,
    amend,
    decode_note,
    encode_annotation,
)
from reporter.verdict.decide import Pending, Settled, decide, nothing_more, restartable, stays
from reporter.verdict.evidence import contradiction, evidence, late
from reporter.verdict.facts import FileAbsent, FileReadFailed
from reporter.verdict.history import attributed, remember
from reporter.verdict.rows import Report
from tests.property.facts import (
    ROWS,
    files,
    histories,
    looks,
    observations,
    results,
    runs,
    seconds,
    settings_of_users,
)
from tests.situations import at

SCHEMA = load("verdict.v1")


@given(observations, settings_of_users)
def test_every_observation_has_a_verdict(o, policy):
    """`decide` never raises, and what it says can be written as it stands."""
    said = decide(o, policy)

    if isinstance(said, Pending):
        assert o.stopping_since is not None or isinstance(o.file, FileReadFailed)
        assert said.next_look > o.now
        return
    report = said.report
    assert report.row in ROWS
    assert report.status in {"True", "False", "Unknown"}
    assert 1 <= len(report.reason.encode()) <= 128
    assert 1 <= len(report.message.encode()) <= 1024
    assert isinstance(said, Settled) or said.next_look > o.now


@given(observations, settings_of_users, st.floats(0, 2.0**40))
def test_settled_stays_settled_when_only_time_passes(o, policy, passing):
    """No clock alone takes a final verdict back."""
    said = decide(o, policy)

    if isinstance(said, Settled):
        assert said == decide(replace(o, now=o.now + passing), policy)


@given(observations, settings_of_users)
def test_nothing_changes_before_the_next_look(o, policy):
    """`next_look` misses no moment at which time alone changes the verdict."""
    said = decide(o, policy)

    if not isinstance(said, Settled) and said.next_look < float("inf"):
        between = decide(replace(o, now=o.now + (said.next_look - o.now) / 2), policy)
        if isinstance(said, Pending):
            assert isinstance(between, Pending)
        else:
            assert said.report == between.report


@given(observations, settings_of_users)
def test_the_times_after_sigterm_are_in_order(o, policy):
    """First the API is no longer asked, or the adapter no longer heard, then the reporter ends."""
    case = Case(o, policy)
    stays(o, policy), restartable(o), nothing_more(o, policy)

    if o.stopping_since is not None:
        assert case.stop_deadline >= o.stopping_since
        assert case.result_counts_until <= case.stop_deadline
        assert case.cause_shown_by <= case.stop_deadline


def undocumented(value, schema, path="$"):
    """Paths of members that the schema does not name."""
    while "$ref" in schema:
        schema = schema | SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        schema = {key: rule for key, rule in schema.items() if key != "$ref"}
    known = dict(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        known |= SCHEMA["$defs"][part["$ref"].removeprefix("#/$defs/")]["properties"]
    if not isinstance(value, dict):
        return []
    unknown = [f"{path}.{key}" for key in value if key not in known]
    inner = (undocumented(value[key], known[key], f"{path}.{key}") for key in value if key in known)
    return [*unknown, *(name for names in inner for name in names)]


added_later = st.one_of(
    st.none(),
    runs.map(lambda run: ("after", contradiction("R", "True", run))),
    st.tuples(st.just("late"), st.builds(late, results, st.integers(-(2**40), 2**40))),
)


@given(
    observations,
    st.integers(-(2**40), 2**40),
    st.sampled_from(sorted(ROWS)),
    st.booleans(),
    added_later,
)
def test_every_observation_makes_an_annotation(o, wall, row, final, addition):
    """At most 4 KiB, each member as the published schema says, and read back as it was."""
    adapter = Attempt("job-x7k2p", "pod-uid", at(-1), at(0), at(1), 2)
    report = Report(row, "True", "r", "m")

    value = encode_annotation(Statement(report, final, adapter, evidence(o, wall), 0.0))
    if addition and addition[1]:
        value = amend(value, *addition)

    assert len(value.encode()) <= SIZE_LIMIT
    shown = json.loads(value)
    assert [] == list(Draft202012Validator(SCHEMA).iter_errors(shown))
    assert [] == undocumented(shown, SCHEMA)
    note = decode_note(value)
    assert (adapter, row, final) == (note.attempt, note.row, note.final)


@given(histories, seconds, st.floats(1, 2.0**40), looks, files)
def test_remembering_the_same_look_twice_changes_nothing(history, now, wall, look, file):
    """The loop may look as often as it likes."""
    once = remember(history, now, wall, look, file)
    twice = remember(once, now, wall, look, file)

    assert once == twice
    assert attributed(file, look, once) == attributed(file, look, twice)


@given(histories, looks, files)
def test_a_file_counts_as_it_is_or_not_at_all(history, look, file):
    """Attribution never changes a file; one that cannot be read counts as it was read before."""
    before = getattr(file, "before", None)
    unread = {before, replace(file, before=None)} if before else set()

    assert attributed(file, look, history) in {file, FileAbsent(), *unread}


@given(
    st.integers(0, 10**9),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.floats(-1, 10**6),
    st.none() | st.floats(-1, 10**6),
)
def test_a_delay_is_never_negative_nor_beyond_the_end(attempt, roll, retry_after, remaining):
    """Whatever was asked for."""
    delay = next_delay(attempt, lambda: roll, retry_after=retry_after, remaining=remaining)

    if remaining is not None and remaining <= 0:
        assert delay is None
    else:
        assert 0 <= delay <= 45
        assert remaining is None or delay <= remaining
