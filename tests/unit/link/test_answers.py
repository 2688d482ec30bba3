"""How answers are read, and what is said."""

import hashlib
import json
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.link.messages import (
    Answer,
    digest_header,
    disposition,
    encode_progress,
    type_of_unreadable,
)
from reporter.run.progress import Progress
from reporter.run.progress_body import parse_progress

SHA = hashlib.sha256(b"x").hexdigest()


def answer(body: bytes = b"", **headers: str) -> Answer:
    """An answer with these headers, underscores for hyphens."""
    return Answer(200, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (digest_header(SHA), SHA),
        (f"sha-512=:AAAA:, {digest_header(SHA)}", SHA),
        ("", ""),
        ("sha-256=:%%%:", ""),
        ("sha-256=:AAA:", ""),
        ("md5=:AAAA:", ""),
    ],
)
def test_result_digest(header, expected):
    """As hex; nothing when absent or unreadable."""
    assert expected == answer(result_digest=header).digest


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("x", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("9" * 400, None),
    ],
)
def test_retry_after(header, expected):
    """Whole seconds; a date is not what aggregators send."""
    assert expected == answer(retry_after=header).retry_after


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"interval_seconds":15,"status":"running"}', 15.0),
        (b'{"interval_seconds":0.01}', None),
        (b'{"interval_seconds":true}', None),
        (b'{"interval_seconds":NaN}', None),
        (b'{"interval_seconds":"15"}', None),
        (b"[]", None),
        (b"", None),
        (b"[" * 60_000, None),
        (b"\xff", None),
    ],
)
def test_interval_of_a_heartbeat(body, expected):
    """A sensible number of seconds or nothing, whatever came."""
    assert expected == answer(body).interval


def test_features_are_words():
    """In any case and spacing."""
    found = answer(aggregator_features=" Heartbeat,outcome ,, digest").features
    assert {"heartbeat", "outcome", "digest"} == found
    assert frozenset() == answer().features


def test_line_for_people_is_one_line():
    """Of at most 200 bytes of the body."""
    assert "200 a b" == answer(b"a\n  b\n").line
    assert 204 == len(answer(b"x" * 5000).line)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.json", 'attachment; filename="a.json"'),
        ("a b;c.txt", 'attachment; filename="a b;c.txt"'),
        ('a"b\\c', 'attachment; filename="a\\"b\\\\c"'),
        ("a\r\nX: y", 'attachment; filename="aX: y"'),
        ("ä.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%A4.txt"),
    ],
)
def test_disposition(name, expected):
    """Quoted, without control characters, and spelled out where it is not ASCII."""
    assert expected == disposition(name)


@given(st.text(max_size=50))
def test_disposition_is_one_header_for_any_name(name):
    """Whatever the plugin calls its file: Latin-1, no line break, and readable again."""
    header = disposition(name)
    header.encode("latin-1")
    assert not set(header) & set("\r\n\0")
    message = Message()
    message["Content-Disposition"] = header
    assert "attachment" == message.get_content_disposition()


def test_encoded_progress_is_read_back_the_same():
    """What one side writes the other side reads."""
    update = Progress(
        msg="ä\n",
        total=9,
        completed=4,
        failures=("f", "g"),
        errors=("e",),
        appendtotals=True,
        appendcompleted=3,
        appendfailing=("x",),
    )
    assert update == parse_progress(encode_progress(update))


def test_encoded_progress_says_only_what_there_is():
    """Sonobuoy's fields, the empty ones left out."""
    encoded = json.loads(encode_progress(Progress(msg="m", total=2)))
    assert {"msg": "m", "total": 2, "completed": 0} == encoded


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.tar.gz", "application/octet-stream"),
        ("a.tgz", "application/octet-stream"),
        ("a.json", "application/json"),
        ("", "application/octet-stream"),
    ],
)
def test_w19_report_for_an_unreadable_file_is_never_typed_gzip(name, expected):
    """W19: Sonobuoy's aggregator would try to unpack the report."""
    assert expected == type_of_unreadable(name)
