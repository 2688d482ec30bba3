"""The upload of a run's tarball to a store: where to, how it stands, and what the answer means.

A presigned URL is a credential: whoever has it may write there, so nothing here puts more of it
into words than the host.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from reporter.common.objects import stamp
from reporter.common.text import is_host

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


# -- where to --------------------------------------------------------------------------------------

LONGEST_URL: Final = 16 * 1024

_URL = re.compile(
    r"https://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"%([0-7][0-9A-Fa-f])")
_SHAPES = (("x-amz-date", "x-amz-expires"), ("x-goog-date", "x-goog-expires"))
_AZURE: Final = frozenset({"sv", "sr", "sig"})
# Without one of them `Expires` may mean anything, seconds from now for instance.
_SIGNED_AS_OF_OLD: Final = frozenset({"signature", "awsaccesskeyid", "googleaccessid"})


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a PUT goes: host and port, the target of the request, and when that ends (Unix s).

    `target` is a secret. `host` is without brackets. Without `expires_at` the URL does not say.
    """

    host: str
    port: int
    target: str = field(repr=False)
    expires_at: float | None = None

    @property
    def shown(self) -> str:
        """What may be shown of it: the host, and the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 443 else f"{host}:{self.port}"

    @property
    def azure(self) -> bool:
        """Whether it is signed as Azure does it, which asks for a header of its own."""
        return {name for name, _ in _parameters(self.target.partition("?")[2])} >= _AZURE


def read_destination(written: str) -> Destination:
    """Read an `https` URL. Raises ValueError, whose text has nothing of it."""
    if not written:
        raise ValueError("the upload URL is empty")
    if len(written) > LONGEST_URL:
        raise ValueError(f"the upload URL is longer than {LONGEST_URL} characters")
    if not (written.isascii() and written.isprintable()) or " " in written:
        raise ValueError("the upload URL must be one line without spaces, in ASCII")
    if not written.lower().startswith("https://"):
        raise ValueError("the upload URL does not begin with https://")
    found = _URL.fullmatch(written)
    port = int(found["port"] or 443) if found else 0
    if found is None or not 0 < port < 65_536:
        raise ValueError("the upload URL is not https://HOST[:PORT]/PATH[?QUERY]")
    if not is_host(found["host"]):
        raise ValueError("the upload URL does not name a valid host")
    query = found["query"]
    target = (found["path"] or "/") + ("" if query is None else f"?{query}")
    return Destination(found["host"].strip("[]"), port, target, _expiry(query or ""))


def expires_too_soon(destination: Destination, now: float, until: float) -> str:
    """Say why the URL is not valid long enough for a run that may last `until`; else nothing.

    Both are Unix seconds.
    """
    end = destination.expires_at
    if end is None or end >= until:
        return ""
    if end <= now:
        return f"the upload URL expired at {stamp(end)}"
    return (
        f"the upload URL expires at {stamp(end)}, but the run may last until {stamp(until)}, "
        "if every plugin uses its full timeout"
    )


def _expiry(query: str) -> float | None:
    """Return the earliest end that the stores' parameters tell, in Unix seconds."""
    stated = dict(_parameters(query))
    ends: list[float] = []
    for begin, seconds in _SHAPES:
        since = _time(stated.get(begin, ""))
        if since is not None and stated.get(seconds, "").isdecimal():
            ends.append(since + int(stated[seconds][:12]))
    if stated.get("expires", "").isdecimal() and not _SIGNED_AS_OF_OLD.isdisjoint(stated):
        ends.append(float(stated["expires"][:12]))
    if (until := _time(stated.get("se", ""))) is not None:
        ends.append(until)
    return min(ends, default=None)


def _parameters(query: str) -> Iterator[tuple[str, str]]:
    for each in query.split("&"):
        name, _, value = each.partition("=")
        yield name.lower(), _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)


def _time(written: str) -> float | None:
    """Return a time in ISO 8601, basic or extended, as Unix seconds; without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(written)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
