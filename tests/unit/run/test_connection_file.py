"""The connection file's content: written, read, refused."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.run.connection_file import ConnectionFile, UnusableFile, decode, encode
from tests.certificates import ending_at

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
AT = NOW.timestamp()
DAY = 86_400.0


PEM = ending_at(NOW + timedelta(days=1))


def fields(**changed):
    made = {
        "host_address": "h:1",
        "created_at": NOW.isoformat(),
        "ca_cert": PEM,
        "client_cert": PEM,
        "client_key": "key",
    }
    return json.dumps({key: value for key, value in (made | changed).items() if value is not None})


def read(text, *, now=AT, max_age=None):
    return decode(text.encode(), now=now, max_age=max_age)


def test_what_is_written_is_read_again():
    """With exactly the published fields, and one of ours where it is needed."""
    connection = ConnectionFile("https://h:1", AT, PEM, PEM, "key")

    assert connection == read(encode(connection).decode())
    assert {"host_address", "created_at", "ca_cert", "client_cert", "client_key"} == set(
        json.loads(encode(connection))
    )

    named = ConnectionFile("https://h:1", AT, PEM, PEM, "key", "r-status.ns.svc")

    assert named == read(encode(named).decode())


def test_how_old_it_may_be():
    """48 hours, for a run's own file as its certificates say; or as somebody says."""
    own = fields(server_name="r-status.ns.svc", ca_cert="", client_cert="", client_key="")

    assert read(own, now=AT + 30 * DAY).server_name
    for text, limit in ((fields(), DAY), (own, DAY)):
        assert read(text, now=AT + DAY - 1, max_age=limit)
        with pytest.raises(UnusableFile, match="the limit is 24h0m0s"):
            read(text, now=AT + DAY + 1, max_age=limit)


@pytest.mark.parametrize(
    ("changed", "now", "words"),
    [
        ({}, AT + 2 * DAY + 1, "is too old: created 48h0m1s ago, the limit is 48h0m0s"),
        ({"created_at": NOW.isoformat()}, AT - 301, "created in the future"),
        ({"created_at": None}, AT, "created_at is not a time"),
        ({"created_at": 5}, AT, "created_at is not a string"),
        ({"host_address": None}, AT, "host_address is missing"),
        ({"ca_cert": []}, AT, "ca_cert is not a string"),
        ({"server_name": 1}, AT, "server_name is not a string"),
        ({"client_key": None}, AT, "must be given together"),
        ({"client_cert": None}, AT, "must be given together"),
        ({"client_cert": "x"}, AT, "client_cert: not a PEM certificate"),
        ({}, AT + DAY, "has expired: its ca_cert ended at 2030-01-02T12:00:00Z"),
        ({"ca_cert": ""}, AT + DAY, "has expired: its client_cert ended at"),
    ],
)
def test_what_is_refused(changed, now, words):
    """Each with its own message."""
    with pytest.raises(UnusableFile, match=words.replace("(", r"\(")):
        read(fields(**changed), now=now)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "not a JSON object"),
        (" " * 2**20 + "{}", "larger than"),
        ("{", "JSON"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_what_is_no_such_file(text, words):
    """Broken, and how."""
    with pytest.raises(UnusableFile, match=f"is invalid: .*{words}"):
        read(text)


@pytest.mark.parametrize("shift", [-300, 0, DAY - 1])
def test_what_is_taken(shift):
    """A clock that is a little behind, and any age below the limit."""
    assert "h:1" == read(fields(), now=AT + shift).address


def test_certificates_may_be_missing():
    """Plain HTTP needs none."""
    found = read(fields(ca_cert=None, client_cert=None, client_key=None))

    assert ("", "", "") == (found.ca, found.certificate, found.key)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_connection_or_a_refusal(data):
    """Never another exception."""
    try:
        decode(data, now=AT, max_age=DAY)
    except UnusableFile:
        return
