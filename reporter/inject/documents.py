"""A stream of YAML or JSON documents: cut into texts, each read with the places of its parts."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reporter.common.kubernetes_yaml import DEEPEST, MERGE, Loader, mistake_in, split_json
from reporter.inject.edits import Path

_MARKER = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MOST_REPEATED: Final = 100_000
"""Values that aliases stand for, all together."""


class UnreadableManifest(Exception):
    """No YAML; `line` counts from 1 in the document's text."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its text, its value, and the nodes that it is made of; None if it is empty."""

    text: str
    value: Any
    root: Node | None
    repeated: frozenset[int] = field(default=frozenset())
    """Nodes that aliases stand for: a change of one is a change of all."""

    @property
    def line(self) -> int:
        """The line that it begins at, from 1."""
        return 1 if self.root is None else self.root.start_mark.line + 1

    def nodes(self, path: Path) -> list[Node] | None:
        """Return the nodes on the way to `path`, the root first.

        None where the way leads through a merge key or to what an alias stands for.
        """
        way = [self.root] if self.root is not None else []
        for key in path:
            inner = member(way[-1], key) if way else None
            if inner is None or id(inner[1]) in self.repeated:
                return None
            way.append(inner[1])
        return way


def member(node: Node, key: str | int) -> tuple[Node | None, Node] | None:
    """Return the nodes of a key and its value, or of an item; None if there is none."""
    if isinstance(node, SequenceNode) and isinstance(key, int):
        return (None, node.value[key]) if key < len(node.value) else None
    if not isinstance(node, MappingNode):
        return None
    return next((each for each in reversed(node.value) if each[0].value == key), None)


def split(text: str) -> list[str]:
    """Cut a stream into its documents' texts; together they are the stream again.

    A marker at the beginning of a line is one wherever it stands: YAML has no other use for it.
    JSON needs none between its documents.
    """
    cuts = {0, len(text)}
    for marker in _MARKER.finditer(text):
        at = marker.start()
        cuts.add(at if marker[0] == "---" else (text.find("\n", at) + 1 or len(text)))
    places = sorted(cuts)
    return [each for a, b in pairwise(places) for each in split_json(text[a:b])]


def read(text: str) -> Document:
    """Read one document. Raises UnreadableManifest."""
    plain, known = text, None
    if text.lstrip().startswith("{"):
        plain, known = _as_yaml(text)
    loader = Loader(plain)
    try:
        root = loader.get_single_node()
        built = _Built(loader)
        value = None if root is None else built.value(root, 0)
    except yaml.YAMLError as error:
        raise UnreadableManifest(*mistake_in(plain, error)) from None
    except RecursionError:
        raise UnreadableManifest(1, f"nested more than {DEEPEST} levels deep") from None
    finally:
        loader.dispose()
    return Document(text, value if known is None else known, root, frozenset(built.repeated))


def _as_yaml(text: str) -> tuple[str, Any]:
    """Return JSON as text that YAML's parser takes too, each place where it was, and its value.

    It minds tabs between the parts, which cannot be in JSON's strings, and halves of characters.
    """
    try:
        known = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    return _HALF.sub("\\\\u0020", text.replace("\t", " ")), known


class _Built:
    """Values out of nodes; what an alias stands for is built once."""

    def __init__(self, loader: Any) -> None:
        self.repeated: set[int] = set()
        self._loader, self._more = loader, 0
        self._known: dict[int, tuple[Any, int]] = {}
        self._size = 0

    def value(self, node: Node, depth: int) -> Any:
        self._size += 1
        if id(node) in self._known:
            made, size = self._known[id(node)]
            self.repeated.add(id(node))
            self._more += size
            self._size += size
            if not size or self._more > _MOST_REPEATED:
                raise UnreadableManifest(node.start_mark.line + 1, "aliases that repeat too much")
            # A value of its own: a change of one is none of the other.
            return deepcopy(made)
        if depth > DEEPEST:
            raise UnreadableManifest(
                node.start_mark.line + 1, f"nested more than {DEEPEST} levels deep"
            )
        self._known[id(node)] = (None, 0)
        before = self._size
        if isinstance(node, SequenceNode):
            made = [self.value(each, depth + 1) for each in node.value]
        elif isinstance(node, MappingNode):
            made = self._mapping(node, depth)
        else:
            made = self._scalar(node)
        self._known[id(node)] = (made, self._size - before + 1)
        return made

    def _mapping(self, node: MappingNode, depth: int) -> dict[Any, Any]:
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        for key, value in node.value:
            inner = self.value(value, depth + 1)
            if key.tag == MERGE:
                for each in _merged(inner):
                    merged = {**each, **merged}
            else:
                own[str(key.value) if isinstance(key, ScalarNode) else repr(key.value)] = inner
        return {**merged, **own}

    def _scalar(self, node: Node) -> Any:
        if node.tag.rpartition(":")[2] not in ("bool", "float", "int", "null"):
            return node.value
        try:
            return self._loader.construct_object(node)
        except (ValueError, LookupError, yaml.YAMLError):
            return node.value


def _merged(value: Any) -> Iterator[dict[Any, Any]]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield each
