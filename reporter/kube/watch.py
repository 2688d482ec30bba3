"""One watch on a connection of its own: it ends when told to, and never just hangs.

What comes after the end (a new watch, a back-off, a GET) is the caller's decision.
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from urllib3.exceptions import ReadTimeoutError

from reporter.core.api_answers import MAX_OBJECT, decode_json, plain
from reporter.errors import KubeError, Silence, Unavailable
from reporter.kube.client import Client, Request, refused, transport
from reporter.kube.sockets import CONNECT_SECONDS, Cutoff

EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_READ = 64 * 1024


class Watch:
    """Iterate once for pairs of event type and object; the connection is made by the first step.

    Types are ADDED, MODIFIED, DELETED, BOOKMARK (of a bookmark only metadata is filled). It ends
    normally at the server's timeout and after `close()`. Raises the same domain errors as a GET
    when the watch is refused, Silence when nothing comes, and Unavailable when it breaks, carries
    garbage or the server ends it with an ERROR event.
    """

    def __init__(self, client: Client, kind: str, request: Request, silence: float) -> None:
        self._client = client
        self._kind = kind
        self._request = request
        self._silence = silence
        self._cutoff = Cutoff()

    def close(self) -> None:
        """End the iteration at once, from any thread, whatever it waits for."""
        self._cutoff.cut()

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self._cutoff.done:
            return
        api = self._client.open(self._cutoff)
        try:
            with closing(self._lines(api)) as lines:
                for line in lines:
                    yield _event(line, self._kind)
        except KubeError:
            if not self._cutoff.done:
                raise
        finally:
            api.close()
            self._cutoff.release()

    def _lines(self, api: Any) -> Generator[bytes, None, None]:
        patience = (CONNECT_SECONDS, self._silence)
        response = self._client.send(api, self._request, patience)
        try:
            if response.status != 200:
                raise refused(self._request, response)
            sock = getattr(response.connection, "sock", None)
            begun = bytearray()
            while True:
                if sock is not None:
                    sock.settimeout(self._silence)
                data = self._read(response)
                if not data:
                    break
                *lines, rest = data.split(b"\n")
                for line in lines:
                    begun += line
                    if begun.strip():
                        yield bytes(begun)
                    begun.clear()
                begun += rest
                if len(begun) > MAX_OBJECT:
                    raise Unavailable(f"a watch event is larger than {MAX_OBJECT} bytes")
            if begun.strip():
                raise Unavailable("the watch ended inside an event")
        finally:
            response.close()

    def _read(self, response: Any) -> bytes:
        try:
            with transport():
                return bytes(response.read1(_READ, decode_content=False))
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
