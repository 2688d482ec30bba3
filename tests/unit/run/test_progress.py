"""Combining updates, and which of two is the newer."""

from dataclasses import replace

import pytest

from reporter.errors import InvalidPayload
from reporter.run.progress import (
    EPOCHS_KEPT,
    INT64_MAX,
    INT64_MIN,
    KEY_BYTES,
    Progress,
    StoredProgress,
    UpdateId,
    clip,
    combine,
    fitting,
    footprint,
    newest,
    parse_update_id,
    take,
)
from reporter.run.progress_body import parse_progress
from tests.tables import table

ONE = Progress(total=1, completed=1)
APPEND = Progress(msg="m", appendtotals=True, appendcompleted=4)


@table(
    ("stored", "new", "expected"),
    {
        "A25 replaces": (ONE, Progress(total=5, completed=5), Progress(total=5, completed=5)),
        "A25 appends without totals": (
            Progress(total=1, completed=1, failures=("a",)),
            Progress(appendcompleted=5, appendfailing=("B",)),
            Progress(total=1, completed=6, failures=("a", "B")),
        ),
        "A25 appends with totals": (
            ONE,
            Progress(appendtotals=True, appendcompleted=5, appendfailing=("a",)),
            Progress(total=7, completed=6, failures=("a",)),
        ),
        "A25 appends to nothing": (
            None,
            Progress(appendtotals=True, appendcompleted=5, appendfailing=("c", "d")),
            Progress(total=7, completed=5, failures=("c", "d")),
        ),
        "A25 appends failures only": (
            None,
            Progress(appendtotals=True, appendfailing=("c", "d")),
            Progress(total=2, completed=0, failures=("c", "d")),
        ),
        "A26 a run that grows": (
            Progress(total=33, completed=33),
            Progress(appendtotals=True, appendcompleted=4),
            Progress(total=37, completed=37),
        ),
        "A50 errors are appended, its own totals and failures ignored": (
            Progress(msg="old", errors=("e",)),
            Progress(
                msg="new", total=9, completed=9, failures=("x",), errors=("f",), appendcompleted=1
            ),
            Progress(msg="new", completed=1, errors=("e", "f")),
        ),
        "a replacing update leaves nothing of the old one": (
            Progress(msg="old", failures=("a",), errors=("e",)),
            Progress(msg="new"),
            Progress(msg="new"),
        ),
        "sums stop at the limit": (
            Progress(total=INT64_MAX, completed=INT64_MAX - 1),
            Progress(appendtotals=True, appendcompleted=5, appendfailing=("a",)),
            Progress(total=INT64_MAX, completed=INT64_MAX, failures=("a",)),
        ),
        "from the lower limit up": (
            Progress(completed=INT64_MIN),
            Progress(appendcompleted=1),
            Progress(completed=INT64_MIN + 1),
        ),
        "a negative append from a caller in Python is none": (
            ONE,
            Progress(total=-3, appendcompleted=-4),
            Progress(total=-3),
        ),
        "a negative append never takes away": (
            ONE,
            Progress(appendtotals=True, appendcompleted=-4),
            ONE,
        ),
    },
)
def test_combining(stored, new, expected):
    """The table of the protocol, then its edges."""
    assert expected == combine(stored, new)


def test_appending_stops_at_a_thousand_and_goes_on_counting():
    """A50, also when the lists fill up piece by piece."""
    stored = None
    for start in range(0, 2_100, 700):
        names = tuple(f"f{start + n}" for n in range(700))
        stored = combine(stored, Progress(appendfailing=names, errors=names))
    assert stored is not None
    assert (1_000, 2_100) == (len(stored.failures), stored.failures_total)
    assert (1_000, 2_100) == (len(stored.errors), stored.errors_total)
    assert ("f999", "f999") == (stored.failures[-1], stored.errors[-1])


def test_texts_are_cut_to_a_kilobyte():
    """Message and names, in bytes."""
    long = "x" * 5_000
    stored = combine(None, Progress(msg=long, failures=(long,), errors=(long,)))
    assert ["x" * 1_024] * 3 == [stored.msg, stored.failures[0], stored.errors[0]]


LONG = tuple(f"{number:04d} {'x' * 1_019}" for number in range(1_000))


def test_the_texts_of_a_key_are_shortened_from_the_oldest():
    """16 KiB in all; none is left out, because readers count them."""
    stored = combine(None, Progress("m" * 1_024, failures=LONG, errors=("e",)))
    sizes = [len(text) for text in stored.failures]
    assert (1_000, 1_000, ("e",)) == (len(sizes), stored.failures_total, stored.errors)
    assert KEY_BYTES == 1_024 + 1 + sum(sizes)
    assert ("",) * 985 == stored.failures[:985]
    assert LONG[986:] == stored.failures[986:]


def test_failures_and_errors_share_the_room():
    """Half of it is either's; what one does not need the other has."""
    both = combine(None, Progress(failures=LONG, errors=LONG))
    assert [KEY_BYTES // 2] * 2 == [sum(map(len, t)) for t in (both.failures, both.errors)]
    most = combine(None, Progress(failures=("f" * 1_000,), errors=LONG))
    assert [1_000, KEY_BYTES - 1_000] == [sum(map(len, t)) for t in (most.failures, most.errors)]


def test_appending_pushes_the_oldest_out():
    """The newest can be read, and everything is counted."""
    stored = None
    for number in range(100):
        stored = combine(stored, Progress(appendfailing=(f"{number} {'y' * 1_000}",)))
    assert stored is not None
    assert (100, 100) == (len(stored.failures), stored.failures_total)
    assert f"99 {'y' * 1_000}" == stored.failures[-1]
    assert KEY_BYTES >= sum(map(len, stored.failures))


def test_the_time_of_a_key_only_grows():
    """A clock that was set back does not make the newer update the older one."""
    first = take(None, Progress("a"), None, 100.0)
    second = take(first, Progress("b"), None, 40.0)
    third = take(second, Progress("c"), None, 101.0)
    assert (100.0, 101.0) == (first.at, third.at)
    assert first.at < second.at < 100.001
    for one, other in ((first, second), (second, first), (second, None), (None, second)):
        assert second == newest(one, other)
    assert newest(None, None) is None
    assert first is newest(first, replace(first))


def test_what_the_texts_of_a_key_take():
    """Objects and wide characters count; without its texts a key keeps its counts."""
    sent = StoredProgress(Progress("m", 5, 3, ("ab", ""), ("\U0001f389",)), 0.0, None, ("epoch",))
    assert (8 + 65) + (8 + 66) + 8 + (8 + 68) + (8 + 69) == footprint(sent)
    bare = fitting(sent, 0)
    assert (5, 3, 2, 1) == (
        bare.progress.total,
        bare.progress.completed,
        bare.progress.failures_total,
        bare.progress.errors_total,
    )
    assert ("", (), ()) == (bare.progress.msg, bare.progress.failures, bare.progress.errors)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc", 2, "ab"),
        ("é" * 3, 4, "éé"),
        ("é" * 3, 5, "éé"),
        ("\ud800x", 9, "\ufffdx"),
        ("a\0bc", 5, "a\ufffdb"),
        ("🎉🎉", 7, "🎉"),
        ("é", 1, ""),
    ],
)
def test_cutting_ends_on_a_character(text, limit, expected):
    """What is stored can always be written as UTF-8."""
    assert expected == clip(text, limit)


def test_half_a_surrogate_pair_from_the_wire_is_mended():
    """JSON can spell it, nobody can write it."""
    stored = combine(None, parse_progress(b'{"msg":"a\\ud800b","failures":["\\udfff"]}'))
    assert ("a\ufffdb", ("\ufffd",)) == (stored.msg, stored.failures)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("a1B2-x_y.z/0", UpdateId("a1B2-x_y.z", 0)),
        ("e/999999999999999999", UpdateId("e", 10**18 - 1)),
        ("!:~@[e]/7", UpdateId("!:~@[e]", 7)),
        ("e" * 64 + "/1", UpdateId("e" * 64, 1)),
    ],
)
def test_reading_a_progress_id(header, expected):
    """Whatever the published pattern allows is kept."""
    assert expected == parse_update_id(header)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "e/",
        "/1",
        "e/-1",
        "e/1/2",
        "e/1 ",
        "e e/1",
        "\xe9/1",
        "e/\u0661",
        "e" * 65 + "/1",
        "e/1000000000000000000",
    ],
)
def test_what_is_no_progress_id(header):
    """Dropped, a repeated append would count twice: it is refused."""
    with pytest.raises(InvalidPayload, match=r"^Progress-Id: not EPOCH/SEQ$"):
        parse_update_id(header)


def journal(*updates):
    """Apply updates (id, update) in this order; return what is stored and what became of each."""
    stored, taken = None, []
    for at, (update_id, update) in enumerate(updates):
        new = take(stored, update, update_id and UpdateId(*update_id), float(at))
        taken.append(new is not None)
        stored = new or stored
    assert stored is not None
    return stored, taken


def total(number):
    """A replacing update that can be recognised."""
    return Progress(total=number)


@table(
    ("updates", "taken", "sum_"),
    {
        "A49 an append sent twice counts once": (
            [(("a", 1), APPEND), (("a", 1), APPEND)],
            [True, False],
            4,
        ),
        "A49 an overtaken update does not win": (
            [(("a", 2), total(2)), (("a", 1), total(1))],
            [True, False],
            2,
        ),
        "A49 a new epoch is applied": (
            [(("a", 9), total(9)), (("b", 1), total(1))],
            [True, True],
            1,
        ),
        "A49 a replaced epoch does not come back": (
            [(("a", 9), total(9)), (("b", 1), total(1)), (("a", 10), total(10))],
            [True, True, False],
            1,
        ),
        "A49 without ids arrival decides": ([(None, total(2)), (None, total(1))], [True, True], 1),
        "A49 one without an id leaves the last id in force": (
            [(("a", 1), APPEND), (None, APPEND), (("a", 1), APPEND), (("a", 2), APPEND)],
            [True, True, False, True],
            12,
        ),
        "A49 the first id after updates without": (
            [(None, total(2)), (("a", 1), total(1))],
            [True, True],
            1,
        ),
    },
)
def test_the_order_of_updates(updates, taken, sum_):
    """Ids decide, and what was ignored changes nothing."""
    stored, seen = journal(*updates)
    assert (taken, sum_) == (seen, stored.progress.total)


def test_replaced_epochs_are_remembered_to_a_bound():
    """A client that makes up epochs cannot make us remember all of them."""
    stored, _ = journal(*(((f"e{n}", 1), total(n)) for n in range(100)))
    expected = tuple(f"e{n}" for n in range(99 - EPOCHS_KEPT, 99))
    assert (UpdateId("e99", 1), expected) == (stored.id, stored.replaced)
