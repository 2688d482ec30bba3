"""Where the tarball goes, and what becomes of its upload."""

import pytest

from reporter.run.tar_upload import (
    LONGEST_URL,
    PutOutcome,
    error_code,
    expires_too_soon,
    put_outcome,
    read_destination,
)

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "shown"),
    [
        ("https://s3.example.com/b/k?X=1", "s3.example.com", 443, "/b/k?X=1", "s3.example.com"),
        ("HTTPS://s3.example.com:9000/", "s3.example.com", 9000, "/", "s3.example.com:9000"),
        ("https://[::1]:7070/b/k", "::1", 7070, "/b/k", "[::1]:7070"),
        ("https://[fd00::1]", "fd00::1", 443, "/", "[fd00::1]"),
        ("https://host?a=%2F&b", "host", 443, "/?a=%2F&b", "host"),
        ("https://host/k?", "host", 443, "/k?", "host"),
    ],
)
def test_where_it_leads(url, host, port, target, shown):
    """The target goes over the wire as it is written: a signature covers each byte."""
    found = read_destination(url)

    assert (host, port, target, shown) == (found.host, found.port, found.target, found.shown)
    assert "X=1" not in repr(found)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "is empty"),
        ("https://host/" + "x" * LONGEST_URL, "longer than 16384 characters"),
        ("https://host/sécret", "in ASCII"),
        ("https://host/two\nlines", "one line"),
        ("https://host/a secret", "without spaces"),
        ("http://host/secret", "does not begin with https://"),
        ("s3://bucket/secret", "does not begin with https://"),
        ("https://user:secret@host/", "is not https://HOST"),
        ("https:///secret", "is not https://HOST"),
        ("https://host/secret#part", "is not https://HOST"),
        ("https://host:0/secret", "is not https://HOST"),
        ("https://host:65536/secret", "is not https://HOST"),
        ("https://a..b/secret", "does not name a valid host"),
        (f"https://{'x' * 64}/secret", "does not name a valid host"),
    ],
)
def test_what_is_no_such_url(url, problem):
    """The words have nothing of it."""
    with pytest.raises(ValueError, match=problem) as raised:
        read_destination(url)

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("X-Amz-Date=20260101T120000Z&X-Amz-Expires=3600", 3600),
        ("x-amz-expires=60&x-amz-date=20260101T120000Z", 60),
        ("X-Goog-Date=20260101T120000Z&X-Goog-Expires=900", 900),
        ("AWSAccessKeyId=x&Expires=1767268810&Signature=y", 10),
        ("awsaccesskeyid=x&expires=1767268810", 10),
        ("GoogleAccessId=x&Expires=1767268810", 10),
        ("Expires=1767268810&Signature=y&Key-Pair-Id=x", 10),
        ("expires=3600&token=x", None),
        ("Expires=1767268810", None),
        ("sv=2024-11-04&sr=b&se=2026-01-01T13%3A00%3A00Z&sig=x", 3600),
        ("se=2026-01-02", 43_200),
        ("Expires=1767268830&Signature=y&X-Amz-Date=20260101T120000Z&X-Amz-Expires=20", 20),
        ("", None),
        ("X-Amz-Date=yesterday&X-Amz-Expires=60", None),
        ("X-Amz-Date=20260101T120000Z&X-Amz-Expires=soon", None),
        ("X-Amz-Date=20260101T120000Z", None),
        ("Expires=never&se=never", None),
    ],
)
def test_until_when_it_is_valid(query, seconds):
    """Each store has parameters of its own; what nobody can read says nothing."""
    end = read_destination(f"https://host/k?{query}").expires_at

    assert (None if seconds is None else NOON + seconds) == end


def test_a_url_that_is_valid_long_enough():
    """Also one that does not say how long."""
    until = read_destination("https://h/?Expires=1767268810&Signature=x")

    assert "" == expires_too_soon(until, NOON, NOON + 10)
    assert "" == expires_too_soon(read_destination("https://h/"), NOON, NOON + 1e9)


def test_a_url_that_ends_before_the_run_may():
    """Both times are said."""
    until = read_destination("https://h/?Expires=1767268810&Signature=x")

    assert (
        "the upload URL expires at 2026-01-01T12:00:10Z, but the run may last until "
        "2026-01-01T18:00:00Z, if every plugin uses its full timeout"
    ) == expires_too_soon(until, NOON, NOON + 6 * 3600)
    assert "the upload URL expired at 2026-01-01T12:00:10Z" == expires_too_soon(
        until, NOON + 10, NOON + 20
    )


def test_times_that_no_calendar_has():
    """They are no crash."""
    far = read_destination("https://h/?X-Amz-Date=20260101T120000Z&X-Amz-Expires=999999999999999")

    assert "" == expires_too_soon(far, NOON, NOON + 1)
    assert "until 9999-12-31T23:59:59Z" in expires_too_soon(far, NOON, 1e300)
    assert read_destination("https://h/?se=0001-01-01T00:00:00%2B23:59").expires_at is not None


def test_azure_wants_a_header_of_its_own():
    """Its signature is known by its parameters."""
    assert read_destination("https://h/c/b?sv=1&sr=b&sig=x&se=2030-01-01").azure
    assert not read_destination("https://h/c/b?X-Amz-Signature=x").azure


@pytest.mark.parametrize(
    ("outcome", "statuses"),
    [
        (PutOutcome.DONE, (200, 201, 204)),
        (PutOutcome.AGAIN, (408, 409, 425, 429, 500, 502, 503, 504, 507, 599)),
        (PutOutcome.NEVER, (301, 302, 307, 308, 400, 401, 403, 404, 405, 411, 413, 501, 505)),
    ],
)
def test_what_an_answer_means(outcome, statuses):
    """What another try cannot change is final, and a redirect is not followed."""
    assert dict.fromkeys(statuses, outcome) == {status: put_outcome(status) for status in statuses}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<Error><Code>AccessDenied</Code><SignatureProvided>s</...", "AccessDenied"),
        (b"<Code>Signature</Code>", ""),
        (b"<Code>123abc</Code>", ""),
        (b"Request has expired", ""),
        (b"", ""),
    ],
)
def test_the_code_in_an_answer(body, code):
    """Nothing that could be a part of the URL."""
    assert code == error_code(body, "/b/k?X-Amz-Signature=1")
