"""Values as lines of YAML, in their order and in blocks; and as JSON, where text is in brackets."""

import json
from collections.abc import Mapping
from typing import Any

from reporter.common.yaml_text import scalar


def block(value: Any, *, inset: bool = False) -> list[str]:
    """Return the lines of a value; `inset` lists stand two columns to the right of their keys."""
    if isinstance(value, Mapping) and value:
        return [line for key in value for line in _member(key, value[key], inset=inset)]
    if isinstance(value, list) and value:
        return [line for each in value for line in _item(each, inset=inset)]
    return [scalar(value)]


def flow(value: Any, indent: str, step: int | None) -> str:
    """Return a value as JSON: on one line, or by `step` columns further in than `indent`."""
    if step is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{indent}")


def _member(key: str, value: Any, *, inset: bool) -> list[str]:
    name = scalar(key)
    if isinstance(value, Mapping) and value:
        return [f"{name}:", *_moved(block(value, inset=inset))]
    if isinstance(value, list) and value:
        lines = block(value, inset=inset)
        return [f"{name}:", *(_moved(lines) if inset else lines)]
    if isinstance(value, str) and (lines := _literal(value)):
        return [f"{name}: {lines[0]}", *_moved(lines[1:])]
    return [f"{name}: {scalar(value)}"]


def _item(value: Any, *, inset: bool) -> list[str]:
    lines = block(value, inset=inset)
    if isinstance(value, str) and (literal := _literal(value)):
        lines = literal
    return [f"- {lines[0]}", *_moved(lines[1:])]


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
