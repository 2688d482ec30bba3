"""An answer that goes on, on a connection of its own: a container's log, a watch.

It ends when told to, and never just hangs. The caller decides what follows (a new watch, a
back-off, a GET).
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, Generic, TypeVar

from urllib3.exceptions import ReadTimeoutError

from reporter.errors import KubeError, Silence, Unavailable
from reporter.kube.answers import MAX_OBJECT, decode_json, plain
from reporter.kube.client import Client, Request, refused, transport
from reporter.kube.sockets import CONNECT_SECONDS, Cutoff

Part = TypeVar("Part")

EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})

_READ = 64 * 1024


class Stream(ABC, Generic[Part]):
    """Iterate once for its parts; the connection is made by the first step.

    `silence` is how long nothing may come, in seconds; None means for ever. It ends normally at
    the end of the answer and after `close()`. Raises the same domain errors as a GET when it is
    refused, and Unavailable when it breaks.
    """

    nothing: frozenset[int] = frozenset()
    """HTTP statuses of an answer without parts."""

    def __init__(self, client: Client, request: Request, silence: float | None) -> None:
        self._client, self._request, self._silence = client, request, silence
        self._cutoff = Cutoff()

    def close(self) -> None:
        """End the iteration at once, from any thread, whatever it waits for."""
        self._cutoff.cut()

    def __iter__(self) -> Iterator[Part]:
        if self._cutoff.done:
            return
        api = self._client.open(self._cutoff)
        try:
            with closing(self._parts(self._pieces(api))) as parts:
                yield from parts
        except KubeError:
            if not self._cutoff.done:
                raise
        finally:
            api.close()
            self._cutoff.release()

    @abstractmethod
    def _parts(self, pieces: Generator[bytes, None, None]) -> Generator[Part, None, None]:
        """Make parts out of the pieces of the body, and close these at the end."""

    def _pieces(self, api: Any) -> Generator[bytes, None, None]:
        response = self._client.send(api, self._request, (CONNECT_SECONDS, self._silence))
        try:
            if response.status in self.nothing:
                return
            if response.status != 200:
                raise refused(self._request, response)
            sock = getattr(response.connection, "sock", None)
            while True:
                if sock is not None:
                    sock.settimeout(self._silence)
                data = self._read(response)
                if not data:
                    return
                yield data
        finally:
            response.close()

    def _read(self, response: Any) -> bytes:
        with transport():
            return bytes(response.read1(_READ, decode_content=False))


class LogStream(Stream[bytes]):
    """A container's log, in pieces as they come."""

    nothing = frozenset({204})  # no node has the Pod yet

    def _parts(self, pieces: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
        return pieces


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
