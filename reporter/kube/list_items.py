"""The objects of a list, one after the other, from a file that holds the API server's answer.

The list is never in memory as a whole: its objects may have more than a megabyte each. No I/O here
but reading that file.
"""

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from reporter.errors import Unavailable

MOST = 16 * 1024 * 1024
"""Largest object in characters. etcd takes about 1.5 MB, other servers may have more."""
_PIECE = 256 * 1024


class ListItems:
    """Iterate once for the objects; `kind` and `metadata` of the list are known afterwards.

    Raises Unavailable for what is not the JSON of a list. Objects that came before have been
    yielded then.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._text = _Text(file)
        self.kind = ""
        self.metadata: dict[str, Any] = {}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        text = self._text
        text.expect("{")
        while text.next() != "}":
            name = text.value()
            text.expect(":")
            if name == "items" and text.next() == "[":
                yield from self._items()
            else:
                self._note(name, text.value())
            if text.next() == ",":
                text.expect(",")
            elif text.next() != "}":
                raise _garbage()
        text.expect("}")

    def _items(self) -> Iterator[dict[str, Any]]:
        text = self._text
        text.expect("[")
        while text.next() != "]":
            found = text.value()
            if not isinstance(found, dict):
                raise _garbage()
            yield found
            if text.next() == ",":
                text.expect(",")
            elif text.next() != "]":
                raise _garbage()
        text.expect("]")

    def _note(self, name: Any, value: Any) -> None:
        if name == "kind" and isinstance(value, str):
            self.kind = value
        elif name == "metadata" and isinstance(value, dict):
            self.metadata = value


class _Text:
    """The file as text, of which only a window is in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._read, self._at, self._ended = file, "", 0, False
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._decode = json.JSONDecoder().raw_decode

    def next(self) -> str:
        """Return the next character that is no white space, without taking it."""
        while True:
            while self._at < len(self._read):
                found = self._read[self._at]
                if found not in " \t\r\n":
                    return found
                self._at += 1
            if not self._more():
                raise _garbage()

    def expect(self, character: str) -> None:
        """Take this character."""
        if self.next() != character:
            raise _garbage()
        self._at += 1

    def value(self) -> Any:
        """Take the next value."""
        self.next()
        while True:
            try:
                found, end = self._decode(self._read, self._at)
            except RecursionError:
                raise Unavailable("an object of the response is nested too deeply") from None
            except ValueError:  # it may be cut off
                if not self._more():
                    raise _garbage() from None
                continue
            # More digits may follow.
            if end == len(self._read) and not isinstance(found, dict | list | str) and self._more():
                continue
            self._at = end
            return found

    def _more(self) -> bool:
        """Read on; nothing at the end of the file."""
        if self._ended:
            return False
        left = self._read[self._at :]
        if len(left) > MOST:
            raise Unavailable(f"an object of the response is larger than {MOST} characters")
        # Twice as much with each try: a large object is not decoded anew for every piece of it.
        data = self._file.read(max(_PIECE, len(left)))
        self._ended = not data
        try:
            self._read, self._at = left + self._decoder.decode(data, final=self._ended), 0
        except UnicodeDecodeError:
            raise _garbage() from None
        return not self._ended


def _garbage() -> Unavailable:
    return Unavailable("the response is not the JSON of a list")
