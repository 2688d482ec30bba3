"""What answers of the API server are turned into."""

import json
from datetime import UTC, datetime

import pytest

from reporter.errors import (
    Conflict,
    Denied,
    Expired,
    Forbidden,
    Gone,
    InvalidRequest,
    NotFound,
    Unauthorized,
    Unavailable,
)
from reporter.kube.answers import MAX_OBJECT, decode_object, plain, refusal, retry_after

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        (" 17 ", 17.0),
        ("9" * 400, float("inf")),
        ("Tue, 01 Jan 2030 12:00:30 GMT", 30.0),
        ("Tue, 01 Jan 2030 11:00:00 GMT", 0.0),
        ("Tue, 01 Jan 2030 12:00:30", None),
        ("-1", None),
        ("1.5", None),
        ("nan", None),
        ("soon", None),
        ("٣", None),
        ("Tue, 99 Jan 99999 12:00:30 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_nothing(
    header: str | None, seconds: float | None
) -> None:
    """Both forms of the header are read; whatever else it holds is no wish."""
    assert seconds == retry_after(header, NOW)


STATUSES = [
    (401, "Unauthorized", Unauthorized),
    (403, "Forbidden", Forbidden),
    (404, "NotFound", NotFound),
    (409, "Conflict", Conflict),
    (400, "BadRequest", InvalidRequest),
    (405, "MethodNotAllowed", InvalidRequest),
    (413, "RequestEntityTooLarge", InvalidRequest),
    (415, "UnsupportedMediaType", InvalidRequest),
    (422, "Invalid", InvalidRequest),
    (408, "Timeout", Unavailable),
    (410, "Expired", Expired),
    (429, "TooManyRequests", Unavailable),
    (500, "InternalError", Unavailable),
    (503, "ServiceUnavailable", Unavailable),
    (302, "", Unavailable),
    (204, "", Unavailable),
]


@pytest.mark.parametrize(("status", "reason", "error"), STATUSES)
def test_each_status_has_its_error(status: int, reason: str, error: type[Exception]) -> None:
    """The class says who may try again; the text names request, status and the server's words."""
    body = {"kind": "Status", "reason": reason, "message": "words"}
    found = refusal("GET it", status, {}, json.dumps(body).encode(), NOW)

    assert error is type(found)
    assert f"GET it: {status} {reason}".split() == str(found).removesuffix(": words").split()


def status_422(causes: object) -> bytes:
    details = {"causes": causes}
    return json.dumps({"kind": "Status", "reason": "Invalid", "details": details}).encode()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (status_422([{"field": "metadata.uid"}]), Gone),
        (status_422([{"field": "status"}, {"field": "metadata.uid"}]), Gone),
        (status_422([{"field": "status"}]), InvalidRequest),
        (status_422([7, None, {}]), InvalidRequest),
        (status_422("metadata.uid"), InvalidRequest),
        (b'{"kind": "Status", "details": []}', InvalidRequest),
        (b"metadata.uid", InvalidRequest),
    ],
)
def test_only_a_cause_on_the_uid_means_gone(body: bytes, error: type[Exception]) -> None:
    """422 on metadata.uid is another Job of that name; any other 422 is a wrong request."""
    assert error is type(refusal("PATCH it", 422, {}, body, NOW))


@pytest.mark.parametrize("body", [b"404 page not found\n", b"{}", b'{"kind": "Job"}', b""])
def test_a_404_that_is_no_status_says_nothing_about_the_object(body: bytes) -> None:
    """A proxy's or an unknown path's 404 must not end the work as if the Job were gone."""
    assert Unavailable is type(refusal("GET it", 404, {}, body, NOW))


@pytest.mark.parametrize(
    ("details", "name"),
    [({"name": "validate", "kind": "jobs"}, "validate"), ({}, ""), (None, ""), ([], "")],
)
def test_a_404_says_what_is_missing_where_the_server_says_it(details: object, name: str) -> None:
    """An unknown path has a Status, too, and names nothing."""
    body = json.dumps({"kind": "Status", "reason": "NotFound", "details": details}).encode()
    found = refusal("GET it", 404, {}, body, NOW)

    assert isinstance(found, NotFound)
    assert name == found.name


def test_the_text_of_a_refusal_is_short_and_on_one_line() -> None:
    """A 422 repeats the whole patch, with whatever control characters it has."""
    message = "bad patch:\x1b[31m\n" + "{" * 100_000
    body = json.dumps({"kind": "Status", "reason": "Invalid", "message": message}).encode()
    text = str(refusal("PATCH it", 422, {}, body, NOW))

    assert text.startswith("PATCH it: 422 Invalid: bad patch: [31m {{{")
    assert len(text) == 300
    assert text.isprintable()


def test_a_wish_of_the_server_comes_along() -> None:
    """`retry_after` is handed on as it is; the caller caps it."""
    assert refusal("GET it", 429, {"Retry-After": "120"}, b"", NOW).retry_after == 120.0
    date = {"Retry-After": "Tue, 01 Jan 2030 12:00:30 GMT"}
    assert refusal("GET it", 429, date, b"", NOW).retry_after == 30.0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'"Job"',
        b'{"kind": "Job"}',
        b'{"kind": "Job", "metadata": []}',
        b'{"kind": "Status", "metadata": {}}',
        b'\xff{"kind": "Job", "metadata": {}}',
        b'{"kind": "Job", "metadata": {}',
        b"[" * 200_000,
        b" " * (MAX_OBJECT + 1),
    ],
    ids=lambda body: repr(body[:24]),
)
def test_garbage_is_an_outage(body: bytes) -> None:
    """A body that is not the object asked for is as good as no answer."""
    with pytest.raises(Unavailable):
        decode_object(body, "Job")


def test_an_object_is_returned_as_it_is() -> None:
    """Plain dicts, nothing added or dropped."""
    found = {"kind": "Job", "metadata": {"name": "x"}, "status": {"future": [1]}}

    assert found == decode_object(json.dumps(found).encode(), "Job")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n\tb", "a b"), ("x" * 300, "x" * 300), ("x" * 301, "x" * 299 + "…"), ("\u202eab", "ab")],
)
def test_text_is_made_plain(text: str, expected: str) -> None:
    """One line, no control or direction marks, bounded."""
    assert expected == plain(text)


WHO = 'User "system:serviceaccount:default:a" cannot'


@pytest.mark.parametrize(
    ("request_line", "message", "error"),
    [
        ("POST it", f'jobs.batch is forbidden: {WHO} create resource "jobs" in API', Forbidden),
        ("GET it", f'forbidden: {WHO} get path "/nothing"', Forbidden),
        ("GET it", "anything", Forbidden),
        ("POST it", 'pods "x" is forbidden: exceeded quota: none', Denied),
        ("POST it", 'jobs.batch "x" is forbidden: violates PodSecurity "restricted"', Denied),
        ("POST it", 'admission webhook "w" denied the request: no', Denied),
        ("POST it", 'roles "x" is forbidden: user "y" is attempting to grant RBAC', Denied),
    ],
)
def test_a_right_that_is_missing_is_not_a_policy(
    request_line: str, message: str, error: type[Exception]
) -> None:
    """The right may come, the policy stays; a proxy's 403 says neither."""
    body = json.dumps({"kind": "Status", "reason": "Forbidden", "message": message}).encode()
    found = refusal(request_line, 403, {}, body, NOW)

    assert (error, message) == (type(found), found.said)
    assert Forbidden is type(refusal(request_line, 403, {}, b"<html>no</html>", NOW))
