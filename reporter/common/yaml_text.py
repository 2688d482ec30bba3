"""API objects as YAML text, in the style of `kubectl get -o yaml`.

Only what such objects are made of: maps, lists, strings, numbers, booleans, null. Long lines are
not folded. PyYAML leaves `1e3` and `y` unquoted and is slow: docs/decisions/0006-dependencies.md.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# Words that YAML 1.1 readers do not take for strings.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_MAYBE_NUMBER = re.compile(r"[-+.0-9][-+.:_ 0-9A-Fa-fxXoOtTzZ]*|\.(?i:inf|nan)")  # or a time
_SPECIAL = re.compile(": | #")


def to_yaml(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return a document, with a line break at its end; keys are sorted."""
    return "".join(f"{line}\n" for line in _lines(value, inset=False, written=False))


def block(value: Any, *, inset: bool = False) -> list[str]:
    """Return the lines of a value as people write it: keys in their order, long texts in lines.

    `inset` lists stand two columns to the right of their keys.
    """
    return _lines(value, inset=inset, written=True)


def _lines(value: Any, *, inset: bool, written: bool) -> list[str]:
    if isinstance(value, Mapping) and value:
        lines = []
        for key in value if written else sorted(value):
            each = value[key]
            inner = _lines(each, inset=inset, written=written)
            if isinstance(each, Mapping) and each:
                lines += [f"{scalar(key)}:", *_moved(inner)]
            elif isinstance(each, list) and each:
                lines += [f"{scalar(key)}:", *(_moved(inner) if inset else inner)]
            else:
                lines += [f"{scalar(key)}: {inner[0]}", *_moved(inner[1:])]
        return lines
    if isinstance(value, list) and value:
        lines = []
        for each in value:
            first, *rest = _lines(each, inset=inset, written=written)
            lines += [f"- {first}", *_moved(rest)]
        return lines
    return (_literal(value) if written and isinstance(value, str) else []) or [scalar(value)]


def _moved(lines: list[str]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]


def _literal(value: str) -> list[str]:
    """Return a text of several lines as people write it; nothing where that could change it."""
    *lines, rest = value.split("\n")
    if not lines or not lines[0] or lines[0][0].isspace():
        return []
    if not all(line.isprintable() and line == line.rstrip() for line in (*lines, rest)):
        return []
    if not rest and not lines[-1]:
        return []
    return ["|" if not rest else "|-", *lines, *([rest] if rest else [])]


def scalar(value: Any) -> str:
    """Return one value that fits on a line; a string stays a string for every reader."""
    if not isinstance(value, str):
        return json.dumps(value)
    ambiguous = not value or value.lower() in _WORDS or _MAYBE_NUMBER.fullmatch(value)
    if ambiguous or not value.isprintable():
        return f'"{"".join(map(_escaped, value))}"'
    begins_plainly = value[0].isalnum() or value[0] in "_/"
    if begins_plainly and not value.endswith((":", " ")) and not _SPECIAL.search(value):
        return value
    return "'" + value.replace("'", "''") + "'"


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    if 0xD800 <= number < 0xE000:
        return "\ufffd"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
