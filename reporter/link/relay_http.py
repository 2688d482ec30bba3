"""What the relay hears and says: from bytes to a whole request, from an answer to bytes.

No sockets, no clock. Only as much of HTTP/1.1 as a plugin's client needs to hand over one body.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus

PATH = "/progress"
METHODS = ("POST", "PUT")
LONGEST_BODY = 1024 * 1024
LONGEST_HEAD = 8192
_LONGEST_LINE = 256  # of a chunk's size, or of all trailers
_HEX = re.compile(rb"[0-9A-Fa-f]{1,8}")
_TEXT = "text/plain; charset=utf-8"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a body, by default of text."""

    status: int
    body: bytes = b""
    content_type: str = ""

    def encode(self) -> bytes:
        """Return the bytes to send; the connection ends with them."""
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = ""
        lines = [
            f"HTTP/1.1 {self.status} {phrase}",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
        ]
        if self.body:
            lines.append(f"Content-Type: {self.content_type or _TEXT}")
        if self.status == HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append(f"Allow: {', '.join(METHODS)}")
        return "\r\n".join([*lines, "\r\n"]).encode("latin-1", "replace") + self.body


class Incoming:
    """One request as it comes in: feed it bytes until `body` or `refusal` is there."""

    def __init__(self) -> None:
        self.body: bytes | None = None
        self.refusal: Answer | None = None
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
        return self.body is not None or self.refusal is not None

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Never raises; what comes after the request is ignored."""
        if self.complete:
            return
        self._data += data
        if not self._head_done:
            end = self._data.find(b"\r\n\r\n")
            if end > LONGEST_HEAD or (end < 0 and len(self._data) > LONGEST_HEAD):
                self.refusal = Answer(431)
                return
            if end < 0:
                return
            head = bytes(self._data[:end])
            del self._data[: end + 4]
            self._head_done = True
            self.refusal = self._read_head(head)
        if self.refusal is None:
            self._read_body()
        if self.complete:
            self.expects = False

    def _read_head(self, head: bytes) -> Answer | None:
        request, *lines = head.decode("latin-1").split("\r\n")
        words = request.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return Answer(400)
        if words[1].partition("?")[0] != PATH:
            return Answer(404, b"404 page not found\n")
        if words[0] not in METHODS:
            return Answer(405)
        fields: dict[str, list[str]] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or name != name.strip():
                return Answer(400)
            fields.setdefault(name.lower(), []).append(value.strip())
        self.expects = "100-continue" in [text.lower() for text in fields.get("expect", [])]
        return self._read_framing(
            fields.get("transfer-encoding", []), fields.get("content-length", [])
        )

    def _read_framing(self, encodings: list[str], lengths: list[str]) -> Answer | None:
        if encodings:
            return (
                None
                if not lengths and [e.lower() for e in encodings] == ["chunked"]
                else (Answer(400))
            )
        if len(set(lengths)) > 1:
            return Answer(400)
        text = lengths[0] if lengths else "0"
        if not (text.isascii() and text.isdigit()):
            return Answer(400)
        # By its digits first: a number of thousands of them is slow to read.
        if len(text) > 18 or int(text) > LONGEST_BODY:
            return Answer(413)
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
                    self.refusal = Answer(400)
                if end < 0 or self.refusal:
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
                    self.refusal = Answer(400)
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
            self.refusal = Answer(400)
            return
        number = int(size, 16)
        if len(self._chunks) + number > LONGEST_BODY:
            self.refusal = Answer(413)
        elif number == 0:
            self._last_chunk = True
        else:
            self._chunk_left = number
