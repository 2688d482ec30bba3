"""A container's log as it comes, on a connection of its own."""

from collections.abc import Iterator
from typing import Any

from reporter.errors import KubeError
from reporter.kube.client import Client, Request, refused, transport
from reporter.kube.sockets import CONNECT_SECONDS, Cutoff

_READ = 64 * 1024


class LogStream:
    """Iterate once for pieces of the log; the connection is made by the first step.

    It ends normally at the end of the log and after `close()`. Raises the same domain errors as a
    GET when it is refused, and Unavailable when it breaks.
    """

    def __init__(self, client: Client, request: Request, silence: float | None) -> None:
        self._client, self._request, self._silence = client, request, silence
        self._cutoff = Cutoff()

    def close(self) -> None:
        """End the iteration at once, from any thread, whatever it waits for."""
        self._cutoff.cut()

    def __iter__(self) -> Iterator[bytes]:
        if self._cutoff.done:
            return
        api = self._client.open(self._cutoff)
        try:
            yield from self._pieces(api)
        except KubeError:
            if not self._cutoff.done:
                raise
        finally:
            api.close()
            self._cutoff.release()

    def _pieces(self, api: Any) -> Iterator[bytes]:
        response = self._client.send(api, self._request, (CONNECT_SECONDS, self._silence))
        try:
            if response.status == 204:  # no node has the Pod yet
                return
            if response.status != 200:
                raise refused(self._request, response)
            sock = getattr(response.connection, "sock", None)
            while True:
                if sock is not None:
                    sock.settimeout(self._silence)
                with transport():
                    data = bytes(response.read1(_READ, decode_content=False))
                if not data:
                    return
                yield data
        finally:
            response.close()
