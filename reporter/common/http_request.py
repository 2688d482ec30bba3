"""One HTTP/1.1 request as it comes in, and the answer to it: from bytes to values and back.

For servers that answer one request per connection. No sockets, no clock, and only modules of the
standard library: the link, which others use by itself, stands on this too.
"""

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

T = TypeVar("T")
Reading = Generator[None, None, T]
"""Goes on with every `next`, once there are more bytes."""

LONGEST_HEAD = 8192
_LONGEST_LINE = 256  # of a chunk's size, or of a trailer
_MOST_TRAILERS = 32
_HEX = re.compile(rb"[0-9A-Fa-f]{1,8}")
_TEXT = "text/plain; charset=utf-8"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request; `fields` are its header fields by lower-case name."""

    method: str
    path: str
    query: str
    fields: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Response:
    """A status and a body, by default of text; the connection ends with it.

    `on_read` is called once the client has read all of it.
    """

    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    on_read: Callable[[], None] | None = None

    def encode(self, *, head_only: bool = False) -> bytes:
        """Return the bytes to send; the answer to HEAD has no body."""
        lines = [
            f"HTTP/1.1 {self.status} {_phrase(self.status)}",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
        ]
        if self.body:
            lines.append(f"Content-Type: {self.content_type or _TEXT}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        head = "\r\n".join([*lines, "\r\n"]).encode("latin-1", "replace")
        return head if head_only else head + self.body


def refusal(status: int, *, allow: str = "") -> Response:
    """Return the answer to a request that gets nothing else; `allow` goes with 405."""
    headers = (("Allow", allow),) if allow else ()
    return Response(status, f"{_phrase(status)}\n".encode(), headers=headers)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


class Incoming:
    """One request as it comes in: feed it bytes until `body` or `response` is there.

    `at_head` may answer as soon as the head is there; after None the body is read, of at most
    `longest_body` bytes.
    """

    def __init__(self, at_head: Callable[[Request], Response | None], longest_body: int) -> None:
        self._at_head, self._longest_body = at_head, longest_body
        self.body: bytes | None = None
        self.response: Response | None = None
        self.expects = False
        """The client waits for `CONTINUE` before it sends the body; the caller clears it."""
        self.head_only = False
        """It is a HEAD request."""
        self._data = bytearray()
        self._reading = self._read()

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Never raises; what comes after the request is ignored."""
        if self.body is not None or self.response is not None:
            return
        self._data += data
        try:
            next(self._reading)
        except StopIteration as end:
            self.expects = False
            if isinstance(end.value, Response):
                self.response = end.value
            else:
                self.body = end.value

    def close(self) -> None:
        """Read no further: what has come is given back at once."""
        self._reading.close()

    def _read(self) -> Reading[Response | bytes]:
        """Read the request; return its body or the answer to its head."""
        head = yield from self._up_to(b"\r\n\r\n", LONGEST_HEAD)
        if head is None:
            return refusal(431)
        request = _request(head.decode("latin-1"))
        if request is None:
            return refusal(400)
        self.head_only = request.method == "HEAD"
        if response := self._at_head(request):
            return response
        fields = request.fields
        self.expects = "100-continue" in [text.lower() for text in fields.get("expect", [])]
        encodings, lengths = fields.get("transfer-encoding", []), fields.get("content-length", [])
        if encodings:
            if lengths or [encoding.lower() for encoding in encodings] != ["chunked"]:
                return refusal(400)
            return (yield from self._read_chunks())
        text = lengths[0] if lengths else "0"
        if len(set(lengths)) > 1 or not (text.isascii() and text.isdigit()):
            return refusal(400)
        # By its digits first: a number of thousands of them is slow to read.
        if len(text) > 18 or int(text) > self._longest_body:
            return refusal(413)
        return (yield from self._take(int(text)))

    def _read_chunks(self) -> Reading[Response | bytes]:
        body = bytearray()
        while True:
            line = yield from self._up_to(b"\n", _LONGEST_LINE)
            size = b"" if line is None else line.partition(b";")[0].strip()
            # int() alone would take signs, underscores and 0x.
            if not _HEX.fullmatch(size):
                return refusal(400)
            number = int(size, 16)
            if number == 0:
                break
            if len(body) + number > self._longest_body:
                return refusal(413)
            body += yield from self._take(number)
            if (yield from self._take(2)) != b"\r\n":
                return refusal(400)
        # Trailers are of no use to us; an empty line ends them.
        for _ in range(_MOST_TRAILERS + 1):
            line = yield from self._up_to(b"\n", _LONGEST_LINE)
            if line is None:
                break
            if not line.strip():
                return bytes(body)
        return refusal(400)

    def _up_to(self, end: bytes, most: int) -> Reading[bytes | None]:
        """Take what stands before `end`, and that too; None if it is more than so many bytes."""
        while (at := self._data.find(end)) < 0 and len(self._data) <= most:
            yield
        return None if at < 0 or at > most else (yield from self._take(at + len(end)))[:at]

    def _take(self, size: int) -> Reading[bytes]:
        while len(self._data) < size:
            yield
        taken = bytes(self._data[:size])
        del self._data[:size]
        return taken


def _request(head: str) -> Request | None:
    line, *lines = head.split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    fields: dict[str, list[str]] = {}
    for each in lines:
        name, colon, value = each.partition(":")
        if not colon or name != name.strip():
            return None
        fields.setdefault(name.lower(), []).append(value.strip())
    path, _, query = words[1].partition("?")
    return Request(words[0], path, query, fields)
