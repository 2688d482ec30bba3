"""Label selectors as Kubernetes writes and applies them; node affinity has the same operators."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_KEY = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_ONE = re.compile(
    rf"\s*(?:!\s*(?P<absent>{_KEY})"
    rf"|(?P<key>{_KEY})(?:\s*(?P<sign>==|=|!=|>|<)\s*(?P<value>{_VALUE})"
    r"|\s+(?P<word>in|notin)\s*\((?P<set>[^()]*)\))?)\s*"
)
_COMMA = re.compile(r",(?![^()]*\))")
_INTEGER = re.compile(r"[-+]?[0-9]{1,19}")
_OPERATORS: Final = {
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    ">": "Gt",
    "<": "Lt",
    "in": "In",
    "notin": "NotIn",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that labels must fulfil; operators are named as in node affinity."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether labels fulfil it. An operator that nobody knows is fulfilled by none."""
        value = labels.get(self.key)
        match self.operator:
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Gt" | "Lt" if value is not None and len(self.values) == 1:
                return _ordered(value, self.values[0], self.operator)
            case _:
                return False


def parse(text: str) -> tuple[Requirement, ...]:
    """Read a selector; an empty one selects everything. Raises ValueError with what is wrong."""
    return tuple(_one(piece) for piece in _COMMA.split(text)) if text.strip() else ()


def _one(piece: str) -> Requirement:
    found = _ONE.fullmatch(piece)
    if found is None:
        raise ValueError(f"{piece.strip()[:80]!r} is not a label requirement")
    if found["absent"]:
        return Requirement(found["absent"], "DoesNotExist")
    how = found["sign"] or found["word"]
    if how is None:
        return Requirement(found["key"], "Exists")
    values = (found["value"] if found["sign"] else found["set"]).split(",")
    values = [value.strip() for value in values]
    for value in values:
        if not re.fullmatch(_VALUE, value):
            raise ValueError(f"{value[:80]!r} is not a label value")
    if how in "<>" and not _INTEGER.fullmatch(values[0]):
        raise ValueError(f"{values[0][:80]!r} is not an integer")
    return Requirement(found["key"], _OPERATORS[how], tuple(values))


def _ordered(value: str, limit: str, operator: str) -> bool:
    if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(limit)):
        return False
    return int(value) > int(limit) if operator == "Gt" else int(value) < int(limit)
