"""What an answer of the API server means: an object, or a domain error. No I/O here."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from reporter.common.objects import items, section
from reporter.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Expired,
    Forbidden,
    Gone,
    InvalidRequest,
    KubeError,
    NotFound,
    Unauthorized,
    Unavailable,
)

MAX_OBJECT = 4 * 1024 * 1024
"""Largest answer or watch line in bytes. etcd takes objects of about 1.5 MB."""

MAX_ALONE = 16 * 1024 * 1024
"""Largest answer to a request for a list of one object, in bytes.

In JSON a character may be six bytes (`\\u003c`), and some servers send all objects nevertheless.
"""

MAX_REFUSAL = 256 * 1024
"""Largest error answer that is looked into. A 422 repeats the whole patch."""

MAX_WORDS = 1024
"""Longest text of the server's own, in characters."""

_RIGHT_MISSING = re.compile(r'(is forbidden|^forbidden): User "[^"]*" cannot ')
"""How every authorizer's refusal reads; admission has other words with the same code."""


def plain(text: str, limit: int = 300) -> str:
    """Return the text on one line without control characters, cut to `limit` characters."""
    words = "".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def decode_object(data: bytes, kind: str = "") -> dict[str, Any]:
    """Return the object or list; Unavailable without metadata, or if it is not of that kind."""
    found = decode_json(data)
    if (kind and found.get("kind") != kind) or not isinstance(found.get("metadata"), dict):
        raise Unavailable(f"the response is not a {kind or 'list'}")
    return found


def decode_json(data: bytes) -> dict[str, Any]:
    """Return the one JSON object in `data`; Unavailable for anything else."""
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise Unavailable("the response is not JSON") from None
    if not isinstance(found, dict):
        raise Unavailable("the response is not a JSON object")
    return found


def refusal(
    request: str, status: int, headers: Mapping[str, str], data: bytes, now: datetime
) -> KubeError:
    """Return the domain error for an answer that is no success and came `now`.

    `request` says in words what was asked. `retry_after` is what the server asked for, not capped.
    """
    try:
        said = decode_json(data)
    except Unavailable:
        said = {}
    if said.get("kind") != "Status":
        said = {}
    text = plain(f"{request}: {status} {said.get('reason') or ''}: {said.get('message') or ''}")
    words = plain(str(said.get("message") or ""), MAX_WORDS)
    kind = _meaning(request, status, said, words)
    if kind is NotFound:
        return NotFound(text, name=str(section(said, "details").get("name", "")), said=words)
    if kind is not Unavailable:
        return kind(text, said=words)
    if status == 410:
        more = section(said, "metadata").get("continue")
        return Expired(text, more=more if isinstance(more, str) else "", said=words)
    wish = retry_after(headers.get("Retry-After"), now)
    return Unavailable(text, retry_after=wish, said=words)


def _meaning(request: str, status: int, said: dict[str, Any], words: str) -> type[KubeError]:
    match status:
        case 401:
            return Unauthorized
        # Admission has no say in what is only read.
        case 403 if said and not request.startswith("GET ") and not _RIGHT_MISSING.search(words):
            return Denied
        case 403:
            return Forbidden
        # A 404 that is no Status object comes from something in between and says nothing about the
        # object.
        case 404 if said:
            return NotFound
        # A quota that others use at the same moment is a conflict, too.
        case 409 if said.get("reason") == "AlreadyExists":
            return AlreadyExists
        case 409:
            return Conflict
        case 422 if _names_uid(said):
            return Gone
        case 400 | 405 | 406 | 413 | 415 | 422:
            return InvalidRequest
    return Unavailable


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds a Retry-After header asks for (a number or an HTTP date), else None."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return max((moment - now).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _names_uid(said: dict[str, Any]) -> bool:
    causes = items(section(said, "details"), "causes")
    return any(cause.get("field") == "metadata.uid" for cause in causes)
