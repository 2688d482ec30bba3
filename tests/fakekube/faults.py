"""Faults on script: what goes wrong, and for which request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakekube.answers import status as status_object
from tests.fakekube.journal import Entry

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True)
class Answer:
    """This answer instead of the right one; a `body` of None is a Status that has `said` this.

    With `apply` the request is carried out all the same and only its answer is replaced.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: dict[str, Any] | bytes | None = None
    apply: bool = False
    said: str = "scripted fault"

    def payload(self) -> dict[str, Any] | bytes:
        if self.body is not None:
            return self.body
        return status_object(self.status, REASONS.get(self.status, ""), self.said)


@dataclass(frozen=True)
class Reset:
    """The connection is reset before an answer. With `apply` the request was carried out before."""

    apply: bool = False


@dataclass(frozen=True)
class Hang:
    """No answer, ever, on an open connection. With `apply` the request was carried out before."""

    apply: bool = False


@dataclass(frozen=True)
class Slow:
    """The right answer, `step` bytes every `every` seconds, headers included if `headers`."""

    every: float = 0.05
    step: int = 1
    headers: bool = False


@dataclass(frozen=True)
class Silence:
    """Watch: after `after` events nothing more comes, but the connection stays open (half-open)."""

    after: int = 0


@dataclass(frozen=True)
class ErrorEvent:
    """Watch: after `after` events an ERROR event, then the end."""

    code: int = 410
    message: str = "too old resource version: 1 (2)"
    after: int = 0


@dataclass(frozen=True)
class CloseMidStream:
    """Watch: after `after` events the connection is closed without the last chunk."""

    after: int = 0


@dataclass(frozen=True)
class Line:
    """Watch: after `after` events these bytes as they are, then the stream goes on."""

    data: bytes = b"{not json\n"
    after: int = 0


Fault = Answer | Reset | Hang | Slow | Silence | ErrorEvent | CloseMidStream | Line


@dataclass
class Script:
    """A fault for the `nth` fitting request, counted from 1 since it was set up, and the next ones.

    It strikes `times` times, for ever if None. `hits` counts how often it struck.
    """

    fault: Fault
    fits: Callable[[Entry], bool]
    nth: int = 1
    times: int | None = 1
    seen: int = 0
    hits: int = 0

    def is_due(self, entry: Entry) -> bool:
        if not self.fits(entry):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.hits < self.times)

    def clear(self) -> None:
        """No more of this fault."""
        self.times = self.hits
