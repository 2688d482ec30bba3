"""One HTTP/1.1 request as it comes in, and the answer to it: from bytes to values and back.

For servers that answer one request per connection. No sockets, no clock, and only modules of the
standard library: the link, which others use by itself, stands on this too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

LONGEST_HEAD = 8192
_LONGEST_LINE = 256  # of a chunk's size, or of all trailers
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

    `taken` is called once the client has read all of it. The answer to HEAD is not `whole`.
    """

    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    whole: bool = True
    taken: Callable[[], None] | None = None

    def encode(self) -> bytes:
        """Return the bytes to send."""
        lines = [
            f"HTTP/1.1 {self.status} {_phrase(self.status)}",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
        ]
        if self.body:
            lines.append(f"Content-Type: {self.content_type or _TEXT}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        head = "\r\n".join([*lines, "\r\n"]).encode("latin-1", "replace")
        return head + self.body if self.whole else head


def refusal(status: int, *, allow: str = "", whole: bool = True) -> Response:
    """Return the answer to a request that gets nothing else; `allow` goes with 405."""
    headers = (("Allow", allow),) if allow else ()
    return Response(status, f"{_phrase(status)}\n".encode(), headers=headers, whole=whole)


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
        self._data = bytearray()
        self._head_done = False
        self._length: int | None = None  # nothing: chunked
        self._chunks = bytearray()
        self._chunk_left: int | None = None  # nothing: a size line comes next
        self._last_chunk = False

    @property
    def complete(self) -> bool:
        """Whether there is something to do or to say."""
        return self.body is not None or self.response is not None

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Never raises; what comes after the request is ignored."""
        if self.complete:
            return
        self._data += data
        if not self._head_done:
            end = self._data.find(b"\r\n\r\n")
            if end > LONGEST_HEAD or (end < 0 and len(self._data) > LONGEST_HEAD):
                self.response = refusal(431)
                return
            if end < 0:
                return
            head = bytes(self._data[:end])
            del self._data[: end + 4]
            self._head_done = True
            self.response = self._read_head(head)
        if self.response is None:
            self._read_body()
        if self.complete:
            self.expects = False

    def _read_head(self, head: bytes) -> Response | None:
        line, *lines = head.decode("latin-1").split("\r\n")
        words = line.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return refusal(400)
        fields: dict[str, list[str]] = {}
        for each in lines:
            name, colon, value = each.partition(":")
            if not colon or name != name.strip():
                return refusal(400)
            fields.setdefault(name.lower(), []).append(value.strip())
        path, _, query = words[1].partition("?")
        if response := self._at_head(Request(words[0], path, query, fields)):
            return response
        self.expects = "100-continue" in [text.lower() for text in fields.get("expect", [])]
        return self._read_framing(
            fields.get("transfer-encoding", []), fields.get("content-length", [])
        )

    def _read_framing(self, encodings: list[str], lengths: list[str]) -> Response | None:
        if encodings:
            chunked = [encoding.lower() for encoding in encodings] == ["chunked"]
            return None if chunked and not lengths else refusal(400)
        if len(set(lengths)) > 1:
            return refusal(400)
        text = lengths[0] if lengths else "0"
        if not (text.isascii() and text.isdigit()):
            return refusal(400)
        # By its digits first: a number of thousands of them is slow to read.
        if len(text) > 18 or int(text) > self._longest_body:
            return refusal(413)
        self._length = int(text)
        return None

    def _read_body(self) -> None:
        if self._length is None:
            self._read_chunks()
        elif len(self._data) >= self._length:
            self.body = bytes(self._data[: self._length])

    def _read_chunks(self) -> None:
        while not self.complete:
            if self._chunk_left is None:
                end = self._data.find(b"\n")
                if end > _LONGEST_LINE or (end < 0 and len(self._data) > _LONGEST_LINE):
                    self.response = refusal(400)
                if end < 0 or self.response:
                    return
                line = bytes(self._data[:end]).strip()
                del self._data[: end + 1]
                self._read_size(line)
            else:
                piece = self._data[: self._chunk_left]
                self._chunks += piece
                del self._data[: len(piece)]
                self._chunk_left -= len(piece)
                # The line end after a chunk's bytes belongs to it.
                if self._chunk_left or len(self._data) < 2:
                    return
                if self._data[:2] != b"\r\n":
                    self.response = refusal(400)
                    return
                del self._data[:2]
                self._chunk_left = None

    def _read_size(self, line: bytes) -> None:
        if self._last_chunk:
            # Trailers are of no use to us; an empty line ends them.
            if not line:
                self.body = bytes(self._chunks)
            return
        size = line.partition(b";")[0].strip()
        # int() alone would take signs, underscores and 0x.
        if not _HEX.fullmatch(size):
            self.response = refusal(400)
            return
        number = int(size, 16)
        if len(self._chunks) + number > self._longest_body:
            self.response = refusal(413)
        elif number == 0:
            self._last_chunk = True
        else:
            self._chunk_left = number
