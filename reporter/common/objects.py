"""Tolerant access to API objects: what is missing or of the wrong type reads as its empty value.

A proxy, a newer version of the API or a partial answer must not end the reporter.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

Object = Mapping[str, Any]
"""One as the Kubernetes API has it, in JSON."""
Place = tuple[str | int, ...]
"""Where a value stands in another: member names and list positions."""

_INT64 = range(-(2**63), 2**63)  # every integer of the API; a larger one would not fit a float
_LAST_SECOND = 253_402_300_799  # of the year 9999: later times have no date
_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18}))"
    r"(?:(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?[0-9]{1,2}))?",
    re.ASCII,
)
_UNITS: Final = {
    **{unit: Decimal(1000) ** power for power, unit in enumerate("num", -3)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def json_object(written: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object that is written there; nothing for anything else."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


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
    """Return the 64-bit integer under `key`, or None."""
    found = value.get(key)
    return found if type(found) is int and found in _INT64 else None


def field(place: Place) -> str:
    """Return a place as people write it: `failures[3]`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in place]
    return "".join(steps).removeprefix(".")


def moment(value: Mapping[str, Any], key: str) -> float | None:
    """Return the RFC 3339 time under `key` in seconds since the epoch.

    The API's zero time reads as None.
    """
    return epoch(text(value, key))


def epoch(stamp: str) -> float | None:
    """Read an RFC 3339 time; None if it is unreadable, has no offset or is of 1970."""
    try:
        parsed = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        return None
    seconds = parsed.timestamp()
    return seconds if seconds > 0 else None


def stamp(seconds: float) -> str:
    """Write a time as the API stores it: whole seconds, UTC.

    A time outside the calendar becomes the nearest inside: an adapter can set the times of a file
    to anything.
    """
    dated = int(min(max(0, seconds), _LAST_SECOND))
    return datetime.fromtimestamp(dated, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def quantity(written: str) -> Decimal | None:
    """Read a quantity, as `64Mi`, `1G`, `0.5`, `100m` or `1e3`; None for anything else."""
    found = _QUANTITY.fullmatch(written)
    if found is None:
        return None
    number, unit, exponent = found.groups()
    if exponent is not None:
        return Decimal(number).scaleb(int(exponent))
    return Decimal(number) * _UNITS.get(unit, Decimal(1))


@dataclass(frozen=True, slots=True)
class View:
    """What every object of the API may have."""

    found: Object

    @property
    def metadata(self) -> Object:
        return section(self.found, "metadata")

    @property
    def name(self) -> str:
        return text(self.metadata, "name")

    @property
    def namespace(self) -> str:
        return text(self.metadata, "namespace")

    @property
    def uid(self) -> str:
        return text(self.metadata, "uid")

    @property
    def created(self) -> float | None:
        return moment(self.metadata, "creationTimestamp")

    @property
    def deleting(self) -> bool:
        """Whether somebody has deleted it, and it waits for its grace period or a finalizer."""
        return bool(text(self.metadata, "deletionTimestamp"))

    @property
    def labels(self) -> Object:
        return section(self.metadata, "labels")

    @property
    def annotations(self) -> Object:
        return section(self.metadata, "annotations")

    @property
    def owners(self) -> Iterator[Object]:
        return items(self.metadata, "ownerReferences")

    @property
    def conditions(self) -> Iterator[Object]:
        return items(section(self.found, "status"), "conditions")

    def condition(self, *kinds: str, status: str) -> Object:
        """Return the first condition of these types with that status, or an empty one."""
        for each in self.conditions:
            if text(each, "type") in kinds and text(each, "status") == status:
                return each
        return {}
