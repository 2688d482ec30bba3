"""What the API server refuses to store and what it stores as it is: the fake and the real one."""

import json
from typing import Any

import pytest

from tests.contract.conditions import condition, conditions
from tests.contract.servers import Server

# Validation (1.5)


@pytest.mark.parametrize(
    "patch",
    [
        {"typo": 1},
        {"metadata": {"typo": "x"}},
        {"status": {"typo": 1}},
        {"status": {"conditions": [condition(typo="x")]}},
        {"status": {"conditions": [condition(observedGeneration=1)]}},
    ],
    ids=lambda patch: json.dumps(patch)[:40],
)
def test_an_unknown_field(api: Server, patch: dict[str, Any]) -> None:
    """Strict refuses and repeats the patch, Warn is the default and says so, Ignore is silent."""
    api.create_job()
    strict = api.patch(patch)
    warned = api.patch(patch, query="fieldManager=test")
    ignored = api.patch(patch, query="fieldValidation=Ignore")

    assert (422, "Invalid") == (strict.status, strict.reason)
    assert "strict decoding error: unknown field" in strict.message
    assert 200 == warned.status
    assert "unknown field" in warned.headers["Warning"]
    assert (200, None) == (ignored.status, ignored.headers.get("Warning"))


def test_a_duplicate_field(api: Server) -> None:
    """Strict refuses it."""
    api.create_job()
    body = b'{"status": {"conditions": [{"type": "A", "status": "True", "status": "False"}]}}'
    reply = api.patch(body)

    assert 422 == reply.status
    assert "strict decoding error" in reply.message


def test_a_refused_patch_is_repeated_in_the_message(api: Server) -> None:
    """All of it: a log has to cut it."""
    api.create_job()
    reply = api.patch_conditions(condition(typo="x", message="y" * 5000))

    assert "y" * 5000 in reply.message


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"\xef\xbb\xbf{}",
        b'{"status": {"active": NaN}}',
        b'{"metadata": {"annotations": {"a": "\n"}}}',
        b"{} {}",
    ],
    ids=repr,
)
def test_what_is_no_json_is_a_bad_request(api: Server, body: bytes) -> None:
    """400: cut off, empty, with a byte order mark, NaN, a raw control character, two values."""
    api.create_job()
    reply = api.patch(body)

    assert (400, "BadRequest") == (reply.status, reply.reason)


# What is not checked (1.6)


@pytest.mark.parametrize(
    "odd",
    [
        {"status": "Maybe"},
        {"status": ""},
        {"reason": "with spaces"},
        {"reason": "r" * 5000},
        {"message": "m" * 40_000},
        {"message": "\x00\x1b\x07\u202e"},
        {"type": "with spaces"},
        {"type": ""},
        {"type": "suspended"},
        {"lastTransitionTime": "2099-01-01T00:00:00Z"},
    ],
    ids=lambda odd: repr(odd)[:40],
)
def test_odd_values_are_stored_as_they_are(api: Server, odd: dict[str, Any]) -> None:
    """The server does not know what a condition should look like."""
    api.create_job()
    reply = api.patch_conditions(condition() | odd)

    assert 200 == reply.status
    assert [condition() | odd] == conditions(reply.json)


@pytest.mark.parametrize("field", ["reason", "message"])
def test_an_empty_text_is_not_shown(api: Server, field: str) -> None:
    """The field is absent afterwards."""
    api.create_job()
    after = api.patch_conditions(condition(**{field: ""})).json

    assert field not in conditions(after)[0]


@pytest.mark.parametrize(
    ("raw", "stored"),
    [(rb"\ud800", "\ufffd"), (b"\xff", "\ufffd"), (rb"\ud83d\ude00", "\U0001f600")],
    ids=["lone surrogate", "invalid UTF-8", "pair"],
)
def test_text_that_cannot_be_stored(api: Server, raw: bytes, stored: str) -> None:
    """It becomes the replacement character."""
    api.create_job()
    body = b'{"status": {"conditions": [{"type": "A", "message": "' + raw + b'"}]}}'
    after = api.patch(body).json

    assert stored == conditions(after)[0]["message"]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("2030-01-01T12:00:00Z", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00.987654Z", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00+00:00", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00+02:00", "2030-01-01T10:00:00Z"),
        (None, None),
    ],
)
def test_times_are_stored_in_utc_and_whole_seconds(
    api: Server, sent: str | None, stored: str | None
) -> None:
    """Any RFC 3339 time with an offset is fine."""
    api.create_job()
    after = api.patch_conditions(condition(lastTransitionTime=sent)).json

    assert stored == conditions(after)[0]["lastTransitionTime"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": True},
        {"reason": 5},
        {"message": ["x"]},
        {"lastProbeTime": 7},
        {"lastTransitionTime": "2030-01-01T12:00:00"},
        {"lastTransitionTime": "2030-01-01"},
        {"lastTransitionTime": "2030-01-01 12:00:00Z"},
        {"lastTransitionTime": "2030-01-01T12:00:00+0000"},
        {"lastTransitionTime": "2030-01-01T12:00:00z"},
        {"lastTransitionTime": "2030-13-01T12:00:00Z"},
        {"lastTransitionTime": ""},
        {"lastTransitionTime": "now"},
        {"type": "Complete"},
        {"type": "Failed"},
    ],
    ids=str,
)
def test_what_is_no_condition(api: Server, wrong: dict[str, Any]) -> None:
    """422 for other types of values, other times, and for who would end a Job by hand."""
    api.create_job()

    assert 422 == api.patch_conditions(condition(**wrong)).status


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("FailureTarget", "True"),
        ("SuccessCriteriaMet", "True"),
        ("Suspended", "True"),
        ("FailureTarget", "False"),
        ("SuccessCriteriaMet", "False"),
        ("Suspended", "False"),
        ("Complete", "False"),
        ("Failed", "False"),
    ],
)
def test_reserved_types_that_anybody_may_write(api: Server, kind: str, status: str) -> None:
    """200: some of them drive a Job, which is why a reporter has to refuse them itself."""
    api.create_job()

    assert 200 == api.patch_conditions(condition(kind, status=status)).status


@pytest.mark.parametrize("kind", ["FailureTarget", "SuccessCriteriaMet"])
def test_a_true_target_condition_cannot_be_turned_off(api: Server, kind: str) -> None:
    """422, changed or deleted."""
    api.create_job()
    api.patch_conditions(condition(kind))

    assert 422 == api.patch_conditions(condition(kind, status="False")).status
    assert 422 == api.patch_conditions({"type": kind, "$patch": "delete"}).status
