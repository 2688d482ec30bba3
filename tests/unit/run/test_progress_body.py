"""Reading the body of a progress request."""

import json
import time
import tracemalloc
from contextlib import suppress

import pytest

from reporter.errors import InvalidPayload
from reporter.run.progress import KEPT, Progress
from reporter.run.progress_body import AT_ONCE, parse_progress
from tests.tables import table

LARGE = 2**16


def filled(start: str, unit: str, end: str, size: int = LARGE) -> bytes:
    """A body full of the same thing."""
    return (start + unit * ((size - len(start) - len(end)) // len(unit)) + end).encode()


@table(
    ("body", "expected"),
    {
        "A20 plain": (b'{"msg":"m","total":5,"completed":1}', Progress("m", 5, 1)),
        "A24 whose it is": (b'{"name":"zzz","node":"n9","msg":"m"}', Progress("m")),
        "Go's zero time": (b'{"timestamp":"0001-01-01T00:00:00Z","msg":"m"}', Progress("m")),
        "nanoseconds": (b'{"timestamp":"2026-01-01T00:00:00.123456789+02:00"}', Progress()),
        "null": (b"null", Progress()),
        "empty object": (b"{}", Progress()),
        "null fields": (b'{"msg":null,"total":null,"failures":null}', Progress()),
        "other letter case": (
            b'{"MSG":"m","Total":5,"apPendTotals":true}',
            Progress("m", 5, 0, (), (), True),
        ),
        "unknown field": (b'{"colour":{"a":[1.5]},"msg":"m"}', Progress("m")),
        "bytes after the object": (b'{"msg":"m"} and more', Progress("m")),
        "white space before": (b' \t\r\n{"msg":"m"}', Progress("m")),
        "null in a list": (
            b'{"failures":["a",null],"errors":["e"]}',
            Progress(failures=("a", ""), errors=("e",)),
        ),
        "appending": (
            b'{"appendtotals":true,"appendcompleted":5,"appendfailing":["a"]}',
            Progress(appendtotals=True, appendcompleted=5, appendfailing=("a",)),
        ),
        "ends of int64": (
            b'{"total":9223372036854775807,"completed":-9223372036854775808}',
            Progress(total=2**63 - 1, completed=-(2**63)),
        ),
        "not UTF-8 inside a string": (b'{"msg":"\xff"}', Progress("\ufffd")),
        "a count of its own": (b'{"failures_total":9}', Progress()),
        "brackets in a name are no nesting": (
            b'{"failures":["' + b"[{" * 40 + b'"]}',
            Progress(failures=("[{" * 40,)),
        ),
        "nor behind escaped quotes": (
            b'{"failures":["' + rb"\"[{\\" * 40 + b'"]}',
            Progress(failures=('"[{\\' * 40,)),
        ),
        "nor brackets after the object": (b'{"msg":"m"}' + b"[" * 5_000, Progress("m")),
        "900 deep": (b'{"x":' + b"[" * 900 + b"]" * 900 + b',"y":[],"msg":"m"}', Progress("m")),
    },
)
def test_a_body_that_is_accepted(body, expected):
    """Sonobuoy's decoder takes each of these."""
    assert expected == parse_progress(body)


@table(
    ("body", "reason"),
    {
        "A23 empty": (b"", "empty body"),
        "A23 blank": (b" \n", "not a JSON object"),
        "A23 list": (b"[]", "not a JSON object"),
        "A23 string": (b'"x"', "not a JSON object"),
        "A23 cut": (b"{", "not JSON"),
        "A23 NaN is not JSON": (b'{"total":NaN}', "not JSON"),
        "A23 byte order mark": (b"\xef\xbb\xbf{}", "not a JSON object"),
        "A23 digits as a string": (b'{"total":"9"}', "total: not a 64-bit integer"),
        "A23 a fraction": (b'{"total":9.5}', "total: not a 64-bit integer"),
        "A23 9.0": (b'{"total":9.0}', "total: not a 64-bit integer"),
        "A23 true": (b'{"completed":true}', "completed: not a 64-bit integer"),
        "A23 outside int64": (b'{"total":9223372036854775808}', "total: not a 64-bit integer"),
        "A23 5,000 digits": (b'{"total":' + b"9" * 5_000 + b"}", "total: not a 64-bit integer"),
        "A50 negative": (b'{"appendcompleted":-1}', "appendcompleted: negative"),
        "A23 message": (b'{"msg":7}', "msg: not a string"),
        "A23 name": (b'{"name":7}', "name: not a string"),
        "A23 truth": (b'{"appendtotals":1}', "appendtotals: not true or false"),
        "A23 no list": (b'{"failures":"a"}', "failures: not a list of strings"),
        "A23 list of numbers": (b'{"errors":[1]}', "errors: not a list of strings"),
        "A23 5,000 brackets": (b'{"x":' + b"[" * 5_000, "not JSON"),
        "A23 cut among brackets": (b'{"x":[' + b"[]," * 40, "not JSON"),
        "A23 brackets the wrong way round": (b"}]" + b"[" * 50, "not a JSON object"),
        **{
            f"A23 time {stamp!r}": (
                json.dumps({"timestamp": stamp}).encode(),
                "timestamp: not an RFC 3339 time",
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
        },
        "A23 time as a number": (b'{"timestamp":7}', "timestamp: not a string"),
    },
)
def test_a_body_that_is_refused(body, reason):
    """The reason names the field and repeats nothing of the body."""
    with pytest.raises(InvalidPayload) as caught:
        parse_progress(body)
    assert reason == str(caught.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"failures":[],"errors":[ ]}', Progress()),
        (b'{"failures":[null]}', Progress(failures=("",))),
        (b'{"failures":["a",null,"b"]}', Progress(failures=("a", "", "b"))),
        (b'{"errors":["' + b"\\n" * 40 + b'","b"]}', Progress(errors=("\n" * 40, "b"))),
        (b'{"' + b"x" * 200 + b'":1,"msg":"m"}', Progress("m")),
        (b'{"ms\\u0067":"m"}', Progress("m")),
        (b'{"x":{"a":[1,{"b":["' + b"\\t" * 40 + b'"]}],"c":{}},"msg":"m"}', Progress("m")),
        (b'{"msg":"' + b"\\u00e9" * 40 + b'"}', Progress("\xe9" * 40)),
        (b'{"errors":["a"],"errors":null}', Progress()),
    ],
)
def test_a_body_that_both_read_alike(body, expected):
    """Whether it is large or small."""
    assert expected == parse_progress(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"failures":["a",]}',
        b'{"failures":["a" "b"]}',
        b'{"failures":["a",1,{"x":2}]}',
        b'{"failures":["a",1',
        b'{"total":{}}',
        b'{"total":{"a":1}}',
        b'{"msg":"a',
        b'{"msg":"a\nb"}',
        b'{"msg" 1}',
        b'{"msg":"m",}',
        b'{"x":[1,]}',
        b'{"x":[1 2]}',
        b'{"x":{"a":1,}}',
        b'{"x":{"a"}}',
        b"{1:2}",
        b'{"x":tru}',
    ],
)
def test_what_is_no_json_or_of_another_type(body):
    """Wherever it stands in the body."""
    with pytest.raises(InvalidPayload):
        parse_progress(body)


def test_no_more_is_read_than_is_kept():
    """Everything is counted."""
    names = [f"test {n}" for n in range(10_000)]
    body = json.dumps({"failures": names, "errors": ["x" * 5_000], "appendfailing": names})
    read = parse_progress(body.encode())
    assert (tuple(names[:KEPT]), 10_000) == (read.failures, read.failures_total)
    assert (tuple(names[:KEPT]), 10_000) == (read.appendfailing, read.appendfailing_total)
    assert ("x" * 1_024,) == read.errors


@pytest.mark.parametrize(
    "body",
    [
        filled('{"x":[', "[],", "[]]}"),
        filled('{"x":[[[[1', "]],[[1", "]]]]}"),
        filled('{"x":[', '{"":{}},', "1]}"),
        filled('{"a":1', ',"":1', "}"),
        filled('{"a":1', ',"msg":"a"', "}"),
        filled('{"failures":["a"', ',""', "]}"),
        filled('{"failures":["a"', ',"' + "\\n" * 40 + '"', "]}"),
        filled('{"msg":"', "\\n", '"}'),
        filled('{"total":', "1", "}"),
        b'{"msg":"' + b"\xff" * (LARGE - 10) + b'"}',
        b'{"a":' * (LARGE // 5),
        b'{"x":["' + b',""' * (LARGE // 4),
    ],
)
def test_a_hostile_body_takes_little_memory_and_time_in_proportion(body):
    """What is kept and little more; and 0.05 s: ten times that ends the test."""
    began = time.thread_time()
    with suppress(InvalidPayload):
        parse_progress(body)
    assert 0.5 > time.thread_time() - began
    tracemalloc.start()
    try:
        with suppress(InvalidPayload):
            parse_progress(body)
        assert 6 * LARGE > tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("unit", ["[],", '{"":{}},', '"a":{},', "[[1],[1]],", '"",'])
def test_the_longest_body_that_is_read_at_once(unit):
    """2.5 ms at most, for an event loop is held by it; ten times that ends the test."""
    body = filled('{"failures":[', unit, "", AT_ONCE)
    assert any(seconds_of(body) < 0.025 for _ in range(20))


def seconds_of(body: bytes) -> float:
    """CPU seconds of reading one that is cut off, as what is sent with bad intent may be."""
    began = time.thread_time()
    with pytest.raises(InvalidPayload):
        parse_progress(body)
    return time.thread_time() - began
