"""YAML with the line of each value: bytes to documents, or what is wrong with them.

Plugin definitions and manifests are read with it; what a document means is not known here.
"""

import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reporter.common import schema
from reporter.common.kubernetes_yaml import DEEPEST, MERGE, Loader, mistake_in, split_json
from reporter.common.schema import Place
from reporter.common.text import clean

_ESCAPED = re.compile(
    r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F]..)|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong in a file. The line counts from 1, the field is empty for a whole document.

    `place` is where it stands in its document.
    """

    line: int
    field: str
    text: str
    place: Place = ()

    def __str__(self) -> str:
        return f"{self.field}: {self.text}" if self.field else self.text


class Document:
    """One document: its value, the line of each part of it, and what is wrong with it.

    The value is None where the document is empty, or larger than `most` values (each alias counted
    as what it stands for). With `merge`, the key `<<` is obeyed, else it is a mistake.
    """

    def __init__(self, loader: Loader, root: Node, most: int, *, merge: bool) -> None:
        self.mistakes: list[Mistake] = []
        self.first = root.start_mark.line + 1
        self._loader, self._lines = loader, dict[Place, int]()
        self._most, self._left, self._merge = most, most, merge
        try:
            self.value = self._build(root, ())
        except _TooMuch as error:
            self.value = None
            self.mistakes.append(Mistake(self.first, "", str(error)))

    def line(self, path: Place) -> int:
        """Return the line of a place, or of what would hold it."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

    def say(self, path: Place, text: str) -> None:
        """Add a mistake with the line of its place."""
        field = clean(schema.field(path), 256)
        self.mistakes.append(Mistake(self.line(path), field, text, path))

    def _build(self, node: Node, path: Place) -> Any:
        """Turn nodes into values. An alias costs as much as what it stands for."""
        self._spend()
        if len(path) > DEEPEST:
            raise _TooMuch(f"nested more than {DEEPEST} levels deep")
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, SequenceNode):
            return [self._build(each, (*path, at)) for at, each in enumerate(node.value)]
        if isinstance(node, MappingNode):
            return dict(self._members(node, path, frozenset()))
        return self._scalar(node, path)

    def _members(
        self, node: MappingNode, path: Place, taken: Set[str]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the members but for those `taken`: first its own, then what it merges."""
        seen, merged = set[str](), list[Node]()
        for key, value in node.value:
            name = str(key.value) if isinstance(key, ScalarNode) else ""
            if self._merge and key.tag == MERGE:
                merged += value.value if isinstance(value, SequenceNode) else [value]
                continue
            if name in taken:
                continue
            self._lines[(*path, name)] = key.start_mark.line + 1
            if key.tag == MERGE:
                self.say((*path, name), "merge keys are not supported")
            elif not isinstance(key, ScalarNode):
                self.say(path, "a key that is not text")
            elif name in seen:
                self.say((*path, name), "appears more than once")
            seen.add(name)
            yield name, self._build(value, (*path, name))
        for each in merged:
            self._spend()
            if isinstance(each, MappingNode):
                for name, built in self._members(each, path, taken | seen):
                    seen.add(name)
                    yield name, built
            else:
                self.say(path, "a merge key whose value is not a mapping")

    def _spend(self) -> None:
        """Count a value, so that aliases of aliases come to an end."""
        if self._left == 0:
            raise _TooMuch(f"more than {self._most} values")
        self._left -= 1

    def _scalar(self, node: Node, path: Place) -> Any:
        if node.tag.rpartition(":")[2] not in ("bool", "float", "int", "null", "str"):
            self.say(path, f"the tag {node.tag!r} is not supported")
            return None
        try:
            return self._loader.construct_object(node)
        except (ValueError, LookupError, yaml.YAMLError):
            self.say(path, "not a valid value of its tag")
            return None


class _TooMuch(Exception):
    """A document that is larger or deeper than it may be."""


def read_documents(
    data: bytes, most_bytes: int, most_values: int, *, merge: bool = False
) -> tuple[list[Document], Mistake | None]:
    """Read all documents of a file, as far as it can be read, and say what ends it too early."""
    if len(data) > most_bytes:
        return [], Mistake(1, "", f"larger than {most_bytes} bytes")
    found: list[Document] = []
    try:
        text = data.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            text = _with_markers(_without_halves(text))
        loader = Loader(text)
        while loader.check_node() and (root := loader.get_node()) is not None:
            found.append(Document(loader, root, most_values, merge=merge))
    except UnicodeDecodeError as error:
        return found, Mistake(data[: error.start].count(b"\n") + 1, "", "not UTF-8")
    except yaml.YAMLError as error:
        line, why = mistake_in(text, error)
        return found, Mistake(line, "", why)
    except RecursionError:
        return found, Mistake(1, "", f"nested more than {DEEPEST} levels deep")
    return found, None


def _without_halves(text: str) -> str:
    """Return JSON without the halves of characters that it may escape, and YAML may not."""
    return _ESCAPED.sub(_whole, text)


def _with_markers(text: str) -> str:
    """Return JSON objects that stand one after another as YAML's documents, lines kept if it can.

    Only objects on one line get lines of their own.
    """
    first, *others = split_json(text)
    parts = [first]
    for each in others:
        parts += ["" if parts[-1].endswith("\n") else "\n", "--- ", each]
    return "".join(parts)


def _whole(escaped: re.Match[str]) -> str:
    pair, half = escaped.groups()
    return str(json.loads(f'"\\{pair}"')) if pair else "\ufffd" if half else escaped[0]
