"""A tree of items in YAML, as a plugin may write it itself: the first document counts.

An alias costs as much as if its part were written out.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import yaml

from reporter.common.kubernetes_yaml import LOADER
from reporter.results.items import VERDICT
from reporter.results.report import DEEPEST, Report, UnreadableReport

_MOST_ITEMS: Final = 200_000  # of the written-out tree
_RESOLVER: Final[Any] = yaml.resolver.Resolver()
_LONGEST: Final = 64 * 2**20  # bytes of one value, characters of what is held of a document


def parse(pieces: Iterator[bytes], report: Report) -> None:
    """Read a report. Raises UnreadableReport."""
    try:
        root = _first_document(Values(pieces, aliases=True))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise UnreadableReport(f"not valid YAML{where}") from None
    if not isinstance(root, dict):
        raise UnreadableReport("not a tree of results: the document is not a mapping")
    _Walk(report).items(_items(root) or [root], 1)


class _Walk:
    def __init__(self, report: Report) -> None:
        self._report, self._left = report, _MOST_ITEMS

    def items(self, items: list[Any], depth: int) -> None:
        if depth > DEEPEST:
            raise UnreadableReport(f"nested more than {DEEPEST} levels deep")
        for found in items:
            self._left -= 1
            if self._left < 0:
                raise UnreadableReport(f"more than {_MOST_ITEMS} items")
            if not isinstance(found, dict):
                raise UnreadableReport("not a tree of results: an item is not a mapping")
            name = _text(found, "name")
            if below := _items(found):
                self._report.enter(name)
                self.items(below, depth + 1)
                self._report.leave()
            else:
                details, meta = (_mapping(found, key) for key in ("details", "meta"))
                meta = {key: str(each) for key, each in meta.items() if isinstance(each, str | int)}
                if meta.get("type") == VERDICT:
                    del meta["type"]  # this is a report
                self._report.test(name, _text(found, "status"), details, meta)


def _items(found: dict[str, Any]) -> list[Any]:
    items = found.get("items")
    return items if isinstance(items, list) else []


def _mapping(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _text(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def _first_document(values: "Values") -> Any:
    values.next()
    if isinstance(values.next(), yaml.StreamEndEvent):
        return None
    return values.value(values.next())


class Values:
    """The values in a stream of YAML, from its events; keys are texts.

    An alias gives the value itself, not a copy, or is refused. Its methods raise UnreadableReport,
    YAMLError, ValueError and RecursionError, and MemoryError before the memory is full.
    """

    def __init__(self, pieces: Iterable[bytes], *, aliases: bool) -> None:
        self._pieces = filter(None, pieces)
        self._aliases = aliases
        self._anchors: dict[str, Any] = {}
        self._since = 0  # bytes read after the last event: the parser holds a value as a whole
        self._events = yaml.parse(self, Loader=LOADER)
        self.held = 0
        """How many characters the values took; the caller takes off what it has given up."""

    def read(self, _: int = -1, /) -> bytes:
        """Return the next bytes, for the parser, which takes any number of them."""
        data = next(self._pieces, b"")
        self._since += len(data)
        if self._since > _LONGEST:
            raise MemoryError("a value is too long")
        return data

    def next(self) -> Any:
        """Return the next event."""
        event = next(self._events)
        self._since = 0
        return event

    def key(self) -> str | None:
        """Read a key; None at the end of the mapping."""
        event = self.next()
        if isinstance(event, yaml.MappingEndEvent):
            return None
        if not isinstance(event, yaml.ScalarEvent):
            raise UnreadableReport("not a tree of results: a key is not a text")
        self._hold(event.value)
        return str(event.value)

    def value(self, event: Any, depth: int = 0) -> Any:
        """Return the value that begins with an event."""
        if depth > DEEPEST:
            raise UnreadableReport(f"nested more than {DEEPEST} levels deep")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise UnreadableReport("not valid YAML: an alias without its anchor")
            return self._anchors[event.anchor]
        found: Any
        if isinstance(event, yaml.MappingStartEvent):
            found = {}
            self._hold("")
            while (name := self.key()) is not None:
                found[name] = self.value(self.next(), depth + 1)
        elif isinstance(event, yaml.SequenceStartEvent):
            found = []
            self._hold("")
            while not isinstance(each := self.next(), yaml.SequenceEndEvent):
                found.append(self.value(each, depth + 1))
        else:
            self._hold(event.value)
            found = _scalar(event)
        if event.anchor is not None and self._aliases:
            self._anchors[event.anchor] = found
        return found

    def _hold(self, value: str) -> None:
        self.held += len(value) + 64  # of the object itself
        if self.held > _LONGEST:
            raise MemoryError("an item is too large")


def _scalar(event: Any) -> Any:
    """Return numbers, truth and nothing as such; everything else is a text."""
    if not event.implicit[0]:
        return event.value
    tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False))
    kind = tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return event.value.lower() in ("true", "yes", "on")
    try:
        if kind == "int":
            return int(event.value)
        if kind == "float":
            return float(event.value)
    except ValueError:
        return event.value
    return event.value
