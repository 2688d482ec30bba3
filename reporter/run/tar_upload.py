"""The upload of a run's tarball to a store: how it stands, and what the store's answer means."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LARGEST: Final = 5 * 1024**3
"""The bytes that object stores take in one PUT."""

_LATER = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
_CODE = re.compile(rb"<Code>([A-Za-z]{1,40})</Code>")


class UploadState(StrEnum):
    """How far the upload is; one way only."""

    WAITING = "waiting"  # for the tarball
    UPLOADING = "uploading"  # or about to try again
    UPLOADED = "uploaded"
    FAILED = "failed"  # given up; the tarball stays where it is


OVER: Final = frozenset({UploadState.UPLOADED, UploadState.FAILED})


@dataclass(frozen=True, slots=True)
class TarUpload:
    """How the upload to `host` stands since `at`; `since` is when it began.

    `error` says what was wrong with the last try, or what may become wrong with the first.
    """

    host: str
    state: UploadState
    at: float
    error: str = ""
    since: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more is tried."""
        return self.state in OVER


def too_large(size: int) -> str:
    """Say why results of so many bytes may make a tarball that no store takes; else nothing."""
    if size <= LARGEST:
        return ""
    return (
        f"the results have {size} bytes so far, and object stores accept at most {LARGEST} in one "
        "upload"
    )


class PutOutcome(StrEnum):
    """What becomes of an upload after one try."""

    DONE = "done"
    AGAIN = "again"
    NEVER = "never"


def put_outcome(status: int) -> PutOutcome:
    """Say what an answer means: what another try cannot change is final.

    A redirect is: the URL is signed for its own host, and the results must not go to another one
    that nobody has named.
    """
    if 200 <= status < 300:
        return PutOutcome.DONE
    if status in _LATER or (status >= 500 and status not in _NEVER):
        return PutOutcome.AGAIN
    return PutOutcome.NEVER


def error_code(body: bytes, target: str) -> str:
    """Return the error code in a store's answer, if there is one.

    Nothing else of the body may be shown, nor anything of `target`: stores send back what was
    signed, and with which key.
    """
    found = _CODE.search(body)
    code = found[1].decode() if found else ""
    return "" if code in target else code
