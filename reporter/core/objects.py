"""Tolerant access to API objects: whatever is missing or of the wrong type reads as its empty value.

The API server is trusted to be well meant, not to be well formed: a proxy, a newer version or a
half answer must not end the reporter.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any


def section(value: Any, *path: str) -> Mapping[str, Any]:
    """Return the object found by following `path`, or an empty one."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(value: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of the list under `key`."""
    found = value.get(key)
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, Mapping))


def text(value: Mapping[str, Any], key: str) -> str:
    """Return the string under `key`, or an empty one."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def number(value: Mapping[str, Any], key: str) -> int | None:
    """Return the integer under `key`, or nothing."""
    found = value.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def moment(value: Mapping[str, Any], key: str) -> float | None:
    """Return the RFC 3339 time under `key` in seconds since the epoch.

    The API's zero time is no time.
    """
    return epoch(text(value, key))


def epoch(stamp: str) -> float | None:
    """Read an RFC 3339 time; nothing for an unreadable one, one without offset, or 1970."""
    try:
        parsed = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        return None
    seconds = parsed.timestamp()
    return seconds if seconds > 0 else None


def stamp(seconds: float) -> str:
    """Write a time as the API stores it: whole seconds, UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
