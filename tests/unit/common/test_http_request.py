"""What the relay makes of the bytes of a plugin's client."""

import pytest

from reporter.common.http_request import LONGEST_HEAD, Incoming, Response
from reporter.link.relay import LONGEST_BODY, at_head

BODY = b'{"msg":"m"}'
CHUNKED = b"POST /progress HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def post(body: bytes = BODY, *headers: str, line: str = "POST /progress HTTP/1.1") -> bytes:
    head = "\r\n".join([line, "Host: localhost:8099", *headers])
    return head.encode() + b"\r\n\r\n" + body


def length(body: bytes = BODY) -> str:
    return f"Content-Length: {len(body)}"


def heard(data: bytes, step: int = 1 << 20) -> Incoming:
    """Feed it in pieces of so many bytes."""
    incoming = Incoming(at_head, LONGEST_BODY)
    for at in range(0, len(data), step):
        incoming.feed(data[at : at + step])
    return incoming


def status(data: bytes) -> int:
    response = heard(data).response
    return response.status if response else 0


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        post(BODY, length()),
        post(BODY, length(), line="PUT /progress HTTP/1.1"),
        post(BODY, length(), line="POST /progress HTTP/1.0"),
        post(BODY, length(), line="POST /progress?x=y HTTP/1.1"),
        post(BODY, length().lower(), "content-type: text/plain"),
        post(BODY + b"more than was said", length()),
        CHUNKED + b"4\r\n" + BODY[:4] + b"\r\n7\r\n" + BODY[4:] + b"\r\n0\r\n\r\n",
        CHUNKED + b"B;name=value\r\n" + BODY + b"\r\n000\r\nTrailer: x\r\n\r\n",
    ],
)
def test_the_body_byte_by_byte(data: bytes, step: int) -> None:
    """W13: however it is cut up on the way."""
    assert BODY == heard(data, step).body


@pytest.mark.parametrize(
    "data", [post(b""), post(b"", "Content-Length: 0"), CHUNKED + b"0\r\n\r\n"]
)
def test_an_empty_body_is_forwarded_too(data: bytes) -> None:
    """What is wrong with it is the aggregator's to say."""
    assert b"" == heard(data).body


def test_bytes_are_not_text() -> None:
    """W13: byte-exact, whatever they are."""
    body = bytes(range(256))

    assert body == heard(post(body, length(body))).body


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("POST /progress/ HTTP/1.1", 404),
        ("POST / HTTP/1.1", 404),
        ("POST /other HTTP/1.1", 404),
        ("POST /Progress HTTP/1.1", 404),
        ("GET /other HTTP/1.1", 404),
        ("GET /progress HTTP/1.1", 405),
        ("DELETE /progress HTTP/1.1", 405),
        ("post /progress HTTP/1.1", 405),
        ("POST /progress HTTP/2.0", 400),
        ("POST /progress", 400),
        ("POST  /progress HTTP/1.1", 400),
        ("", 400),
        ("\x16\x03\x01", 400),
        ("\0" * 100, 400),
        ("POST /" + "a" * 9000, 431),
    ],
)
def test_other_requests(line: str, expected: int) -> None:
    """W14: refused before the body is read."""
    assert expected == status(post(b"", "Content-Length: 5", line=line))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (["Content-Length: -1"], 400),
        (["Content-Length: 1_0"], 400),
        (["Content-Length: \u0663"], 400),
        (["Content-Length: 1", "Content-Length: 2"], 400),
        (["Content-Length: 1", "Transfer-Encoding: chunked"], 400),
        (["Transfer-Encoding: gzip, chunked"], 400),
        (["no colon"], 400),
        (["Folded : header"], 400),
        ([f"Content-Length: {LONGEST_BODY + 1}"], 413),
        (["Content-Length: " + "9" * 5000], 413),
        (["X: " + "x" * LONGEST_HEAD], 431),
    ],
)
def test_heads_that_are_refused(headers: list[str], expected: int) -> None:
    """Two readings of one request are one too many; nobody waits for a body that is too large."""
    assert expected == status(post(b"", *headers))


def test_a_head_that_never_ends() -> None:
    """Memory stays bounded."""
    assert 431 == status(b"POST /progress HTTP/1.1\r\nX: " + b"x" * LONGEST_HEAD)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (b"-1\r\n", 400),
        (b"0x4\r\n", 400),
        (b"\r\n", 400),
        (b"zz\r\n", 400),
        (b"4\r\nabcdef\r\n", 400),
        (b"1" * 300, 400),
        (b"%x\r\n" % (LONGEST_BODY + 1), 413),
        (b"fffffffff\r\n", 400),
    ],
)
def test_chunks_that_are_refused(chunks: bytes, expected: int) -> None:
    """Sizes that lie, or say too much."""
    assert expected == status(CHUNKED + chunks)


def test_chunks_add_up_to_the_limit_and_no_further() -> None:
    """1 MiB in many pieces is 1 MiB."""
    half = b"%x\r\n%s\r\n" % (LONGEST_BODY // 2, b"x" * (LONGEST_BODY // 2))

    assert LONGEST_BODY == len(heard(CHUNKED + half + half + b"0\r\n\r\n").body or b"")
    assert 413 == status(CHUNKED + half + half + b"1\r\nx\r\n0\r\n\r\n")


def test_trailers_end_too() -> None:
    """A body that is never complete is never answered, and read for nothing."""
    assert BODY == heard(CHUNKED + b"b\r\n" + BODY + b"\r\n0\r\n" + b"A: b\r\n" * 9 + b"\r\n").body
    assert 400 == status(CHUNKED + b"0\r\n" + b"a\n" * 100)


def test_a_client_that_waits_to_be_asked() -> None:
    """Curl does for larger bodies; without an answer it loses a second."""
    incoming = heard(post(b"", length(), "Expect: 100-continue"))

    assert (True, None) == (incoming.expects, incoming.body)
    incoming.feed(BODY)
    assert (False, BODY) == (incoming.expects, incoming.body)


def test_nobody_is_asked_for_what_will_be_refused() -> None:
    """The answer is the refusal."""
    assert not heard(post(b"", "Content-Length: 9999999", "Expect: 100-continue")).expects


def test_an_answer_as_the_aggregator_gave_it() -> None:
    """W13: status and body verbatim, and the connection ends."""
    head, _, body = (
        Response(403, b"progress update for KEY unexpected\n").encode().partition(b"\r\n\r\n")
    )

    assert b"progress update for KEY unexpected\n" == body
    assert [
        b"HTTP/1.1 403 Forbidden",
        b"Content-Length: 35",
        b"Connection: close",
        b"Content-Type: text/plain; charset=utf-8",
    ] == head.split(b"\r\n")


def test_a_status_nobody_has_heard_of() -> None:
    """Passed on all the same."""
    assert Response(599).encode().startswith(b"HTTP/1.1 599 \r\n")


def test_405_says_what_is_allowed() -> None:
    """As HTTP asks."""
    assert (
        b"\r\nAllow: POST, PUT\r\n" in heard(post(line="GET /progress HTTP/1.1")).response.encode()
    )
