"""What the author of a result file is told about it."""

import json

import pytest

from reporter.wire.explain import Problem, explain
from reporter.wire.result import MAX_BYTES


def test_a_fine_file_needs_no_words():
    """No remark, no output."""
    assert [] == explain(b'{"status":"success","reason":"R","message":"m","details":{"a":1}}')


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            b'{\n "status" success}',
            [Problem("error", 2, 11, "", "expected ':' after the key")],
            id="malformed",
        ),
        pytest.param(
            b" " * (MAX_BYTES + 1),
            [Problem("error", 1, 1, "", "larger than 1048576 bytes")],
            id="too large",
        ),
        pytest.param(
            b'{\n "message": 5,\n "status": "ok"\n}',
            [
                Problem("error", 2, 13, "message", "must be a string"),
                Problem("error", 3, 12, "status", "must be either 'success' or 'failure'"),
            ],
            id="several errors, in the order of the file",
        ),
        pytest.param(
            b'\n {"details": {"status": "success"}}',
            [
                Problem("error", 2, 2, "status", "is required"),
                Problem(
                    "note",
                    2,
                    14,
                    "details",
                    "a 'status' inside 'details' does not count, it belongs to the top level",
                ),
            ],
            id="status in the wrong place",
        ),
        pytest.param(
            b'{"details": ["status"]}',
            [Problem("error", 1, 1, "status", "is required")],
            id="details without members",
        ),
        pytest.param(
            b'{"details": {"a": "status"}}',
            [Problem("error", 1, 1, "status", "is required")],
            id="details without a status",
        ),
        pytest.param(
            b'{"Status": "success",\n"reason": null, "message": " \\n"}',
            [
                Problem("note", 1, 12, "status", "the key 'Status' is read as 'status'"),
                Problem("note", 2, 11, "reason", "is null, 'NoReasonProvided' will be shown"),
                Problem("note", 2, 28, "message", "is empty, 'No message provided' will be shown"),
            ],
            id="other letter case and defaults",
        ),
        pytest.param(
            b'{"status": "failure", "status": "success"}',
            [Problem("note", 1, 33, "status", "the key 'status' is given more than once")],
            id="duplicate key",
        ),
    ],
)
def test_every_remark_has_its_place(data, expected):
    """Line, column, field and what to do about it."""
    assert expected == explain(data)


def test_texts_that_will_be_cut_are_named_with_their_size():
    """An author sees that the end of a text will be missing."""
    data = json.dumps({"status": "success", "reason": "r" * 130, "message": "m" * 1024}).encode()
    assert [Problem("note", 1, 33, "reason", "will be cut from 130 to 128 bytes")] == explain(data)
