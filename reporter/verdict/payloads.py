"""What an adapter's files say, as plain values.

How the files are read and their content is checked is not here.
"""

from dataclasses import dataclass
from typing import Final

ADAPTER_RESULT: Final = "status-reporter.io/adapter-result.v1"
"""What an adapter's result file is called in the header `Result-Format` of an upload."""


@dataclass(frozen=True, slots=True)
class ResultPayload:
    """A valid result: cleaned text, defaults filled in; `notes` are remarks for the log only.

    `details` are compact JSON, or None where there are none or they were not asked for.
    """

    success: bool
    reason: str
    message: str
    notes: tuple[str, ...] = ()
    details: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest progress: cleaned text, 64-bit integers; what was left out is empty or None."""

    msg: str = ""
    total: int | None = None
    completed: int | None = None
    failures: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Which file was seen, in which state. Times are nanoseconds since the epoch."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class FileAbsent:
    """There is no such file, or no such directory."""


@dataclass(frozen=True, slots=True)
class FileInvalid:
    """There is something that is not a result: `cause` is safe to show.

    The identity is that of the name itself, also for a link or a FIFO; None if it is not known.
    """

    cause: str
    identity: FileIdentity | None


@dataclass(frozen=True, slots=True)
class FileValid:
    """A result, and the state of the file it was read from."""

    result: ResultPayload
    identity: FileIdentity


@dataclass(frozen=True, slots=True)
class FileUnread(FileInvalid):
    """Reading failed in a way that may pass; `before` is the result that the last read found."""

    before: FileValid | None = None


@dataclass(frozen=True, slots=True)
class Searched:
    """Where a result file was looked for in vain, and a few names found there: cleaned and cut."""

    path: str
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What was at RESULTS_PATH when the reporter began, and the wall clock just after that look."""

    identity: FileIdentity | None
    at: float


ResultLook = FileAbsent | FileInvalid | FileValid
