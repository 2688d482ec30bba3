"""What a run's plugins say: `sonobuoy_results.yaml` out of a tarball or a directory.

The tarballs are the aggregator's or Sonobuoy's. Their contents come from outside: nothing is
unpacked, and each file is read event by event, so its size does not matter. All tests are counted.
Those that passed are listed only if asked for, and each list is bounded.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import yaml

from reporter.common.objects import items, section, text
from reporter.results.items import BAD, GOOD, VERDICT, said
from reporter.results.manual import Values
from reporter.results.report import UnreadableReport
from reporter.run.plan import GLOBAL
from reporter.run.results import (
    ResultStatus,
    count_in,
    status_word,
    verdict_of,
    without_result,
)
from reporter.run.view import Row
from reporter.runctl import archive
from reporter.runctl.server import StatusServer

NAME: Final = "sonobuoy_results.yaml"
_FILE: Final = re.compile(f"plugins/([^/]+)/{re.escape(NAME)}")
_DEEPEST: Final = 100  # items within items
_LISTED: Final = {True: 256 * 2**20, False: 128 * 2**20}  # characters, of good tests and others
_OBJECTS: Final = 1000  # what a test takes beside its texts
_FIELDS: Final = frozenset({"name", "status", "meta", "details"})


@dataclass(frozen=True, slots=True)
class Test:
    """One test: its name, the names above it, from the plugin on, and what is said of it."""

    name: str
    status: str
    path: list[str]
    details: Mapping[str, Any]
    meta: Mapping[str, Any]

    @property
    def good(self) -> bool:
        """Whether nothing speaks against it."""
        return self.status in GOOD

    @property
    def said(self) -> str:
        """What a failed test says, the most telling of its details first."""
        return said(self.details, self.meta)


@dataclass
class PluginResults:
    """The results of a plugin.

    `unlisted` is how many tests are counted and not kept, `written` the file as it is.
    """

    name: str
    status: str
    tests: list[Test]
    counts: Counter[str]
    unlisted: int
    written: IO[bytes] | None = None

    @property
    def verdict(self) -> str:
        """What it means. A file that says better of itself than its tests do is not believed."""
        return self.status if self.status in BAD else verdict_of(self.counts)


@dataclass
class Results:
    """The results of a run by plugin, and what cannot be read, in words."""

    plugins: list[PluginResults] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_results(
    path: Path, plugin: str = "", node: str = "", *, every: bool = True, written: bool = False
) -> Results:
    """Read the results of all plugins, or of one; of all nodes, or of one.

    Without `every`, tests that passed are only counted. `written` keeps the files as they are.
    Raises OSError, and BadArchive for an archive that is damaged.
    """
    found = Results()
    for name, pieces in archive.members(path, f"plugins/*/{NAME}"):
        match = _FILE.fullmatch(name)
        if match is None or pieces is None or plugin not in ("", match[1]):
            continue
        copy = tempfile.TemporaryFile() if written else None  # noqa: SIM115  # who shows it reads it
        try:
            made = read_tree(match[1], _copied(pieces, copy), node, every=every)
        except ValueError:
            found.problems.append(f"plugin {match[1]}: {NAME} cannot be read")
            continue
        if made is not None:
            made.written = copy
            found.plugins.append(made)
    found.plugins.sort(key=lambda each: each.name)
    found.problems.sort()
    return found


def _copied(pieces: Iterable[bytes], copy: IO[bytes] | None) -> Iterator[bytes]:
    for piece in pieces:
        if copy is not None:
            copy.write(piece)
        yield piece


def read_tree(
    plugin: str, pieces: Iterable[bytes], node: str, *, every: bool
) -> PluginResults | None:
    """Read the results of a plugin, or of one node; None if that is not in it.

    Raises ValueError.
    """
    reading = _Reading(pieces, node, every=every)
    try:
        root = reading.document()
    except (yaml.YAMLError, UnreadableReport, RecursionError, MemoryError) as error:
        raise ValueError("not a tree of results, or too large") from error
    status, chosen = text(root.fields, "status"), reading.chosen
    if node:
        if not chosen:
            return None
        status = next((each for each in chosen if each in BAD), chosen[0])
    tests = [_test([plugin, *reversed(above)], fields) for above, fields in root.tests]
    tests.sort(key=lambda test: (test.status not in BAD, test.good))
    return PluginResults(plugin, status, tests, Counter(root.counts), reading.unlisted)


def single_results(
    server: StatusServer, entries: Sequence[Row], plugin: str, node: str
) -> Results | None:
    """Ask for what the results that have arrived say; nothing where none says anything yet.

    Tests that passed are only counted. Raises RequestFailed.
    """
    found = Results()
    wanted = [row for row in entries if plugin in ("", row.plugin) and node in ("", row.node)]
    for name in dict.fromkeys(row.plugin for row in wanted):
        counts, tests, still_open = Counter[str](), list[Test](), False
        for row in (each for each in wanted if each.plugin == name):
            above = [name, *filter(None, [row.node])]
            folder = "errors" if row.bad else "results"
            whole = {"file": f"{folder}/{row.node or GLOBAL}/", "type": VERDICT}
            if row.bad:
                missing = without_result(row.result)
                word = missing if row.status == "failed" else ResultStatus.TIMEOUT
                counts[word] += 1
                tests.append(Test(row.detail, word, above, {}, whole))
            elif row.result:
                counts.update({status_word(word): many for word, many in row.tests.items()})
                if row.result != ResultStatus.PASSED:
                    report = archive.ask_for_report(server, row)
                    tests += [
                        _shown_test(above, each, report, whole) for each in items(report, "tests")
                    ]
            else:
                still_open = True  # or it is being judged
        if counts:
            verdict = verdict_of(counts)
            status = "running" if still_open and verdict not in BAD else verdict
            tests.sort(key=lambda test: test.status not in BAD)
            found.plugins.append(PluginResults(name, status, tests, counts, 0))
    return found if found.plugins else None


def _shown_test(
    above: list[str], found: Mapping[str, Any], report: Mapping[str, Any], whole: Mapping[str, Any]
) -> Test:
    """Return a test as the page shows it; an adapter's result, a `whole` one, has its reason."""
    path, said = found.get("path"), text(found, "text")
    own = not path and text(found, "name") == text(report, "reason")
    path = [*above, *map(str, path if isinstance(path, list) else ())]
    details = {"failure": said} if said else {}
    return _test(path, {**found, "details": details, "meta": whole if own else {}})


def _test(path: list[str], fields: Mapping[str, Any]) -> Test:
    word = status_word(text(fields, "status"))
    details, meta = section(fields, "details"), section(fields, "meta")
    return Test(text(fields, "name"), word, path, details, meta)


@dataclass(slots=True)
class _Item:
    """An item and what is below it. The paths of the tests are from below, without its own name."""

    fields: dict[str, Any] = field(default_factory=dict)
    branch: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    tests: list[tuple[list[str], Mapping[str, Any]]] = field(default_factory=list)


class _Reading:
    def __init__(self, pieces: Iterable[bytes], node: str, *, every: bool) -> None:
        self._values = Values(pieces, aliases=False)
        self._node, self._every = node, every
        self._left = dict(_LISTED)
        self.unlisted = 0
        self.chosen: list[str] = []  # the status of the node that is asked for

    def document(self) -> _Item:
        """Read the only document."""
        values = self._values
        values.next()
        if not isinstance(values.next(), yaml.DocumentStartEvent):
            raise ValueError("empty")
        if not isinstance(values.next(), yaml.MappingStartEvent):
            raise ValueError("not a mapping")
        root = self._item(0)
        values.next()
        if not isinstance(values.next(), yaml.StreamEndEvent):
            raise ValueError("several documents")
        return root

    def _item(self, depth: int) -> _Item:
        """Read an item up to its end."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        values, before = self._values, self._values.held
        item, listed = _Item(), False
        while (name := values.key()) is not None:
            event = values.next()
            if name == "items" and isinstance(event, yaml.SequenceStartEvent):
                if listed:
                    raise ValueError("items twice")
                listed = True
                self._items(item, depth)
                continue
            value = values.value(event)
            if name in _FIELDS:
                item.fields[name] = value
        size, values.held = values.held - before, before
        if not item.branch:
            self._leaf(item, size)
        elif depth > bool(self._node):
            for above, _ in item.tests:
                above.append(text(item.fields, "name"))
        for word, many in _unlisted(section(item.fields, "meta")):
            count_in(item.counts, {word: many})
        return item

    def _leaf(self, item: _Item, size: int) -> None:
        word = status_word(text(item.fields, "status"))
        item.counts[word] = 1
        good = word in GOOD
        if good and not self._every:
            return
        self._left[good] -= size + _OBJECTS
        if self._left[good] < 0:
            self.unlisted += 1
        else:
            item.tests.append(([], item.fields))

    def _items(self, above: _Item, depth: int) -> None:
        """Read the items of an item; of a plugin, if a node is asked for, only that counts."""
        values = self._values
        while not isinstance(event := values.next(), yaml.SequenceEndEvent):
            if not isinstance(event, yaml.MappingStartEvent):
                values.value(event)
                continue
            above.branch = True
            left, unlisted = dict(self._left), self.unlisted
            item = self._item(depth + 1)
            if self._node and not depth:
                # Tests, its own and others', may have the name of a node.
                of_node = text(section(item.fields, "meta"), "type") == "node"
                if not of_node or text(item.fields, "name") != self._node:
                    self._left, self.unlisted = left, unlisted
                    continue
                self.chosen.append(text(item.fields, "status"))
            count_in(above.counts, item.counts)
            above.tests += item.tests


def _unlisted(meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield what a file's list leaves out: `passed: 8, failed: 1`."""
    for part in text(meta, "unlisted").split(", "):
        word, _, many = part.rpartition(": ")
        if word and many.isascii() and many.isdigit():
            yield status_word(word), int(many[:12])
