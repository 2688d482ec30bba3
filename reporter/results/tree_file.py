"""One `sonobuoy_results.yaml`, read event by event: its size does not matter, what is kept does.

All tests are counted. Those that passed are listed only if asked for, and each list is bounded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from reporter.common.objects import section, text
from reporter.common.yaml_scalar import LOADER, scalar
from reporter.results.found import PluginResults, Test
from reporter.results.not_passed import BAD
from reporter.run.counting import count_in, status_word

_DEEPEST: Final = 100
_LONGEST: Final = 64 * 2**20  # bytes of one value, characters of all items that are open
_LISTED: Final = {True: 256 * 2**20, False: 128 * 2**20}  # characters, of good tests and others
_OBJECTS: Final = 1000  # what a test takes beside its texts
_FIELDS: Final = frozenset({"name", "status", "meta", "details"})


class Pieces:
    """Bytes that come in pieces, as the parser reads them. Raises ValueError for too long a value.

    The parser holds a value as a whole, so `since` has how much was read after the last event.
    """

    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")
        self.since = 0

    def read(self, size: int = 1 << 16, /) -> bytes:
        """Return at most so many bytes; none at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = memoryview(bytes(piece))
        data, self._rest = bytes(self._rest[:size]), self._rest[size:]
        self.since += len(data)
        if self.since > _LONGEST:
            raise ValueError("a value is too long")
        return data


@dataclass(slots=True)
class _Part:
    """An item and what is below it. The paths of the tests are from below, without its own name."""

    status: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    tests: list[tuple[list[str], Mapping[str, Any]]] = field(default_factory=list)
    chosen: bool = False


def read_tree(plugin: str, pieces: Pieces, node: str, *, every: bool) -> PluginResults | None:
    """Read the results of a plugin, or of one node; None if that is not in it.

    Raises ValueError and RecursionError.
    """
    reading = _Reading(pieces, node, every=every)
    try:
        root = reading.document()
    except yaml.YAMLError as error:
        raise ValueError("not valid YAML") from error
    if node and not root.chosen:
        return None
    tests = [_test((plugin, *reversed(above)), fields) for above, fields in root.tests]
    tests.sort(key=lambda test: (test.status not in BAD, test.good))
    found = PluginResults(plugin, root.status, tests)
    found.counts.update(root.counts)
    found.unlisted = sum(reading.unlisted.values())
    return found


def _test(path: tuple[str, ...], fields: Mapping[str, Any]) -> Test:
    word = status_word(text(fields, "status"))
    details, meta = section(fields, "details"), section(fields, "meta")
    return Test(path, text(fields, "name"), word, details, meta)


class _Reading:
    def __init__(self, pieces: Pieces, node: str, *, every: bool) -> None:
        self._pieces, self._node, self._every = pieces, node, every
        self._events: Iterator[Any] = yaml.parse(pieces, Loader=LOADER)
        self._held = 0  # characters of the items that are open
        self._left = dict(_LISTED)
        self.unlisted = {True: 0, False: 0}

    def document(self) -> _Part:
        """Read the only document."""
        self._next()
        if not isinstance(self._next(), yaml.DocumentStartEvent):
            raise ValueError("empty")
        if not isinstance(self._next(), yaml.MappingStartEvent):
            raise ValueError("not a mapping")
        root = _Part()
        self._item(root, 0)
        self._next()
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise ValueError("several documents")
        return root

    def _next(self) -> Any:
        event = next(self._events)
        self._pieces.since = 0
        return event

    def _item(self, part: _Part, depth: int) -> Mapping[str, Any]:
        """Read an item up to its end; return its fields."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        before = self._held
        fields: dict[str, Any] = {}
        listed, below = False, 0
        while (name := self._key(self._next())) is not None:
            event = self._next()
            if name == "items" and isinstance(event, yaml.SequenceStartEvent):
                if listed:
                    raise ValueError("items twice")
                listed, below = True, self._items(part, depth)
                continue
            value = self._value(event, 0)
            if name in _FIELDS:
                fields[name] = value
        size, self._held = self._held - before, before
        if self._node and not depth:
            return fields
        part.status = text(fields, "status")
        if not below:
            self._leaf(part, fields, size)
        elif depth > bool(self._node):
            for above, _ in part.tests:
                above.append(text(fields, "name"))
        for word, many in _unlisted(section(fields, "meta")):
            count_in(part.counts, {word: many})
        return fields

    def _leaf(self, part: _Part, fields: Mapping[str, Any], size: int) -> None:
        word = status_word(text(fields, "status"))
        part.counts[word] = 1
        good = Test((), "", word, {}, {}).good
        if good and not self._every:
            return
        self._left[good] -= size + _OBJECTS
        if self._left[good] < 0:
            self.unlisted[good] += 1
        else:
            part.tests.append(([], fields))

    def _items(self, above: _Part, depth: int) -> int:
        """Read the items of an item; return how many there are."""
        many = 0
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            if not isinstance(event, yaml.MappingStartEvent):
                self._value(event, 0)
                continue
            many += 1
            left, unlisted = dict(self._left), dict(self.unlisted)
            part = _Part()
            fields = self._item(part, depth + 1)
            if self._node and not depth:
                if not self._is_node(fields):
                    self._left, self.unlisted = left, unlisted
                    continue
                if not above.chosen or part.status in BAD:
                    above.status = part.status
                above.chosen = True
            count_in(above.counts, part.counts)
            above.tests += part.tests
        return many

    def _is_node(self, fields: Mapping[str, Any]) -> bool:
        """Whether it is the node that is asked for: tests, its own and others', may be named so."""
        of_node = text(section(fields, "meta"), "type") == "node"
        return of_node and text(fields, "name") == self._node

    def _key(self, event: Any) -> str | None:
        """Return a key as a text; None at the end of the mapping."""
        if isinstance(event, yaml.MappingEndEvent):
            return None
        if not isinstance(event, yaml.ScalarEvent):
            raise ValueError("a key that is not a text, or an alias")
        if event.value == "<<" and event.implicit[0]:
            raise ValueError("a merge key")
        self._hold(event.value)
        return str(event.value)

    def _value(self, event: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        if isinstance(event, yaml.ScalarEvent):
            self._hold(event.value)
            return scalar(event)
        if isinstance(event, yaml.MappingStartEvent):
            found: dict[str, Any] = {}
            self._hold("")
            while (name := self._key(self._next())) is not None:
                found[name] = self._value(self._next(), depth + 1)
            return found
        if isinstance(event, yaml.SequenceStartEvent):
            listed: list[Any] = []
            self._hold("")
            while not isinstance(each := self._next(), yaml.SequenceEndEvent):
                listed.append(self._value(each, depth + 1))
            return listed
        raise ValueError("an alias: written out it may be of any size")

    def _hold(self, value: str) -> None:
        self._held += len(value) + 64  # of the object itself
        if self._held > _LONGEST:
            raise ValueError("an item is too large")


def _unlisted(meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield what a file's list leaves out: `passed: 8, failed: 1`."""
    for part in text(meta, "unlisted").split(", "):
        word, _, many = part.rpartition(": ")
        if word and many.isascii() and many.isdigit():
            yield status_word(word), int(many[:12])
