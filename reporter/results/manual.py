"""A tree of items in YAML, as a plugin may write it itself: the first document counts.

It is held as a whole, so it has a cap of its own. An alias costs as much as if its part were
written out.
"""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from reporter.common.yaml_scalar import LOADER, scalar
from reporter.results.limits import DEEPEST, UnreadableReport
from reporter.results.tree import Tree

MOST_BYTES: Final = 16 * 2**20
_MOST_EVENTS: Final = 400_000
_MOST_VALUES: Final = 200_000  # of the written-out tree


class Manual:
    """Reads one report into a tree. `feed` and `close` raise `UnreadableReport`.

    The details of the root are in `details`.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._data = bytearray()
        self._values = 0
        self.details: dict[str, Any] = {}

    def feed(self, data: bytes) -> None:
        """Take more of the report."""
        self._data += data
        if len(self._data) > MOST_BYTES:
            raise UnreadableReport(f"larger than {MOST_BYTES} bytes")

    def close(self) -> None:
        """Take the end of the report."""
        try:
            root = _first_document(bytes(self._data))
        except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            where = "" if mark is None else f" in line {mark.line + 1}"
            raise UnreadableReport(f"not valid YAML{where}") from None
        if not isinstance(root, dict):
            raise UnreadableReport("not a tree of results: the document is not a mapping")
        self.details = self._details(root)
        items = _items(root)
        for each in items:
            self._item(each, 1)
        if not items:
            self._tree.leaf(_text(root, "name"), _text(root, "status"), self.details)

    def _item(self, found: Any, depth: int) -> None:
        self._count(depth)
        if not isinstance(found, dict):
            raise UnreadableReport("not a tree of results: an item is not a mapping")
        items = _items(found)
        if not items:
            self._tree.leaf(
                _text(found, "name"), _text(found, "status"), self._details(found), _meta(found)
            )
            return
        self._tree.enter(_text(found, "name"))
        for each in items:
            self._item(each, depth + 1)
        self._tree.leave()

    def _details(self, found: dict[Any, Any]) -> dict[str, Any]:
        details = found.get("details")
        if not isinstance(details, dict):
            return {}
        return {str(key): self._plain(value, 1) for key, value in details.items()}

    def _plain(self, value: Any, depth: int) -> Any:
        self._count(depth)
        if isinstance(value, dict):
            return {str(key): self._plain(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list):
            return [self._plain(each, depth + 1) for each in value]
        return value

    def _count(self, depth: int) -> None:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise UnreadableReport(f"more than {_MOST_VALUES} values")
        if depth > DEEPEST:
            raise UnreadableReport(f"nested more than {DEEPEST} levels deep")


def _items(found: dict[Any, Any]) -> list[Any]:
    items = found.get("items")
    return items if isinstance(items, list) else []


def _text(found: dict[Any, Any], name: str) -> str:
    value = found.get(name)
    return "" if value is None else str(value) if not isinstance(value, dict | list) else ""


def _meta(found: dict[Any, Any]) -> dict[str, str]:
    meta = found.get("meta")
    if not isinstance(meta, dict):
        return {}
    return {str(key): str(each) for key, each in meta.items() if isinstance(each, str | int)}


def _first_document(data: bytes) -> Any:
    """Build the first document from events; an alias gives the value itself, not a copy."""
    anchors: dict[str, Any] = {}
    events = _counted(yaml.parse(data, Loader=LOADER))
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            return _value(next(events), events, anchors, 0)
    return None


def _counted(events: Iterator[Any]) -> Iterator[Any]:
    for at, event in enumerate(events):
        if at > _MOST_EVENTS:
            raise UnreadableReport(f"more than {_MOST_EVENTS} values")
        yield event


def _value(event: Any, events: Iterator[Any], anchors: dict[str, Any], depth: int) -> Any:
    if depth > DEEPEST:
        raise UnreadableReport(f"nested more than {DEEPEST} levels deep")
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in anchors:
            raise UnreadableReport("not valid YAML: an alias without its anchor")
        return anchors[event.anchor]
    found: Any
    if isinstance(event, yaml.MappingStartEvent):
        found = {}
        while not isinstance(key := next(events), yaml.MappingEndEvent):
            name = _value(key, events, anchors, depth + 1)
            value = _value(next(events), events, anchors, depth + 1)
            if isinstance(name, dict | list):
                raise UnreadableReport("not a tree of results: a key is not a text")
            found[name] = value
    elif isinstance(event, yaml.SequenceStartEvent):
        found = []
        while not isinstance(each := next(events), yaml.SequenceEndEvent):
            found.append(_value(each, events, anchors, depth + 1))
    else:
        found = scalar(event)
    if event.anchor is not None:
        anchors[event.anchor] = found
    return found
