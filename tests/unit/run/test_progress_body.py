"""Reading the body of a progress request."""

import json

import pytest

from reporter.core.run.progress import Progress, parse_progress
from reporter.errors import InvalidPayload


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b'{"msg":"m","total":5,"completed":1}', Progress("m", 5, 1), id="A20 plain"),
        pytest.param(b'{"name":"zzz","node":"n9","msg":"m"}', Progress("m"), id="A24 whose it is"),
        pytest.param(
            b'{"timestamp":"0001-01-01T00:00:00Z","msg":"m"}', Progress("m"), id="Go's zero time"
        ),
        pytest.param(
            b'{"timestamp":"2026-01-01T00:00:00.123456789+02:00"}', Progress(), id="nanoseconds"
        ),
        pytest.param(b"null", Progress(), id="null"),
        pytest.param(b"{}", Progress(), id="empty object"),
        pytest.param(b'{"msg":null,"total":null,"failures":null}', Progress(), id="null fields"),
        pytest.param(
            b'{"MSG":"m","Total":5,"apPendTotals":true}',
            Progress("m", 5, 0, (), (), True),
            id="other letter case",
        ),
        pytest.param(b'{"colour":{"a":[1.5]},"msg":"m"}', Progress("m"), id="unknown field"),
        pytest.param(b'{"msg":"m"} and more', Progress("m"), id="bytes after the object"),
        pytest.param(b' \t\r\n{"msg":"m"}', Progress("m"), id="white space before"),
        pytest.param(
            b'{"failures":["a",null],"errors":["e"]}',
            Progress(failures=("a", ""), errors=("e",)),
            id="null in a list",
        ),
        pytest.param(
            b'{"appendtotals":true,"appendcompleted":5,"appendfailing":["a"]}',
            Progress(appendtotals=True, appendcompleted=5, appendfailing=("a",)),
            id="appending",
        ),
        pytest.param(
            b'{"total":9223372036854775807,"completed":-9223372036854775808}',
            Progress(total=2**63 - 1, completed=-(2**63)),
            id="ends of int64",
        ),
        pytest.param(b'{"msg":"\xff"}', Progress("\ufffd"), id="not UTF-8 inside a string"),
        pytest.param(b'{"failures_total":9}', Progress(), id="a count of its own"),
        pytest.param(
            b'{"failures":["' + b"[{" * 40 + b'"]}',
            Progress(failures=("[{" * 40,)),
            id="brackets in a name are no nesting",
        ),
        pytest.param(
            b'{"failures":["' + rb"\"[{\\" * 40 + b'"]}',
            Progress(failures=('"[{\\' * 40,)),
            id="nor behind escaped quotes",
        ),
        pytest.param(
            b'{"msg":"m"}' + b"[" * 5_000,
            Progress("m"),
            id="nor brackets after the object",
        ),
        pytest.param(
            b'{"x":' + b"[" * 31 + b"]" * 31 + b',"y":[],"msg":"m"}', Progress("m"), id="32 deep"
        ),
    ],
)
def test_a_body_that_is_accepted(body, expected):
    """Sonobuoy's decoder takes each of these."""
    assert expected == parse_progress(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", "empty body", id="A23 empty"),
        pytest.param(b" \n", "not JSON", id="A23 blank"),
        pytest.param(b"[]", "not a JSON object", id="A23 list"),
        pytest.param(b'"x"', "not a JSON object", id="A23 string"),
        pytest.param(b"{", "not JSON", id="A23 cut"),
        pytest.param(b'{"total":NaN}', "not JSON", id="A23 NaN is not JSON"),
        pytest.param(b"\xef\xbb\xbf{}", "not JSON", id="A23 byte order mark"),
        pytest.param(b'{"total":"9"}', "total: not a 64-bit integer", id="A23 digits as a string"),
        pytest.param(b'{"total":9.5}', "total: not a 64-bit integer", id="A23 a fraction"),
        pytest.param(b'{"total":9.0}', "total: not a 64-bit integer", id="A23 9.0"),
        pytest.param(b'{"completed":true}', "completed: not a 64-bit integer", id="A23 true"),
        pytest.param(
            b'{"total":9223372036854775808}', "total: not a 64-bit integer", id="A23 outside int64"
        ),
        pytest.param(b'{"total":' + b"9" * 5_000 + b"}", "not JSON", id="A23 5,000 digits"),
        pytest.param(b'{"appendcompleted":-1}', "appendcompleted: negative", id="A50 negative"),
        pytest.param(b'{"msg":7}', "msg: not a string", id="A23 message"),
        pytest.param(b'{"name":7}', "name: not a string", id="A23 name"),
        pytest.param(b'{"appendtotals":1}', "appendtotals: not true or false", id="A23 truth"),
        pytest.param(b'{"failures":"a"}', "failures: not a list of strings", id="A23 no list"),
        pytest.param(b'{"errors":[1]}', "errors: not a list of strings", id="A23 list of numbers"),
        pytest.param(b"[" * 5_000, "nested deeper than 32", id="A23 5,000 brackets"),
        pytest.param(b'{"x":[' + b"[]," * 40, "not JSON", id="A23 cut among brackets"),
        pytest.param(b"}]" + b"[" * 50, "not JSON", id="A23 brackets the wrong way round"),
        pytest.param(
            b'{"x":' + b"[" * 32 + b"]" * 32 + b"}", "nested deeper than 32", id="A23 33 deep"
        ),
        pytest.param(
            b'{"x":' * 33 + b"1" + b"}" * 33, "nested deeper than 32", id="A23 33 objects deep"
        ),
        *(
            pytest.param(
                json.dumps({"timestamp": stamp}).encode(),
                "timestamp: not an RFC 3339 time",
                id=f"A23 time {stamp!r}",
            )
            for stamp in (
                "",
                "yesterday",
                "2026-01-01",
                "2026-01-01T00:00:00",
                "2026-01-01 00:00:00Z",
                "2026-13-01T00:00:00Z",
                "2026-01-01T25:00:00Z",
                "20260101T000000Z",
            )
        ),
        pytest.param(b'{"timestamp":7}', "timestamp: not a string", id="A23 time as a number"),
    ],
)
def test_a_body_that_is_refused(body, reason):
    """The reason names the field and repeats nothing of the body."""
    with pytest.raises(InvalidPayload) as caught:
        parse_progress(body)
    assert reason == str(caught.value)
