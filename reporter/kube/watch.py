"""One watch on a connection of its own: it ends when told to, and never just hangs.

What comes after the end (a new watch, a back-off, a GET) is the caller's decision.
"""

from collections.abc import Generator
from contextlib import closing
from typing import Any

from urllib3.exceptions import ReadTimeoutError

from reporter.core.api_answers import MAX_OBJECT, decode_json, plain
from reporter.errors import Silence, Unavailable
from reporter.kube.client import Client, Request
from reporter.kube.stream import Stream

EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})


class Watch(Stream[tuple[str, dict[str, Any]]]):
    """Iterate once for pairs of event type and object.

    Types are ADDED, MODIFIED, DELETED, BOOKMARK (of a bookmark only metadata is filled). It ends
    normally at the server's timeout too. Raises Silence when nothing comes, and Unavailable also
    when it carries garbage or the server ends it with an ERROR event.
    """

    def __init__(self, client: Client, kind: str, request: Request, silence: float) -> None:
        super().__init__(client, request, silence)
        self._kind = kind

    def _parts(
        self, pieces: Generator[bytes, None, None]
    ) -> Generator[tuple[str, dict[str, Any]], None, None]:
        begun = bytearray()
        with closing(pieces):
            for data in pieces:
                *lines, rest = data.split(b"\n")
                for line in lines:
                    begun += line
                    if begun.strip():
                        yield _event(bytes(begun), self._kind)
                    begun.clear()
                begun += rest
                if len(begun) > MAX_OBJECT:
                    raise Unavailable(f"a watch event is larger than {MAX_OBJECT} bytes")
        if begun.strip():
            raise Unavailable("the watch ended inside an event")

    def _read(self, response: Any) -> bytes:
        try:
            return super()._read(response)
        except Unavailable as error:
            if isinstance(error.__cause__, ReadTimeoutError | TimeoutError):
                raise Silence(f"no data for {self._silence:g} s") from error
            raise


def _event(line: bytes, kind: str) -> tuple[str, dict[str, Any]]:
    event = decode_json(line)
    sort, found = event.get("type"), event.get("object")
    if not isinstance(found, dict):
        raise Unavailable("a watch event without an object")
    if sort == "ERROR":
        raise Unavailable(plain(f"the watch was ended: {found.get('code')} {found.get('message')}"))
    if not isinstance(sort, str) or sort not in EVENTS or found.get("kind") != kind:
        raise Unavailable(plain(f"a watch event of unknown type: {sort} {found.get('kind')}"))
    return sort, found
