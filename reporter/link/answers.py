"""What an aggregator answers: how it is read, and the values a caller gets."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

MAX_BODY = 64 * 1024
"""So much of an answer's body is read; answers are a line or a few fields of JSON."""

_DIGEST = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/=]+):", re.IGNORECASE)


class Outcome(StrEnum):
    """How a delivery ended."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    GAVE_UP = "gave_up"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a delivery ended.

    `status` is the last HTTP status (0: no answer), `attempts` the number of requests tried,
    `digest` the SHA-256 of what was sent, in hex. `text` is one line about what went wrong. `held`
    is the digest of the result that the aggregator has; after `DUPLICATE` it may be a different
    one.
    """

    outcome: Outcome
    status: int = 0
    attempts: int = 0
    digest: str = ""
    text: str = ""
    held: str = ""

    @property
    def delivered(self) -> bool:
        """Whether the aggregator has a result of this worker, from now or from before."""
        return self.outcome in {Outcome.ACCEPTED, Outcome.DUPLICATE}

    @property
    def facts(self) -> dict[str, str | int]:
        """What a log line says beside the outcome and the text."""
        return {"status": self.status, "attempts": self.attempts, "digest": self.digest}


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of the aggregator to a progress update."""

    status: int
    body: bytes = b""
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer of the aggregator to a heartbeat.

    `interval` is the interval in seconds that it asks for, if it does. `features` are what it can
    do beyond Sonobuoy's: `heartbeat`, `outcome`, `digest`, `progress-id`.
    """

    status: int
    interval: float | None = None
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AggregatorAnswer:
    """An HTTP answer: `headers` by lower-case name, the start of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def line(self) -> str:
        """The answer for people."""
        words = " ".join(self.body[:200].decode("utf-8", "replace").split())
        return f"{self.status} {words}".strip()

    @property
    def digest(self) -> str:
        """`Result-Digest` as hex; empty when absent or unreadable."""
        with suppress(binascii.Error):
            if found := _DIGEST.search(self.headers.get("result-digest", "")):
                return base64.b64decode(found[1], validate=True).hex()
        return ""

    @property
    def retry_after(self) -> float | None:
        """`Retry-After` in seconds; the form with a date is not used by aggregators."""
        text = self.headers.get("retry-after", "").strip()
        return float(text) if re.fullmatch(r"[0-9]{1,9}", text) else None

    @property
    def busy(self) -> bool:
        """Whether the aggregator had no room for the upload, which is not a failure."""
        said = self.headers.get("result-busy", "")
        return self.status == 503 and said.strip().lower() == "true"

    @property
    def features(self) -> frozenset[str]:
        """`Aggregator-Features` as words."""
        words = self.headers.get("aggregator-features", "").split(",")
        return frozenset(word.strip().lower() for word in words if word.strip())

    @property
    def interval(self) -> float | None:
        """`interval_seconds` of a heartbeat's answer, if it is a sensible one."""
        with suppress(ValueError, RecursionError):
            document = json.loads(self.body)
            seconds = document.get("interval_seconds") if isinstance(document, dict) else None
            if isinstance(seconds, int | float) and not isinstance(seconds, bool):
                return float(seconds) if 1 <= seconds <= 3600 else None
        return None
