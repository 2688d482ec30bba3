"""What a worker sends to an aggregator: targets, headers, bodies. Values only."""

import base64
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from reporter import __version__
from reporter.link.config import WorkerConfig
from reporter.link.environment import GLOBAL
from reporter.link.source import GZIP, UNKNOWN, content_type_of
from reporter.run.progress import Progress

PATH_RESULTS_GLOBAL = "/api/v1/results/global"
"""Where results of whole-cluster plugins are PUT: `PATH/PLUGIN`. No `/` at its end."""
PATH_RESULTS_BY_NODE = "/api/v1/results/by-node"
"""Where results of a node are PUT: `PATH/NODE/PLUGIN`."""
PATH_PROGRESS_GLOBAL = "/api/v1/progress/global"
PATH_PROGRESS_BY_NODE = "/api/v1/progress/by-node"
"""Where progress is POSTed, likewise."""


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
    config: WorkerConfig,
    method: str,
    kind: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    body: bytes | Iterable[bytes] | None = None,
) -> Request:
    """Make a request for this worker's key; `kind` is `results`, `progress` or `health`."""
    plugin, node = quote(config.plugin, safe=""), quote(config.node, safe="")
    where = GLOBAL if config.node == GLOBAL else f"by-node/{node}"
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
    spelled = "".join(
        chr(byte) if (chr(byte).isalnum() and byte < 128) or chr(byte) in "-._~" else f"%{byte:02X}"
        for byte in clean.encode("utf-8", "replace")
    )
    return f"{header}; filename*=UTF-8''{spelled}"


def encode_progress(progress: Progress) -> bytes:
    """Encode an update as the aggregator reads it; empty fields are left out."""
    document: dict[str, Any] = {
        "msg": progress.msg,
        "total": progress.total,
        "completed": progress.completed,
        "failures": list(progress.failures),
        "errors": list(progress.errors),
        "appendtotals": progress.appendtotals,
        "appendcompleted": progress.appendcompleted,
        "appendfailing": list(progress.appendfailing),
    }
    kept = {k: v for k, v in document.items() if v or k in {"msg", "total", "completed"}}
    return json.dumps(kept, separators=(",", ":")).encode()


def type_of_unreadable(name: str) -> str:
    """Return the content type of a report that stands in for a file which cannot be read.

    Never gzip: an aggregator of Sonobuoy would try to unpack the report.
    """
    kind = content_type_of(name)
    return UNKNOWN if kind == GZIP else kind
