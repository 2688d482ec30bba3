"""An adapter's progress: what is taken, what is refused."""

import json

import pytest

from reporter.common.schema import MOST_PROBLEMS
from reporter.errors import InvalidPayload
from reporter.verdict.adapter_files import MAX_PROGRESS_BYTES, decode_progress
from reporter.verdict.facts import Progress


def cause(data):
    """Why progress is malformed."""
    with pytest.raises(InvalidPayload) as caught:
        decode_progress(data)
    return str(caught.value)


def test_full_progress_is_decoded():
    """All five members."""
    data = b'{"msg":"dns\\n","total":12,"completed":5,"failures":["a","b"],"errors":["c"],"x":0}'
    assert Progress("dns", 12, 5, ("a", "b"), ("c",)) == decode_progress(data)


@pytest.mark.parametrize(
    "data",
    [b"{}", b'{"msg":null,"total":null,"completed":null,"failures":null,"errors":null}',
     b'{"msg":"","failures":[],"errors":[ ]}'],
    ids=["nothing", "null", "empty"],
)  # fmt: skip
def test_every_member_may_be_left_out(data):
    """Missing, null and empty are the same."""
    assert Progress() == decode_progress(data)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (b"0", 0),
        (b"-1", -1),
        (b"3.0", 3),
        (b"1e2 ", 100),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
    ],
)
def test_whole_numbers_of_64_bits_are_taken(number, expected):
    """JSON has no integers of its own: 3.0 is one."""
    progress = decode_progress(b'{"total":' + number + b"}")
    assert (expected, int) == (progress.total, type(progress.total))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"total":"5"}', "total: must be an integer"),
        (b'{"total":true}', "total: must be an integer"),
        (b'{"total":5.5}', "total: must be an integer"),
        (b'{"total":1e999}', "total: must be an integer"),
        (b'{"completed":[5]}', "completed: must be an integer"),
        (b'{"total":9223372036854775808}', "total: must be at most 9223372036854775807"),
        (b'{"total":' + b"9" * 5000 + b"}", "total: must be at most 9223372036854775807"),
        (b'{"total":-' + b"9" * 5000 + b"}", "total: must be at least -9223372036854775808"),
        (b'{"msg":5}', "msg: must be a string"),
        (b'{"failures":"a"}', "failures: must be a list"),
        (b'{"errors":{}}', "errors: must be a list"),
        (b'{"failures":["a",5]}', "failures[1]: must be a string"),
        (b'{"errors":[["a"]]}', "errors[0]: must be a string"),
        (b"[]", "line 1, column 1: the top level must be an object"),
        (b" " * (MAX_PROGRESS_BYTES + 1), "larger than 65536 bytes"),
    ],
)
def test_malformed_progress_is_refused_with_its_cause(data, expected):
    """By place and rule, never by content."""
    assert expected == cause(data)


def test_texts_are_cleaned_and_cut():
    """Like a result's message; entries of a list are kept also when nothing is left of them."""
    data = json.dumps({"msg": "ä" * 600, "failures": ["a\u202e\nb", "\x00", "c" * 2000]}).encode()
    progress = decode_progress(data)
    assert Progress("ä" * 512, None, None, ("a b", "", "c" * 1024), ()) == progress


def test_a_long_list_of_wrong_entries_is_told_in_a_few():
    """The cause stays short enough for a log line."""
    assert MOST_PROBLEMS == cause(b'{"errors":[' + b"1," * 30_000 + b"1]}").count("must be")
