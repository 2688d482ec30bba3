"""Changes of a document's text. Every byte that they are not about stays as it is.

The places come from the parser. The result is read again and compared with the intended value:
a text that cannot be changed this way is refused, never spoilt.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reporter.inject import brackets
from reporter.inject.documents import Document, UnreadableManifest, member, read
from reporter.inject.edits import Add, Edit, Path, Put, Remove, apply, get, holder
from reporter.inject.rendering import block

_ALIAS = re.compile(r"\s*:\s*\*[^\s,\[\]{}]+")
_BLOCK_STYLES = ("|", ">")
_DEEPEST = 1000  # deeper than any path: a value belongs to the key before it


class Unplaced(Exception):
    """The text cannot be changed in place: aliases, or a style that is not known here."""


class Cut(NamedTuple):
    """Characters that are replaced. At one place the deepest part comes first."""

    start: int
    end: int
    text: str
    depth: int = 0


def edited(document: Document, edits: Sequence[Edit]) -> str:
    """Return the document's text with all changes made. Raises Unplaced."""
    editor = _Editor(document)
    cuts = [cut for edit in edits for cut in editor.cuts(edit)]
    made = _carried_out(document.text, cuts)
    try:
        same = read(made).value == apply(document.value, edits)
    except UnreadableManifest:
        same = False
    if not same:
        raise Unplaced
    return made


def _carried_out(text: str, cuts: list[Cut]) -> str:
    pieces, at = [], 0
    for cut in sorted(cuts, key=lambda each: (each.start, -each.depth)):
        # Parts that are removed side by side may share a comma or a line break.
        pieces.append(text[at : max(at, cut.start)] + cut.text)
        at = max(at, cut.end)
    return "".join((*pieces, text[at:]))


class _Editor:
    """Where in a text a change is to be made."""

    def __init__(self, document: Document) -> None:
        self._document, self._text = document, document.text
        self._break = "\r\n" if "\r\n" in document.text else "\n"
        self._added: set[Path] = set()

    def cuts(self, edit: Edit) -> Iterator[Cut]:
        """Yield what is cut out or put in for one change."""
        way = self._document.nodes(holder(edit))
        if not way:
            raise Unplaced
        match edit:
            case Put(path, new) if found := member(way[-1], path[-1]):
                if get(self._document.value, path) is not None:
                    raise Unplaced
                yield self._filled(found[1], new)
            case Put(path, new):
                yield self._new_key(way[-1], path, new)
            case Add(path, new, first):
                yield self._new_item(way, path, new, first=first)
            case Remove(path):
                yield self._removed(way[-1], path)

    def _new_key(self, mapping: Node, path: Path, new: Any) -> Cut:
        depth = len(path)
        again = path[:-1] in self._added
        self._added.add(path[:-1])
        if not isinstance(mapping, MappingNode):
            raise Unplaced
        if mapping.flow_style or not mapping.value:
            at, text = brackets.new_key(self._text, mapping, str(path[-1]), new, again=again)
            return Cut(at, at, text, depth)
        column = mapping.value[0][0].start_mark.column
        lines = block({path[-1]: new}, inset=self._inset(mapping))
        return self._below(self._end(mapping), lines, column, depth)

    def _new_item(self, way: list[Node], path: Path, new: Any, *, first: bool) -> Cut:
        sequence, depth = way[-1], len(path) + 1
        again = path in self._added
        self._added.add(path)
        if not isinstance(sequence, SequenceNode):
            raise Unplaced
        if sequence.flow_style or not sequence.value:
            at, text = brackets.new_item(self._text, sequence, new, first=first, again=again)
            return Cut(at, at, text, depth)
        dash, line = self._dash(sequence.value[0])
        column = dash - line
        lines = block([new], inset=self._inset(way[-2]))
        if not first:
            return self._below(self._end(sequence), lines, column, depth)
        key, _ = member(way[-2], path[-1]) or (None, None)
        if key is None or key.end_mark.line >= sequence.value[0].start_mark.line:
            raise Unplaced
        return self._below(key.end_mark.index, lines, column, depth)

    def _removed(self, node: Node, path: Path) -> Cut:
        if not isinstance(node, MappingNode | SequenceNode):
            raise Unplaced
        if node.flow_style:
            start, end = brackets.removed(self._text, node, path[-1])
            return Cut(start, end, "")
        found = member(node, path[-1])
        if found is None:
            raise Unplaced
        key, value = found
        if key is None:
            _, line = self._dash(value)
        else:
            begin = key.start_mark.index
            line = self._text.rfind("\n", 0, begin) + 1
            if self._text[line:begin].strip():
                raise Unplaced
        end = self._line_end(self._end(value, key))
        if line:
            return Cut(self._line_end(line - 1), end, "")
        return Cut(0, min(end + len(self._break), len(self._text)), "")

    def _filled(self, node: Node, new: Any) -> Cut:
        """Give a key a value that it has not."""
        start, end = node.start_mark.index, node.end_mark.index
        space = " " if self._text[start - 1 : start] == ":" else ""
        return Cut(start, end, f"{space}{json.dumps(new, ensure_ascii=False)}", _DEEPEST)

    def _below(self, index: int, lines: list[str], column: int, depth: int) -> Cut:
        """Put lines after the one of `index`."""
        at = self._line_end(index)
        indent = " " * column
        shown = (f"{self._break}{indent if line else ''}{line}" for line in lines)
        return Cut(at, at, "".join(shown), depth)

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

    def _inset(self, mapping: Node) -> bool:
        """Return whether lists stand further in than their keys, as far as this object shows."""
        for key, value in mapping.value:
            if isinstance(value, SequenceNode) and value.value and not value.flow_style:
                return bool(value.value[0].start_mark.column - 2 > key.start_mark.column)
        return False

    def _end(self, node: Node, before: Node | None = None) -> int:
        """Return where the last content of a part ends: a parser counts comments after it too.

        `before` is its key. An alias stands elsewhere than its node.
        """
        if before is not None and node.start_mark.index < before.end_mark.index:
            alias = _ALIAS.match(self._text, before.end_mark.index)
            if alias is None:
                raise Unplaced
            return alias.end()
        if isinstance(node, ScalarNode):
            if node.style not in _BLOCK_STYLES:
                return int(node.end_mark.index)
            return self._block_end(node)
        if node.flow_style or not node.value:  # type: ignore[attr-defined]
            return int(node.end_mark.index)
        if isinstance(node, MappingNode):
            key, value = node.value[-1]
            return self._end(value, key)
        last = node.value[-1]
        if last.start_mark.index < node.start_mark.index:
            raise Unplaced
        if len(node.value) > 1 and last.start_mark.index < node.value[-2].start_mark.index:
            raise Unplaced
        return self._end(last)

    def _block_end(self, node: ScalarNode) -> int:
        """Return the end of a literal or folded text, with the empty lines that belong to it."""
        text = self._text[node.start_mark.index : node.end_mark.index]
        header = text.partition("\n")[0].partition("#")[0]
        if "+" in header and text.endswith("\n"):
            return int(node.end_mark.index) - 1
        return int(node.start_mark.index) + len(text.rstrip())
