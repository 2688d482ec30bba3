"""Changes of what stands in brackets: JSON, and YAML's flow style."""

import json
from typing import Any

from yaml.nodes import MappingNode, Node

from reporter.inject.rendering import flow


def new_key(text: str, mapping: Any, key: str, value: Any, *, again: bool) -> tuple[int, str]:
    """Return where a key goes, after the last, and its text. `again`: another one went there."""
    lead, indent, step = _style(text, mapping)
    shown = f"{json.dumps(key)}: {flow(value, indent, step)}"
    if mapping.value:
        return _end_of_last(mapping), f",{lead or ' '}{shown}"
    return mapping.start_mark.index + 1, f", {shown}" if again else shown


def new_item(text: str, sequence: Any, value: Any, *, first: bool, again: bool) -> tuple[int, str]:
    """Return where an item goes, before all others or after them, and its text."""
    lead, indent, step = _style(text, sequence)
    shown = flow(value, indent, step)
    if not sequence.value:
        return sequence.start_mark.index + 1, f", {shown}" if again else shown
    if not first:
        return _end_of_last(sequence), f",{lead or ' '}{shown}"
    return sequence.start_mark.index + 1, f"{lead}{shown}," if lead else f"{shown}, "


def removed(text: str, node: Any, key: str | int) -> tuple[int, int]:
    """Return the part of the text that goes, with the comma before it or after it."""
    parts = [_part(each) for each in node.value]
    names = list(range(len(parts)))
    if isinstance(node, MappingNode):
        names = [each[0].value for each in node.value]
    at = len(names) - 1 - names[::-1].index(key)  # type: ignore[arg-type]
    if at:
        return parts[at - 1][1], parts[at][1]
    opened = node.start_mark.index + 1
    if len(parts) == 1:
        return opened, parts[0][1]
    comma = text.index(",", parts[0][1]) + 1
    return opened, comma if parts[0][0] > opened else parts[1][0]


def _part(each: Any) -> tuple[int, int]:
    key, value = each if isinstance(each, tuple) else (each, each)
    return key.start_mark.index, max(value.end_mark.index, key.end_mark.index)


def _end_of_last(node: Node) -> int:
    return _part(node.value[-1])[1]


def _style(text: str, node: Any) -> tuple[str, str, int | None]:
    """Return what stands before the parts, the last line of it, and the columns of a level.

    No columns where the parts stand on one line, and where a comment stands before them.
    """
    if not node.value:
        return "", "", None
    opened, begun = node.start_mark.index + 1, _part(node.value[0])[0]
    lead = text[opened:begun]
    if lead.strip() or "\n" not in lead:
        return "" if lead.strip() else lead, "", None
    indent = lead.rpartition("\n")[2]
    line = text[text.rfind("\n", 0, opened) + 1 : opened]
    step = len(indent) - (len(line) - len(line.lstrip()))
    return lead, indent, step if step > 0 else None
