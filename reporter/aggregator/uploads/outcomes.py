"""What became of an upload: one value, and the exception that carries it."""

import errno
from dataclasses import dataclass
from typing import Final

from reporter.aggregator.store import StoreFull
from reporter.core.run.upload import Outcome
from reporter.errors import InvalidPayload, ReporterError
from reporter.untar import BadArchive


@dataclass(frozen=True, slots=True)
class Ended:
    """How an upload ended. `reason` says in words why it was not taken.

    `digest` is the SHA-256, in hexadecimal, of what is held for its key: its own body, or another.
    """

    outcome: Outcome
    reason: str = ""
    digest: str = ""


class UploadEnded(ReporterError):
    """Raised where an upload goes no further."""

    def __init__(self, outcome: Outcome, reason: str = "", digest: str = "") -> None:
        super().__init__(reason or str(outcome))
        self.ended = Ended(outcome, reason, digest)


FAILURES: Final = (ReporterError, BadArchive, OSError)
"""What may be raised on the way of an upload."""


def ended_by(error: Exception) -> Ended:
    """What an error on the way of a body means for its sender. Repeats no path of ours."""
    match error:
        case UploadEnded():
            return error.ended
        case InvalidPayload() | BadArchive():
            return Ended(Outcome.REFUSED, str(error))
        case StoreFull():
            return Ended(Outcome.DISK_FULL, "no space left")
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return Ended(Outcome.DISK_FULL, "no space left")
        case OSError():
            return Ended(Outcome.UNWRITTEN, error.strerror or type(error).__name__)
        case _:
            return Ended(Outcome.UNWRITTEN, str(error))
