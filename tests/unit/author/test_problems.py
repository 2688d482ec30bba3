"""What the author of a result file is told about it."""

import json

import pytest

from reporter.author.problems import PROGRESS, Problem, problems_in
from reporter.verdict.adapter_files import MAX_PROGRESS_BYTES, MAX_RESULT_BYTES

EITHER = "must be either 'success' or 'failure'"
INSIDE = "a 'status' inside 'details' is ignored: it must be at the top level"
NO_STATUS = Problem("error", 1, 1, "status", "is required")


def test_a_fine_file_needs_no_words():
    """No remark, no output."""
    assert [] == problems_in(b'{"status":"success","reason":"R","message":"m","details":{"a":1}}')


REMARKS = {
    "malformed": (
        b'{\n "status" success}',
        [Problem("error", 2, 11, "", "expected ':' after the key")],
    ),
    "too large": (
        b" " * (MAX_RESULT_BYTES + 1),
        [Problem("error", 1, 1, "", "larger than 1048576 bytes")],
    ),
    "empty": (b"", [Problem("error", 1, 1, "", "the document is empty")]),
    "a list": (b"[]", [Problem("error", 1, 1, "", "the top level must be an object")]),
    "several errors, in the order of the file": (
        b'{\n "message": 5,\n "status": "ok"\n}',
        [
            Problem("error", 2, 13, "message", "must be a string, found 5"),
            Problem("error", 3, 12, "status", f'{EITHER}, found "ok"'),
        ],
    ),
    "status in the wrong place": (
        b'\n {"details": {"status": "success"}}',
        [
            Problem("error", 2, 2, "status", "is required"),
            Problem("note", 2, 14, "details", INSIDE),
        ],
    ),
    "details without members": (b'{"details": ["status"]}', [NO_STATUS]),
    "details without a status": (b'{"details": {"a": "status"}}', [NO_STATUS]),
    "other letter case and defaults": (
        b'{"Status": "success",\n"reason": null, "message": " \\n"}',
        [
            Problem("note", 1, 12, "status", "the key 'Status' is read as 'status'"),
            Problem("note", 2, 11, "reason", "is null, 'NoReasonProvided' will be shown"),
            Problem("note", 2, 28, "message", "is empty, 'No message provided' will be shown"),
        ],
    ),
    "duplicate key": (
        b'{"status": "failure", "status": "success"}',
        [Problem("note", 1, 33, "status", "the key 'status' is given more than once")],
    ),
    "a byte order mark": (
        b'\xef\xbb\xbf{"status": "Success"}',
        [Problem("error", 1, 1, "", "a byte order mark (BOM) is not allowed")],
    ),
    "what stands before the place where it is broken": (
        b'{"status": "Success",\n"resaon": "r",\n"message": 5,}',
        [
            Problem("error", 1, 12, "status", f'{EITHER}, found "Success"'),
            Problem("warning", 2, 1, "", "unknown field 'resaon': did you mean 'reason'?"),
            Problem("error", 3, 12, "message", "must be a string, found 5"),
            Problem("error", 3, 14, "", "expected a key in double quotes"),
        ],
    ),
    "nothing is missing in a file that is cut off": (
        b'{"reason": "r", "message": "m"',
        [Problem("error", 1, 31, "", "unexpected end of the document")],
    ),
}


@pytest.mark.parametrize(("data", "expected"), REMARKS.values(), ids=REMARKS)
def test_every_remark_has_its_place(data, expected):
    """Line, column, field and what to do about it."""
    assert expected == problems_in(data)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('"Success"', '"Success"'),
        ('"SUCCESS\\n"', '"SUCCESS"'),
        (f'"{"s" * 41}"', f'"{"s" * 40}..."'),
        ("true", "true"),
        ("null", "null"),
        ("-1.50", "-1.50"),
        ("9" * 5000, "9" * 40 + "..."),
        ('{"a": 1}', "an object"),
        ("[1, 2]", "a list"),
    ],
)
def test_what_was_found_in_place_of_a_right_word(value, shown):
    """Short, and nothing that a terminal would obey."""
    (problem,) = problems_in(f'{{"status": {value} }}'.encode())

    assert f"{EITHER}, found {shown}" == problem.text


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ('"resaon": "r"', ["unknown field 'resaon': did you mean 'reason'?"]),
        ('"Messages": "m"', ["unknown field 'Messages': did you mean 'message'?"]),
        ('"detail": {}', ["unknown field 'detail': did you mean 'details'?"]),
        ('"resaon": "r", "reason": "r"', []),
        ('"version": "1", "name": "n", "nodes": 3', []),
        (f'"{"reason" * 10}": 1', []),
        (", ".join(f'"x{number}": 1' for number in range(100)) + ', "resaon": 1', []),
    ],
    ids=["letters", "plural", "singular", "the right one is there", "others", "long", "very many"],
)
def test_unknown_fields_that_read_like_known_ones(fields, told):
    """They are allowed, and mostly slips."""
    found = problems_in(f'{{"status": "success", {fields}}}'.encode())

    assert told == [problem.text for problem in found]
    assert {"warning"} >= {problem.severity for problem in found}


def test_a_misspelt_status_is_named_beside_the_missing_one():
    """The one is the cause of the other."""
    assert [
        Problem("error", 1, 1, "status", "is required"),
        Problem("warning", 1, 2, "", "unknown field 'stauts': did you mean 'status'?"),
    ] == problems_in(b'{"stauts": "success"}')


def test_texts_that_will_be_cut_are_named_with_their_size():
    """An author sees that the end of a text will be missing."""
    data = json.dumps({"status": "success", "reason": "r" * 130, "message": "m" * 1024}).encode()
    assert [Problem("note", 1, 33, "reason", "will be cut from 130 to 128 bytes")] == problems_in(
        data
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            b'{"total":"x","completed":"y","failures":5,"mgs":"k"}',
            [
                Problem("error", 1, 10, "total", 'must be an integer, found "x"'),
                Problem("error", 1, 26, "completed", 'must be an integer, found "y"'),
                Problem("error", 1, 41, "failures", "must be a list, found 5"),
                Problem("warning", 1, 43, "", "unknown field 'mgs': did you mean 'msg'?"),
            ],
            id="several errors and a slip",
        ),
        pytest.param(
            b'{"failures": ["a",\n "b", 5],\n"errors": [["c"]]}',
            [
                Problem("error", 2, 7, "failures[2]", "must be a string, found 5"),
                Problem("error", 3, 12, "errors[0]", "must be a string, found a list"),
            ],
            id="entries of lists",
        ),
        pytest.param(
            b'{"total": 12, "total": 13, "Msg": "m",}',
            [
                Problem("note", 1, 24, "total", "the key 'total' is given more than once"),
                Problem("note", 1, 35, "msg", "the key 'Msg' is read as 'msg'"),
                Problem("error", 1, 39, "", "expected a key in double quotes"),
            ],
            id="keys, and what stands before the place where it is broken",
        ),
        pytest.param(
            b" " * (MAX_PROGRESS_BYTES + 1),
            [Problem("error", 1, 1, "", "larger than 65536 bytes")],
            id="too large",
        ),
        pytest.param(b'{"msg": null, "failures": [], "status": "good"}', [], id="fine"),
    ],
)
def test_every_remark_about_progress_has_its_place(data, expected):
    """As in a result file."""
    assert expected == problems_in(data, PROGRESS)
