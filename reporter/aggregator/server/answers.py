"""Answers as bytes: made once, sent in one write. When to send which is not decided here."""

import time
from base64 import b64encode
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

TEXT: Final = (
    ("Content-Type", "text/plain; charset=utf-8"),
    ("X-Content-Type-Options", "nosniff"),
)
JSON: Final = (
    ("Content-Type", "application/json"),
    ("X-Content-Type-Options", "nosniff"),
)
_WITHOUT_LENGTH: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_CLOSE: Final = b"\r\nConnection: close"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Answer(web.StreamResponse):
    """A complete answer. May be shared by requests, as nothing of a request is kept in it.

    `close` says whether the connection ends with it; `closing()` is the same answer with that.
    """

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        *,
        close: bool = False,
    ) -> None:
        super().__init__(status=status)
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if status not in _WITHOUT_LENGTH:
            lines.append(f"Content-Length: {len(body)}")
        self._bytes = "\r\n".join(lines).encode("latin-1")
        self._content, self._given, self._keep_alive = body, tuple(headers), not close

    @property
    def content(self) -> bytes:
        """The body."""
        return self._content

    def closing(self) -> "Answer":
        """Return the answer that also ends the connection."""
        if not self._keep_alive:
            return self
        return Answer(self.status, self._content, self._given, close=True)

    def head(self, *, close: bool) -> bytes:
        """Return everything before the body; `close` announces the end of the connection."""
        return self._bytes + (_CLOSE if close else b"") + _date(int(time.time()))

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Send it, where aiohttp itself has to."""
        await request.writer.write(self.head(close=not self._keep_alive) + self._content)
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: `prepare` has sent everything."""


@lru_cache(maxsize=2)
def _date(second: int) -> bytes:
    return b"\r\nDate: " + formatdate(second, usegmt=True).encode("ascii") + b"\r\n\r\n"


def text(
    status: int, line: str = "", headers: Iterable[tuple[str, str]] = (), *, close: bool = False
) -> Answer:
    """Answer one line of text, or nothing where the line is empty."""
    if not line:
        return Answer(status, b"", headers, close=close)
    return Answer(status, f"{line}\n".encode(), (*TEXT, *headers), close=close)


def retry_later(seconds: int) -> tuple[str, str]:
    """Return the header that says when to come again."""
    return "Retry-After", str(seconds)


def result_digest(sha256: str) -> tuple[tuple[str, str], ...]:
    """Return the header naming the bytes that are held; none for a record without bytes."""
    if not sha256:
        return ()
    value = b64encode(bytes.fromhex(sha256)).decode("ascii")
    return (("Result-Digest", f"sha-256=:{value}:"),)


def matches(request: web.BaseRequest, tag: str) -> bool:
    """Say whether `If-None-Match` names what we have; weakly, as a GET compares."""
    header = request.headers.get("If-None-Match", "")
    tags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return tag.removeprefix("W/") in tags or "*" in tags


def takes_gzip(request: web.BaseRequest) -> bool:
    """Say whether `Accept-Encoding` names gzip, and not to rule it out."""
    for coding in request.headers.get("Accept-Encoding", "").lower().split(","):
        name, _, weight = coding.replace(" ", "").partition(";q=")
        if name == "gzip":
            return not weight or weight.strip("0.") != ""
    return False


def not_modified(tag: str) -> Answer:
    """Answer that the reader has it already."""
    return Answer(304, b"", (("ETag", tag), ("Cache-Control", "no-cache")))


NOT_FOUND: Final = text(404, "404 page not found")
EMPTY: Final = Answer(200)
