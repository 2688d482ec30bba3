"""Laws of progress: it stays bounded, and an update that comes twice counts once."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reporter.run.progress import (
    INT64_MAX,
    INT64_MIN,
    KEPT,
    KEY_BYTES,
    TEXT_BYTES,
    Progress,
    StoredProgress,
    UpdateId,
    combine,
    fitting,
    footprint,
    parse_update_id,
    take,
)
from reporter.run.progress_body import parse_progress
from tests.progress_bodies import in_pieces
from tests.property.run_facts import START, json_values, tried, updates

small = st.builds(
    Progress,
    total=st.integers(0, 99),
    completed=st.integers(0, 99),
    appendtotals=st.booleans(),
    appendcompleted=st.integers(0, 9),
    appendfailing=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    errors=st.lists(st.text(max_size=3), max_size=3).map(tuple),
)


def stored_from(journal):
    """What some updates add up to."""
    stored = None
    for update in journal:
        stored = combine(stored, update)
    return stored


@given(st.lists(updates, min_size=1, max_size=4))
def test_combining_never_raises_and_stays_within_bounds(journal):
    """Whatever is sent: lists, texts and numbers fit, and can be written and shown."""
    stored = stored_from(journal)
    for number in (stored.total, stored.completed):
        assert INT64_MIN <= number <= INT64_MAX
    for kept, total in (
        (stored.failures, stored.failures_total),
        (stored.errors, stored.errors_total),
    ):
        assert len(kept) <= KEPT
        assert len(kept) <= total <= INT64_MAX
    for text in {stored.msg, *stored.failures, *stored.errors}:
        assert len(text.encode()) <= TEXT_BYTES
    assert (False, False, 0, ()) == (
        stored.appending,
        stored.appendtotals,
        stored.appendcompleted,
        stored.appendfailing,
    )


@given(updates, updates)
def test_a_replacing_update_does_not_care_what_was_stored(first, new):
    """And applying it twice is the same as once."""
    new = replace(new, appendtotals=False, appendcompleted=0, appendfailing=())
    once = combine(None, new)
    assert once == combine(combine(None, first), new)
    assert once == combine(once, once)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), small), max_size=12),
    st.data(),
)
def test_an_update_that_is_told_again_changes_nothing(journal, data):
    """Replayed in any number and at any later time, each id counts once and none wins over newer.

    The model: an update applies if its epoch was not replaced and its number is new there.
    """
    stored, applied, replaced, last = None, [], set(), None
    sent = []
    for epoch, seq, update in journal:
        sent.append((epoch, seq, update))
        again = data.draw(st.lists(st.sampled_from(sent), max_size=2))
        for each_epoch, each_seq, each in [(epoch, seq, update), *again]:
            new = take(stored, each, UpdateId(each_epoch, each_seq), START)
            newer = last is None or each_epoch != last[0] or each_seq > last[1]
            fresh = each_epoch not in replaced and newer
            assert fresh is (new is not None)
            stored = new or stored
            if fresh:
                if last is not None and last[0] != each_epoch:
                    replaced.add(last[0])
                last = (each_epoch, each_seq)
                applied.append(each)
    if stored is not None:
        assert stored_from(applied) == stored.progress


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_progress_or_an_invalid_payload(body):
    """Never another exception."""
    progress, refused = tried(parse_progress, body)
    assert str(refused) if progress is None else combine(None, progress)


@given(updates, updates)
def test_texts_are_bounded_and_counts_are_not(first, second):
    """Whatever comes in: 16 KiB of a key, in as many texts as before."""
    stored = combine(combine(None, first), second)
    texts = (stored.msg, *stored.failures, *stored.errors)
    assert KEY_BYTES >= sum(len(text.encode()) for text in texts)
    assert stored.failures_total >= len(stored.failures)
    sent = StoredProgress(stored, START)
    left = fitting(sent, 0)
    assert footprint(left) <= footprint(sent)
    counts = (stored.completed, stored.total, stored.failures_total)
    assert counts == (left.progress.completed, left.progress.total, left.progress.failures_total)


fields = st.sampled_from(
    [
        "msg",
        "MSG",
        "name",
        "node",
        "timestamp",
        "total",
        "completed",
        "Failures",
        "errors",
        "appendTotals",
        "appendcompleted",
        "appendfailing",
        "other",
    ]
)


@given(st.dictionaries(fields, json_values | st.lists(st.text(max_size=3)), max_size=5))
def test_any_object_is_progress_or_an_invalid_payload(document):
    """Known fields with values of any type; what was refused is named, not repeated.

    A reader that does it in pieces says the same.
    """
    body = json.dumps(document).encode()
    progress, refused = tried(parse_progress, body)
    again, refused_again = tried(in_pieces, body)
    assert bool(refused) is bool(refused_again)
    assert refused or combine(None, progress) == combine(None, again)
    if refused:
        assert str(refused).partition(":")[0] in {name.lower() for name in document}
    else:
        assert progress.appendcompleted >= 0
        assert isinstance(progress.msg, str)


@given(st.text(max_size=80))
def test_any_header_is_an_id_or_refused(header):
    """An id reads back as it was written, but for leading zeros."""
    found, refused = tried(parse_update_id, header)
    assert refused or found == parse_update_id(f"{found.epoch}/{found.seq}")
