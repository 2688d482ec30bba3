"""What the HTTP endpoint says: from the bytes of a request's head to the bytes of its answer.

No sockets and no waiting here. What is healthy and what the metrics are is decided by the callables
of a `Site`; they must not block.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from reporter.metrics.page import Page
from reporter.runtime import log

_PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(frozen=True)
class Site:
    """Where the answers come from.

    `page` renders the metrics for an `Accept` header. `alive` says whether the main loop still
    turns. `checks` returns each readiness check's name with its problem, or None where all is well.
    """

    page: Callable[[str], Page]
    alive: Callable[[], bool]
    checks: Callable[[], Mapping[str, str | None]]


class Answer(NamedTuple):
    """Bytes to send; `scrape` says of a metrics page whether it shows a final verdict."""

    data: bytes
    scrape: bool | None = None


def answer(site: Site, head: bytes) -> Answer:
    """Answer one request, given everything up to its empty line. Never raises."""
    request, *lines = head.decode("latin-1").split("\r\n")
    words = request.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return refusal(400)
    method, target, _ = words
    path, _, query = target.partition("?")
    whole = method != "HEAD"
    if path not in ("/metrics", "/livez", "/healthz", "/readyz"):
        return refusal(404, whole=whole)
    if method not in ("GET", "HEAD"):
        return refusal(405)
    try:
        if path == "/metrics":
            body, content_type, final = site.page(_accept(lines))
            return Answer(
                _encode(200, body, content_type, whole=whole), scrape=final if whole else None
            )
        if path == "/readyz":
            status, text = _readiness(site.checks(), verbose="verbose" in query.split("&"))
        elif site.alive():
            status, text = 200, "ok"
        else:
            status, text = 503, f"{path[1:]} check failed"
    except Exception as error:
        log.get().error("Endpoint could not answer", path=path, error=error)
        return refusal(500, whole=whole)
    return Answer(_encode(status, f"{text}\n".encode("utf-8", "replace"), whole=whole))


def refusal(status: int, *, whole: bool = True) -> Answer:
    """Return the answer to a request that gets nothing else."""
    return Answer(_encode(status, f"{_PHRASES[status]}\n".encode(), whole=whole))


def _accept(lines: list[str]) -> str:
    fields = (line.partition(":") for line in lines)
    return ",".join(value.strip() for name, _, value in fields if name.lower() == "accept")


def _readiness(checks: Mapping[str, str | None], *, verbose: bool) -> tuple[int, str]:
    """Print checks as Kubernetes does: in full when asked for or when one has failed."""
    ready = all(problem is None for problem in checks.values())
    if ready and not verbose:
        return 200, "ok"
    lines = [
        f"[+]{name} ok" if problem is None else f"[-]{name} failed: {' '.join(problem.split())}"
        for name, problem in checks.items()
    ]
    lines.append(f"readyz check {'passed' if ready else 'failed'}")
    return 200 if ready else 503, "\n".join(lines)


def _encode(
    status: int, body: bytes, kind: str = "text/plain; charset=utf-8", *, whole: bool = True
) -> bytes:
    """Put the answer together; without its body unless `whole`, as HEAD asks."""
    lines = [
        f"HTTP/1.1 {status} {_PHRASES[status]}",
        f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if status == 405:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join([*lines, "\r\n"]).encode("latin-1")
    return head + body if whole else head
