"""An adapter's result: every edge input of the contract, one by one."""

import json

import pytest

from reporter.errors import InvalidPayload
from reporter.verdict.adapter_files import MAX_RESULT_BYTES, decode_result
from reporter.verdict.facts import ResultPayload


def result(**members):
    """A result as an adapter would write it."""
    return json.dumps({"status": "success", **members}).encode()


def decoded(data):
    """Status, reason and message of a valid result."""
    payload = decode_result(data)
    return payload.success, payload.reason, payload.message


def cause(data):
    """Why a result is invalid."""
    with pytest.raises(InvalidPayload) as caught:
        decode_result(data)
    return str(caught.value)


def test_a_successful_result_is_decoded():
    """All three members, nothing to remark."""
    data = b'{"status": "success", "reason": "AllChecksPassed", "message": "12 of 12"}'
    assert ResultPayload(True, "AllChecksPassed", "12 of 12") == decode_result(data)


def test_a_failure_with_details_is_decoded():
    """Details and unknown members are ignored."""
    data = b'{"status":"failure","reason":"Quota","message":"m","details":{"a":[1]},"x":{"y":2}}\n'
    assert ResultPayload(False, "Quota", "m") == decode_result(data)


@pytest.mark.parametrize(
    "members",
    [{}, {"reason": None, "message": None}, {"reason": "", "message": " \n "}],
    ids=["missing", "null", "empty"],
)
def test_missing_null_and_empty_texts_become_the_defaults(members):
    """Reason and message are never empty on the Job."""
    expected = (True, "NoReasonProvided", "No message provided")
    assert expected == decoded(result(**members))


def test_over_long_texts_are_cut_to_their_bytes():
    """128 bytes of reason, 1024 of message, never half a character."""
    data = result(reason="ä" * 100, message="a" + "😀" * 300)
    assert (True, "ä" * 64, "a" + "😀" * 255) == decoded(data)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(rb"a\nb\tc\r\nd", "a b c d", id="escaped breaks and tabs"),
        pytest.param(rb"a\u0000b\u001bc", "abc", id="escaped controls"),
        pytest.param(rb"\ud83d\ude00", "😀", id="surrogate pair"),
        pytest.param(rb"a\ud800b", "a\ufffdb", id="lone high surrogate"),
        pytest.param(rb"\ud83d\ud83d\ude00", "\ufffd😀", id="lone high surrogate before a pair"),
        pytest.param(rb"\ude00\ud83d", "\ufffd\ufffd", id="pair in the wrong order"),
        pytest.param(b"a\xffb", "a\ufffdb", id="invalid byte"),
        pytest.param(b"a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb", id="surrogate encoded as UTF-8"),
        pytest.param(b"\xc3\xa4\xe2\x82", "ä\ufffd", id="UTF-8 sequence cut off"),
        pytest.param(rb"\"\\\/\u00e4", '"\\/ä', id="simple escapes"),
        pytest.param(b"a\x7fb", "ab", id="raw DEL"),
        pytest.param(b"  a  ", "a", id="white space around"),
    ],
)
def test_texts_are_decoded_and_cleaned(raw, expected):
    """Broken encodings are shown as U+FFFD, never refused."""
    assert (True, "R", expected) == decoded(
        b'{"status":"success","reason":"R","message":"' + raw + b'"}'
    )


@pytest.mark.parametrize("position", [*range(4090, 4100), *range(16380, 16390), 17000])
@pytest.mark.parametrize("raw", [b"\xf0\x9f\x98\x80", rb"\ud83d\ude00", b"\xff", rb"\r\n"])
def test_long_text_does_not_depend_on_where_it_is_split(raw, position):
    """A character across two pieces of a long string is still one character."""
    text = b"\\u0001" + b"\x7f" * position + raw * 40 + b"x"
    whole = raw.decode(errors="replace") if b"\\" not in raw else json.loads(b'"' + raw + b'"')
    expected = (whole.replace("\r\n", " ") * 40 + "x").lstrip()
    assert expected == decode_result(b'{"status":"failure","message":"' + text + b'"}').message


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", "line 1, column 1: the document is empty", id="empty file"),
        pytest.param(b" \n ", "line 2, column 2: the document is empty", id="only white space"),
        pytest.param(
            b'\xef\xbb\xbf{"status":"success"}',
            "line 1, column 1: a byte order mark (BOM) is not allowed",
            id="byte order mark",
        ),
        *(
            pytest.param(
                '{"status":"success"}'.encode(encoding),
                "line 1, column 1: the encoding must be UTF-8, not UTF-16 or UTF-32",
                id=encoding,
            )
            for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
        ),
        pytest.param(
            b"\xfe\xff\x00{",
            "line 1, column 1: the encoding must be UTF-8, not UTF-16 or UTF-32",
            id="UTF-16 with the other mark",
        ),
        pytest.param(
            bytes(64), "line 1, column 1: the top level must be an object", id="only NUL bytes"
        ),
        pytest.param(
            result() + b"x", "line 1, column 22: only white space may follow the object", id="more"
        ),
        *(
            pytest.param(
                data, "line 1, column 1: the top level must be an object", id=f"top level {data!r}"
            )
            for data in (b"[]", b'"success"', b"5", b"null", b"true", b"x")
        ),
        *(
            pytest.param(
                b'{"details":' + data + b"}",
                "line 1, column 12: NaN and Infinity are not allowed",
                id=data.decode(),
            )
            for data in (b"NaN", b"Infinity", b"-Infinity")
        ),
        pytest.param(b'{"reason": "R"}', "status: is required", id="no status"),
        pytest.param(
            b'{"details":{"status":"success"}}', "status: is required", id="status in details"
        ),
        *(
            pytest.param(
                b'{"status":' + status + b"}",
                "status: must be either 'success' or 'failure'",
                id=f"status {status.decode()}",
            )
            for status in (b'"Success"', b'" success"', b'""', b"null", b"true", b"1", b"[]", b"{}")
        ),
        *(
            pytest.param(
                b'{"status":"success","reason":' + reason + b"}",
                "reason: must be a string",
                id=f"reason {reason.decode()}",
            )
            for reason in (b"5", b"1.5e3", b"false", b"[1]", b'{"a":1}', b"1" * 5000)
        ),
        pytest.param(
            b'{"status":"failure","message":["x"]}', "message: must be a string", id="message list"
        ),
        pytest.param(
            b'{"message":1,"reason":2,"status":3}',
            "status: must be either 'success' or 'failure'; "
            "reason: must be a string; message: must be a string",
            id="everything wrong at once",
        ),
        pytest.param(b" " * (MAX_RESULT_BYTES + 1), "larger than 1048576 bytes", id="over the cap"),
    ],
)
def test_invalid_results_are_refused_with_their_own_cause(data, expected):
    """The cause names place and rule."""
    assert expected == cause(data)


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        (b'{"Status":"success"}', ("the key 'Status' is read as 'status'",)),
        (b'{"STATUS":"failure","status":"success"}', (
            "the key 'STATUS' is ignored, because 'status' is present",)),
        (b'{"status":"failure","status":"success"}', (
            "the key 'status' is given more than once",)),
        (b'{"Status":"failure","STATUS":"success"}', (
            "the key 'STATUS' is read as 'status'", "the key 'status' is given more than once")),
        (b'{"\\u0073tatus":"success"}', ()),
        (b'{"status":"success","\\uff53tatus":"failure","st\xc3\xa4tus":1}', ()),
    ],
    ids=["other case", "exact one wins", "duplicate", "two other cases", "escaped", "foreign"],
)  # fmt: skip
def test_keys_in_another_case_and_duplicates_are_accepted_and_noted(data, notes):
    """The exact key wins over another letter case, the last one over the others."""
    assert (True, notes) == (decode_result(data).success, decode_result(data).notes)


@pytest.mark.parametrize(
    "details",
    [
        pytest.param(b"1" * 5000, id="integer of 5,000 digits"),
        pytest.param(b"1e999999", id="number beyond a float"),
        pytest.param(b"[" + b"0," * 400_000 + b"0]", id="array of 400,000 elements"),
        pytest.param(b"{" + b'"":0,' * 200_000 + b'"":0}', id="object of 200,000 members"),
        pytest.param(b'"' + b"\\ud800" * 100_000 + b'"', id="100,000 lone surrogates"),
        pytest.param(b'{"status":"failure"}', id="another status inside"),
        pytest.param(b'[ { "a" : [ ] , "b" : { } } , -0.5E+3 , true , false , null ]', id="spaced"),
    ],
)
def test_anything_may_stand_in_the_details(details):
    """Nobody builds the details, so nothing about them matters but the grammar."""
    assert decode_result(b'{"status":"success","details":' + details + b"}").success


def test_the_cause_never_repeats_the_content():
    """A secret in a refused file stays where it is."""
    secrets = [
        b'{"status":"hunter2"}',
        b'{"status":"success","reason":{"hunter2":"hunter2"}}',
        b'{"status":"success","message":["hunter2"]}',
        b'{"hunter2":hunter2}',
        b"hunter2",
        b'{"hunter2',
        b'{"hunter2" "hunter2"}',
    ]
    assert [] == [text for text in map(cause, secrets) if "hunter2" in text]


def details(text, encoding="utf-8"):
    """What becomes of these details."""
    data = b'{"details": ' + text.encode(encoding) + b' , "status": "success"}'
    return decode_result(data, details=True).details


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ }", "{}"),
        ("17", "17"),
        ("null", None),
        ('" a  b "', '" a  b "'),
        ('{ "a" : [ 1 ,\n\t2 ],\r "b c" : " \\" : , " }', '{"a":[1,2],"b c":" \\" : , "}'),
        ('["\\u0000", "ü", "\\ud800"]', '["\\u0000","ü","\\ud800"]'),
        ('["\x7f\x9b\u202e\u2028"]', '["\\u007f\\u009b\\u202e\\u2028"]'),
        ('"' + "x" * 16382 + '"', '"' + "x" * 16382 + '"'),
        ('"' + "x" * 16383 + '"', '{"truncated":true,"bytes":16385}'),
        ('["\x7f", "' + "x" * 16375 + '"]', '{"truncated":true,"bytes":16383}'),
        ("[" + " 1 ," * 10000 + "1]", '{"truncated":true,"bytes":20003}'),
    ],
)
def test_details_are_the_files_own_bytes_without_white_space(text, expected):
    """White space in strings stays; what a terminal could take for an order is escaped."""
    assert expected == details(text)


def test_details_that_are_no_utf8_are_readable():
    """As in reason and message."""
    data = b'{"status": "success", "details": ["\xff"]}'

    assert '["\ufffd"]' == decode_result(data, details=True).details


def test_details_are_left_alone_unless_they_are_wanted():
    """Nobody pays for what nobody reads; a result without them has none."""
    assert decode_result(b'{"status": "success", "details": [1]}').details is None
    assert decode_result(b'{"status": "success"}', details=True).details is None
