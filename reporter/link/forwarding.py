"""Progress on its way to the aggregator: what the plugin is told, and what is sent again.

The plugin is told what happened, so an update that was not accepted is not sent again later. The
exception is the newest update that replaces all before it: until a newer one comes, it can only
make the aggregator's view more accurate. One thread at a time.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from reporter.common.http_request import Response
from reporter.common.retry import next_delay
from reporter.errors import InvalidPayload, ReporterError
from reporter.link.answers import Reply
from reporter.link.delivery import Event
from reporter.link.policy import Meaning, meaning
from reporter.run.progress import parse_progress

LONGEST_RESEND_SECONDS = 15.0


class Client(Protocol):
    """What is needed of `AggregatorClient`."""

    def post_progress(self, update: bytes, /) -> Reply:
        """Send it once and return the answer, or raise a ReporterError."""


class Forwarding:
    """Forwards one update after the other.

    `on_event` is called with a word and its facts, each at most once:

    - `progress_not_delivered`: the aggregator was not reached (`trouble`);
    - `progress_unwanted`: it answers 404, as Sonobuoy's does for the worker of a node (`status`).
    """

    def __init__(
        self,
        client: Client,
        *,
        on_event: Event,
        rng: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._on_event, self._clock, self._rng = client, on_event, clock, rng
        self._kept: bytes | None = None
        self._tries = 0
        self._said: set[str] = set()
        self.resend_at: float | None = None
        """When the kept update is due, by the clock; nothing when there is none."""

    def take(self, body: bytes) -> Response:
        """Forward an update of the plugin and return what the plugin is told."""
        # Whatever comes now is newer; a kept one sent after it could undo it.
        self._forget()
        answer, again = self._forward(body)
        if again and _replaces(body):
            self._keep(body)
        return answer

    def resend(self) -> None:
        """Send the kept update again, if there is one."""
        if self._kept is not None:
            _, again = self._forward(self._kept)
            if again:
                self._keep(self._kept)
            else:
                self._forget()

    def _keep(self, body: bytes) -> None:
        self._kept = body
        self._tries += 1
        delay = next_delay(self._tries, self._rng, first=1.0, longest=LONGEST_RESEND_SECONDS)
        self.resend_at = self._clock() + (delay or 0.0)

    def _forget(self) -> None:
        self._kept, self._tries, self.resend_at = None, 0, None

    def _forward(self, body: bytes) -> tuple[Response, bool]:
        """Return what the plugin is told, and whether another try may succeed."""
        try:
            reply = self._client.post_progress(body)
        except ReporterError as error:
            self._say_once("progress_not_delivered", trouble=str(error))
            return Response(500), True
        if reply.status == 404:
            self._say_once("progress_unwanted", status=404)
        again = meaning(reply.status) is Meaning.RETRY
        return Response(reply.status, reply.body, reply.content_type), again

    def _say_once(self, event: str, **facts: Any) -> None:
        if event not in self._said:
            self._said.add(event)
            self._on_event(event, facts)


def _replaces(body: bytes) -> bool:
    try:
        return not parse_progress(body).appending
    except InvalidPayload:
        return False
