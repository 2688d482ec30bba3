"""API objects as YAML text, in the order and the style of `kubectl get -o yaml`.

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


def to_yaml(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return a document, with a line break at its end; keys are sorted."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [line for key in sorted(value) for line in _member(key, value[key])]
    if isinstance(value, list) and value:
        return [line for element in value for line in _indented(_lines(element), "- ")]
    return [scalar(value)]


def _member(key: str, value: Any) -> list[str]:
    name = scalar(key)
    if isinstance(value, Mapping) and value:
        return [f"{name}:", *_indented(_lines(value), "  ")]
    if isinstance(value, list) and value:
        return [f"{name}:", *_lines(value)]
    return [f"{name}: {scalar(value)}"]


def _indented(lines: list[str], first: str) -> list[str]:
    return [(first if at == 0 else "  ") + line for at, line in enumerate(lines)]


def scalar(value: Any) -> str:
    """Return one value that fits on a line; a string stays a string for every reader."""
    if not isinstance(value, str):
        return json.dumps(value)
    if not value.isprintable():
        return f'"{"".join(map(_escaped, value))}"'
    if _is_plain(value):
        return value
    if _is_ambiguous(value):
        return f'"{"".join(map(_escaped, value))}"'
    return "'" + value.replace("'", "''") + "'"


def _is_ambiguous(text: str) -> bool:
    return not text or text.lower() in _WORDS or _MAYBE_NUMBER.fullmatch(text) is not None


def _is_plain(text: str) -> bool:
    if not (text[:1].isalnum() or text[:1] in ("_", "/")) or text.endswith((":", " ")):
        return False
    return ": " not in text and " #" not in text and not _is_ambiguous(text)


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    if 0xD800 <= number < 0xE000:
        return "\ufffd"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
