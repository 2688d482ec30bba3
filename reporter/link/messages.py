"""What a worker and its aggregator say to each other: requests, answers, and what callers get.

Values only.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from reporter import __version__
from reporter.common.defaults import METADATA_BYTES
from reporter.common.objects import stamp
from reporter.run.progress import Progress

GLOBAL = "global"
"""The node of a plugin that runs once for the whole cluster."""

PATH_RESULTS_GLOBAL = "/api/v1/results/global"
"""Where results of whole-cluster plugins are PUT: `PATH/PLUGIN`. No `/` at its end."""
PATH_RESULTS_BY_NODE = "/api/v1/results/by-node"
"""Where results of a node are PUT: `PATH/NODE/PLUGIN`."""
PATH_PROGRESS_GLOBAL = "/api/v1/progress/global"
PATH_PROGRESS_BY_NODE = "/api/v1/progress/by-node"
"""Where progress is POSTed, likewise."""

MAX_BODY = 64 * 1024
"""So much of an answer's body is read; answers are a line or a few fields of JSON."""

GZIP = "application/gzip"
UNKNOWN = "application/octet-stream"
_TYPES = {
    ".gz": GZIP,
    ".tgz": GZIP,
    ".json": "application/json",
    ".xml": "text/xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_PROGRESS = ("msg", "total", "completed", "failures", "errors")
_APPENDED = ("appendtotals", "appendcompleted", "appendfailing")
_DIGEST = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/=]+):", re.IGNORECASE)


def global_result_url(base: str, plugin: str, extension: str | None = None) -> str:
    """Return where the one result of `plugin` is PUT.

    `base` is `https://HOST:PORT`; a path in it is dropped. `extension`, without its dot, is for
    older aggregators that know the file by it; this project's aggregator wants none. Raises
    ValueError for a base without scheme or host, an empty name, and names that no path can hold.
    """
    return _url(base, PATH_RESULTS_GLOBAL, [plugin], extension)


def node_result_url(base: str, node: str, plugin: str, extension: str | None = None) -> str:
    """Return where the result of `plugin` on `node` is PUT; as `global_result_url`."""
    return _url(base, PATH_RESULTS_BY_NODE, [node, plugin], extension)


def _url(base: str, path: str, names: list[str], extension: str | None) -> str:
    parts = urlsplit(base)
    if not parts.scheme or not parts.netloc:
        raise ValueError(f"{base[:200]!r} is not https://HOST:PORT")
    if not all(names) or {".", ".."} & {*names}:
        raise ValueError(f"no such names in a path: {names!r}")
    tail = "/".join(quote(name, safe="") for name in names)
    ending = f".{quote(extension, safe='')}" if extension else ""
    return f"{parts.scheme}://{parts.netloc}{path}/{tail}{ending}"


class Request(NamedTuple):
    """What is sent. A body that is not bytes is read once, so it cannot be sent again."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | Iterable[bytes] | None = None


def request(
    method: str,
    kind: str,
    key: tuple[str, str],
    headers: Mapping[str, str] = MappingProxyType({}),
    body: bytes | Iterable[bytes] | None = None,
) -> Request:
    """Make a request for a plugin and its node; `kind` is `results`, `progress` or `health`."""
    plugin, node = (quote(name, safe="") for name in key)
    where = GLOBAL if node == GLOBAL else f"by-node/{node}"
    agent = {"User-Agent": f"status-reporter-link/{__version__}"}
    return Request(method, f"/api/v1/{kind}/{where}/{plugin}", {**agent, **headers}, body)


def digest_header(digest: str) -> str:
    """Write a digest in hex as `Content-Digest` wants it."""
    return f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:"


def disposition(name: str) -> str:
    """Write a file name as `Content-Disposition`: quoted, and in RFC 5987's form if not ASCII."""
    clean = "".join(c for c in name if c.isprintable() or c == " ")
    plain = clean.encode("ascii", "replace").decode().replace("?", "_") or "result"
    quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
    header = f'attachment; filename="{quoted}"'
    if clean.isascii():
        return header
    return f"{header}; filename*=UTF-8''{quote(clean, safe='', errors='replace')}"


def metadata_header(metadata: Mapping[str, str], ended_at: float) -> str:
    """Write what a worker says of itself, as it ends. ValueError if that is too long."""
    told = json.dumps({**metadata, "reporter.ended_at": stamp(ended_at)})
    if len(told) > METADATA_BYTES:
        raise ValueError(f"metadata of {len(told)} bytes is longer than {METADATA_BYTES}")
    return told


def content_type_of(name: str) -> str:
    """Return the content type by the last extension of a file name."""
    return _TYPES.get(PurePath(name).suffix.lower(), UNKNOWN)


def type_of_unreadable(name: str) -> str:
    """Return the content type of a report that stands in for a file which cannot be read.

    Never gzip: an aggregator of Sonobuoy would try to unpack the report.
    """
    kind = content_type_of(name)
    return UNKNOWN if kind == GZIP else kind


def encode_progress(progress: Progress) -> bytes:
    """Encode an update as the aggregator reads it; empty fields are left out."""
    fields = {name: getattr(progress, name) for name in (*_PROGRESS, *_APPENDED)}
    kept = {name: value for name, value in fields.items() if value or name in _PROGRESS[:3]}
    return json.dumps(kept, separators=(",", ":")).encode()


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
class Answer:
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
        busy = self.headers.get("result-busy", "")
        return self.status == 503 and busy.strip().lower() == "true"

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
