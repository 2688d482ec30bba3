"""A document's text with another value. Every byte that is not about the change stays as it is.

The places come from the parser. The result is read again and compared with the intended value:
a text that cannot be changed this way is refused, never spoilt.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reporter.common.kubernetes_yaml import Document
from reporter.common.yaml_text import block

_ALIAS = re.compile(r"\s*:\s*\*[^\s,\[\]{}]+")
_BLOCK_STYLES: Final = ("|", ">")
_DEEPEST: Final = 1000  # deeper than any path: a value belongs to the key before it
_MOST_REPEATED: Final = 100_000
"""Values that aliases may stand for, beside those that a text of that length can have."""


class Unplaced(Exception):
    """The text cannot be changed in place: aliases, or a style that is not known here."""


class Cut(NamedTuple):
    """Characters that are replaced. At one place the deepest part comes first."""

    start: int
    end: int
    text: str
    depth: int = 0


def read(text: str, before: int = 0) -> Document:
    """Read one document; `before` lines stand before it in its stream."""
    return Document(text, len(text) // 2 + _MOST_REPEATED, before=before)


def edited(document: Document, value: Any) -> Document:
    """Return the document with another value, to which parts were added or from which some went.

    Raises Unplaced.
    """
    if document.root is None:
        raise Unplaced
    cuts = _Editor(document).changes(document.root, document.root, document.value, value)
    made = read(_carried_out(document.text, cuts), document.before)
    if made.value != value:
        raise Unplaced
    return made


def _carried_out(text: str, cuts: Iterable[Cut]) -> str:
    pieces, at = [], 0
    for cut in sorted(cuts, key=lambda each: (each.start, -each.depth)):
        # Parts that are removed side by side may share a comma or a line break.
        pieces.append(text[at : max(at, cut.start)] + cut.text)
        at = max(at, cut.end)
    return "".join((*pieces, text[at:]))


class _Editor:
    """Where in a text a change is to be made."""

    def __init__(self, document: Document) -> None:
        self._text, self._repeated = document.text, document.repeated
        self._break = "\r\n" if "\r\n" in document.text else "\n"
        self._inset = False
        """Whether lists stand further in than their keys, as far as it was seen."""

    def changes(self, node: Any, key: Node, old: Any, new: Any, depth: int = 0) -> Iterator[Cut]:
        """Yield what is cut out or put in to make a node, the value of a key, another value."""
        if old == new:
            return
        if id(node) in self._repeated:
            raise Unplaced
        if old is None:
            yield self._filled(node, new)
        elif isinstance(node, MappingNode) and isinstance(old, dict) and isinstance(new, dict):
            yield from self._members(node, old, new, depth)
        elif isinstance(node, SequenceNode) and isinstance(old, list) and isinstance(new, list):
            yield from self._items(node, key, old, new, depth)
        else:
            raise Unplaced

    def _members(
        self, node: MappingNode, old: dict[str, Any], new: dict[str, Any], depth: int
    ) -> Iterator[Cut]:
        for key, value in node.value:
            if isinstance(value, SequenceNode) and value.value and not value.flow_style:
                self._inset = value.value[0].start_mark.column - 2 > key.start_mark.column
        # Of a key that appears twice the last counts; what a merge key brings in stands elsewhere.
        places = {key.value: at for at, (key, _) in enumerate(node.value)}
        for name, value in old.items():
            if name in new and new[name] == value:
                continue
            if name not in places:
                raise Unplaced
            if name not in new:
                yield self._removed(node, places[name])
            else:
                key, inner = node.value[places[name]]
                yield from self.changes(inner, key, value, new[name], depth + 1)
        if added := {name: value for name, value in new.items() if name not in old}:
            yield self._added(node, added, depth)

    def _items(
        self, node: SequenceNode, key: Node, old: list[Any], new: list[Any], depth: int
    ) -> Iterator[Cut]:
        shrinks = len(new) < len(old)
        pairs = _matched(new, old) if shrinks else _matched(old, new)
        for fewer, more in enumerate(pairs):
            was, now = (more, fewer) if shrinks else (fewer, more)
            yield from self.changes(node.value[was], key, old[was], new[now], depth + 1)
        if shrinks:
            for at in sorted(set(range(len(old))).difference(pairs)):
                yield self._removed(node, at)
            return
        begin, end = (pairs[0], pairs[-1] + 1) if pairs else (0, 0)
        if end - begin != len(pairs):
            raise Unplaced
        if begin:
            yield self._added(node, new[:begin], depth, first_below=key)
        if new[end:]:
            yield self._added(node, new[end:], depth)

    def _added(
        self,
        node: Any,
        new: dict[str, Any] | list[Any],
        depth: int,
        *,
        first_below: Node | None = None,
    ) -> Cut:
        """Add below a mapping's or a sequence's last part, or before its first, below its key."""
        if node.flow_style or not node.value:
            return self._added_in_brackets(node, new, depth, first=first_below is not None)
        if isinstance(new, dict):
            column = node.value[0][0].start_mark.column
        else:
            dash, line = self._dash(node.value[0])
            column = dash - line
        index = self._end(node) if first_below is None else int(first_below.end_mark.index)
        at, indent = self._line_end(index), " " * column
        lines = block(new, inset=self._inset)
        shown = (f"{self._break}{indent if line else ''}{line}" for line in lines)
        return Cut(at, at, "".join(shown), depth)

    def _added_in_brackets(
        self, node: Any, new: dict[str, Any] | list[Any], depth: int, *, first: bool
    ) -> Cut:
        """Add in JSON, or in YAML's flow style, laid out as the parts that are there."""
        begin = node.start_mark.index + 1
        lead, indent, step = self._layout(node)
        if isinstance(new, dict):
            parts = [
                f"{json.dumps(name)}: {_json(each, indent, step)}" for name, each in new.items()
            ]
        else:
            parts = [_json(each, indent, step) for each in new]
        if not node.value:
            return Cut(begin, begin, ", ".join(parts), depth)
        if first:
            shown = (f"{lead}{part}," if lead else f"{part}, " for part in parts)
            return Cut(begin, begin, "".join(shown), depth)
        end = _extent(node.value[-1])[1]
        return Cut(end, end, "".join(f",{lead or ' '}{part}" for part in parts), depth)

    def _layout(self, node: Any) -> tuple[str, str, int | None]:
        """Return what stands before the parts, the last line of it, and the columns of a level.

        No columns where the parts stand on one line, and where a comment stands before them.
        """
        if not node.value:
            return "", "", None
        opened, begun = node.start_mark.index + 1, _extent(node.value[0])[0]
        lead = self._text[opened:begun]
        if lead.strip() or "\n" not in lead:
            return "" if lead.strip() else lead, "", None
        indent = lead.rpartition("\n")[2]
        line = self._text[self._text.rfind("\n", 0, opened) + 1 : opened]
        step = len(indent) - (len(line) - len(line.lstrip()))
        return lead, indent, step if step > 0 else None

    def _removed(self, node: Any, at: int) -> Cut:
        if node.flow_style:
            return self._removed_in_brackets(node, at)
        part = node.value[at]
        if isinstance(part, tuple):
            key, value = part
            begin = key.start_mark.index
            line = self._text.rfind("\n", 0, begin) + 1
            if self._text[line:begin].strip():
                raise Unplaced
            end = self._line_end(self._end(value, key))
        else:
            _, line = self._dash(part)
            end = self._line_end(self._end(part))
        if line:
            return Cut(self._line_end(line - 1), end, "")
        return Cut(0, min(end + len(self._break), len(self._text)), "")

    def _removed_in_brackets(self, node: Any, at: int) -> Cut:
        """Cut out a part with the comma before it or after it."""
        parts = [_extent(each) for each in node.value]
        if at:
            return Cut(parts[at - 1][1], parts[at][1], "")
        opened = node.start_mark.index + 1
        if len(parts) == 1:
            return Cut(opened, parts[0][1], "")
        comma = self._text.index(",", parts[0][1]) + 1
        return Cut(opened, comma if parts[0][0] > opened else parts[1][0], "")

    def _filled(self, node: Node, new: Any) -> Cut:
        """Give a key a value that it has not."""
        start, end = node.start_mark.index, node.end_mark.index
        space = " " if self._text[start - 1 : start] == ":" else ""
        return Cut(start, end, f"{space}{_json(new)}", _DEEPEST)

    def _line_end(self, index: int) -> int:
        """Return where the line of `index` ends, before its line break."""
        end = self._text.find("\n", index)
        if end < 0:
            return len(self._text)
        return end - 1 if self._text.endswith("\r", 0, end) else end

    def _dash(self, item: Node) -> tuple[int, int]:
        """Return where the dash before an item is, and where its line begins."""
        begin = item.start_mark.index
        while begin and self._text[begin - 1].isspace():
            begin -= 1
        line = self._text.rfind("\n", 0, begin) + 1
        if self._text[line:begin].strip() != "-":
            raise Unplaced
        return begin - 1, line

    def _end(self, node: Any, before: Node | None = None) -> int:
        """Return where the last content of a part ends: a parser counts comments after it too.

        `before` is its key. An alias stands elsewhere than its node.
        """
        if before is not None and node.start_mark.index < before.end_mark.index:
            alias = _ALIAS.match(self._text, before.end_mark.index)
            if alias is None:
                raise Unplaced
            return alias.end()
        if isinstance(node, ScalarNode):
            return self._text_end(node)
        if node.flow_style or not node.value:
            return int(node.end_mark.index)
        if isinstance(node, MappingNode):
            key, value = node.value[-1]
            return self._end(value, key)
        last = node.value[-1]
        if any(last.start_mark.index < each.start_mark.index for each in (node, *node.value[-2:])):
            raise Unplaced
        return self._end(last)

    def _text_end(self, node: ScalarNode) -> int:
        """Return the end of a text; of a literal or folded one with its empty lines."""
        if node.style not in _BLOCK_STYLES:
            return int(node.end_mark.index)
        text = self._text[node.start_mark.index : node.end_mark.index]
        header = text.partition("\n")[0].partition("#")[0]
        if "+" in header and text.endswith("\n"):
            return int(node.end_mark.index) - 1
        return int(node.start_mark.index) + len(text.rstrip())


def _matched(fewer: list[Any], more: list[Any]) -> list[int]:
    """Return where each of a list's items is in the longer list, by their names."""
    found, at = list[int](), 0
    for each in fewer:
        while at < len(more) and _name(more[at]) != _name(each):
            at += 1
        if at == len(more):
            raise Unplaced
        found.append(at)
        at += 1
    return found


def _name(item: Any) -> Any:
    return item.get("name") if isinstance(item, dict) else item


def _extent(part: Any) -> tuple[int, int]:
    """Return where an item, or a key with its value, begins and ends."""
    key, value = part if isinstance(part, tuple) else (part, part)
    return key.start_mark.index, max(value.end_mark.index, key.end_mark.index)


def _json(value: Any, indent: str = "", step: int | None = None) -> str:
    """Return a value as JSON: on one line, or by `step` columns further in than `indent`."""
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{indent}")
