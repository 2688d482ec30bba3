"""An answer that goes on, on a connection of its own: it ends when told to. A container's log."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, Generic, TypeVar

from reporter.errors import KubeError
from reporter.kube.client import Client, Request, refused, transport
from reporter.kube.sockets import CONNECT_SECONDS, Cutoff

Part = TypeVar("Part")

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
