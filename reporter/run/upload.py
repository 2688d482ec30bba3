"""An upload: what its head says, how long a run waits for it, and what may become of it.

Decisions only. All times are by the run's clock.
"""

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reporter.errors import ReporterError

FINISH: Final = 120.0
FINISH_RATE: Final = 2**20  # bytes per second


def metadata_dropped(why: str) -> str:
    """Return what is kept in place of what a sender says of itself."""
    return json.dumps({"metadata_dropped": why})


class UploadOutcome(StrEnum):
    """What became of an upload. The first three are what becomes of a record by its rank."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"  # something of equal or higher rank is held
    CLOSED = "closed"  # the run takes nothing more
    LEFT = "left"  # its sender, before its turn
    BUSY = "busy"  # no slot was free
    ENCODED = "encoded"  # it has a Content-Encoding
    TOO_LARGE = "too large"
    UNAVAILABLE = "unavailable"  # the store cannot be written at present, or is too busy
    NO_ROOM = "no room"  # it would use the reserve of the disk
    STALLED = "stalled"
    CUT = "cut"
    REFUSED = "refused"  # the body is not what it says it is
    DISK_FULL = "disk full"
    UNWRITTEN = "unwritten"  # the disk or the store failed

    @property
    def failed_try(self) -> bool:
        """Whether it opens the retry window of its key."""
        return self not in _NO_TRY


_NO_TRY: Final = frozenset(
    {
        UploadOutcome.ACCEPTED,
        UploadOutcome.DUPLICATE,
        UploadOutcome.CLOSED,
        UploadOutcome.LEFT,
        UploadOutcome.BUSY,
    }
)


@dataclass(frozen=True, slots=True)
class UploadConclusion:
    """How an upload ended. `reason` says in words why it was not taken.

    `digest` is the SHA-256, in hexadecimal, of what is held for its key: its own body, or another.
    """

    outcome: UploadOutcome
    reason: str = ""
    digest: str = ""


class UploadEnded(ReporterError):
    """Raised where an upload goes no further."""

    def __init__(self, outcome: UploadOutcome, reason: str = "", digest: str = "") -> None:
        super().__init__(reason or str(outcome))
        self.ended = UploadConclusion(outcome, reason, digest)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an upload may take after its deadline: `finish` seconds, or longer if it is long."""

    finish: float = FINISH
    rate: float = FINISH_RATE

    def seconds(self, length: int) -> float:
        """Return it for a body of so many bytes."""
        return max(self.finish, length / self.rate)


@dataclass(eq=False, slots=True)
class Upload:
    """One upload of a key: when it came, how long it may be, and since when it is read.

    `began` is None while it waits unread; `waited` says whether it ever did. `retry` says that
    it came within the retry window of its key, which decides instead of the deadline.
    """

    arrived: float
    length: int
    began: float | None = None
    waited: bool = False
    retry: bool = False

    def cut_at(self, deadline: float | None, allowance: Allowance) -> float:
        """Return when a body that is being read is cut; infinite without a deadline."""
        if deadline is None or self.began is None:
            return math.inf
        return max(deadline, self.began) + allowance.seconds(self.length)

    def queued_at(self, deadline: float | None) -> bool:
        """Return whether it was here unread when the deadline came."""
        return (
            deadline is not None
            and self.arrived <= deadline
            and (self.began is None or self.began > deadline)
        )

    def holds(self, deadline: float | None, now: float, allowance: Allowance) -> bool:
        """Return whether the run stays open for it.

        It does for one that came in time, which either is read to its end or cut. Who comes later
        is taken if there is time, but cannot keep the run open by coming again.
        """
        if deadline is None or self.retry or self.arrived <= deadline:
            return True
        return self.began is not None and now < deadline + allowance.seconds(self.length)


GZIP: Final = "application/gzip"  # exactly; parameters or another spelling mean an opaque file
DEFAULT_NAME: Final = "result"


@dataclass(frozen=True, slots=True)
class Meta:
    """The head of one upload.

    `filename` is the base name it gives, `disposition` whether there was a header for one at all
    (Sonobuoy's error objects have none). `error`: the body is an error report. `adapter`: it is an
    adapter's result, or a report by the reporter of one. `digest` is the SHA-256 that the sender
    declared, in hexadecimal, `length` the declared length, `encoding` the Content-Encoding,
    `serial` the number of the client certificate. `metadata` is what its sender says
    of itself, as JSON.
    """

    content_type: str = ""
    filename: str = ""
    error: bool = False
    adapter: bool = False
    digest: str | None = None
    serial: str = ""
    length: int | None = None
    disposition: bool = False
    encoding: str = ""
    metadata: str = ""

    @property
    def archive(self) -> bool:
        """Whether the body is to be an archive."""
        return self.content_type == GZIP

    @property
    def stored_name(self) -> str:
        """The name of the file a body becomes."""
        return self.filename or DEFAULT_NAME
