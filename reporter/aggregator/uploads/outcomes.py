"""What becomes of an upload, as values; the HTTP layer turns them into answers."""

import errno
from dataclasses import dataclass

from reporter.aggregator.store import StoreFull
from reporter.errors import InvalidPayload, ReporterError
from reporter.untar import BadArchive


class UploadStalled(ReporterError):
    """Raised by the source of a body that sends nothing, or too slowly."""


class UploadCut(ReporterError):
    """Raised by the source of a body that ends before it is whole."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Taken: bytes and row survive a loss of power. `digest` is the SHA-256 in hexadecimal."""

    digest: str


@dataclass(frozen=True, slots=True)
class Held:
    """Not taken: something of the same or a higher rank is held, with this digest."""

    digest: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Not taken: the run is closed."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The body goes beyond `limit` bytes."""

    limit: int

    @property
    def reason(self) -> str:
        """The failure in words."""
        return f"exceeds {self.limit} bytes"


@dataclass(frozen=True, slots=True)
class Stalled:
    """The body stopped coming."""

    reason: str = "upload stalled"


@dataclass(frozen=True, slots=True)
class Cut:
    """The body ended too early."""

    reason: str = "upload cut off"


@dataclass(frozen=True, slots=True)
class Refused:
    """The body is not what it says it is."""

    reason: str


@dataclass(frozen=True, slots=True)
class DiskFull:
    """There is no room for it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unwritable:
    """The disk or the store did not take it."""

    reason: str


Failed = TooLarge | Stalled | Cut | Refused | DiskFull | Unwritable
Verdict = Stored | Held | Closed | Failed


class Oversize(ReporterError):
    """A body goes beyond `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"exceeds {limit} bytes")
        self.limit = limit


def failed(error: Exception) -> Failed:
    """What an error on the way of a body means for its sender. Repeats no path of ours."""
    match error:
        case UploadStalled():
            return Stalled()
        case UploadCut() | ConnectionError():
            return Cut()
        case Oversize():
            return TooLarge(error.limit)
        case InvalidPayload() | BadArchive():
            return Refused(str(error))
        case StoreFull():
            return DiskFull("no space left")
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return DiskFull("no space left")
        case OSError():
            return Unwritable(error.strerror or type(error).__name__)
        case _:
            return Unwritable(str(error))
