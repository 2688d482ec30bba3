"""One file of a result in its format, and what several of them add up to."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from reporter.results.limits import MOST_BYTES, UnreadableReport
from reporter.results.not_passed import NotPassed
from reporter.results.tree import FirstFailure, Item, Room, Tree
from reporter.run.counting import count_in
from reporter.run.results import ResultStatus, without_result

_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "junit": (".xml",),
    "e2e": (".xml",),
    "gojson": (".json",),
    "manual": (".yaml", ".yml"),
}
PARSED: Final = frozenset(_SUFFIXES)
"""Formats whose files are read; of the others it is known without what they say."""


class Parser(Protocol):
    """Reads one report into a tree; raises `UnreadableReport`."""

    def feed(self, data: bytes) -> None:
        """Take more of it."""

    def close(self) -> None:
        """Take its end."""


def selects(result_format: str, files: Collection[str], name: str) -> bool:
    """Whether a file of an archive is part of the result: it is named, or its name fits."""
    if files:
        return name in files
    return name.endswith(_SUFFIXES.get(result_format, ("",)))


def raw_item(name: str, path: str) -> Item:
    """A file that nobody reads: it came, and that is all that is asked of it."""
    return _leaf(name, ResultStatus.PASSED, {"file": path})


def adapter_item(name: str, path: str, verdict: str, reason: str, message: str) -> Item:
    """An adapter's result: the one test has the name of its reason."""
    said = {"reason": reason, "message": message}
    test = _leaf(reason or name, verdict, {}, said)
    meta = {"file": path, "type": "file"}
    return Item(name, verdict, meta, {}, [test], dict(test.counts))


def unread_item(name: str, path: str, note: str) -> Item:
    """A result that was given up."""
    meta = {"file": path, "type": "file", "error": note}
    return _leaf(name, ResultStatus.UNKNOWN, meta)


def error_item(
    path: str, cause: str, document: Mapping[str, Any], *, timeout: bool, verdict: str = ""
) -> Item:
    """A result that did not come: the test has the name of the error.

    `verdict` is what its sender is known to have said, if it did.
    """
    status = ResultStatus.TIMEOUT if timeout else without_result(verdict)
    details = {
        key: value if isinstance(value, str) else str(value) for key, value in document.items()
    }
    return _leaf(cause, status, {"file": path}, details)


def _leaf(
    name: str, status: str, meta: Mapping[str, str], details: Mapping[str, Any] | None = None
) -> Item:
    return Item(name, status, meta, details or {}, [], {status: 1})


class FileReport:
    """One file, read piece by piece. Whatever is in it, `item` is what is known of it.

    `parser` makes the parser of its format, `path` is its path below the plugin's directory. `note`
    says why it was not read to its end; `not_passed` gets the tests that did not pass.
    """

    def __init__(
        self,
        parser: Callable[[Tree], Parser],
        name: str,
        path: str,
        room: Room,
        not_passed: NotPassed | None = None,
    ) -> None:
        self._name, self._path = name, path
        self._tree = Tree(room, not_passed, (name,))
        self._parser: Parser | None = parser(self._tree)
        self._size = 0
        self.note = ""

    def feed(self, data: bytes) -> None:
        """Take more of it."""
        self._size += len(data)
        if self._size > MOST_BYTES:
            self._stop(f"larger than {MOST_BYTES} bytes")
        if self._parser is not None:
            try:
                self._parser.feed(data)
            except UnreadableReport as error:
                self._stop(str(error))

    @property
    def first(self) -> FirstFailure | None:
        """The first test that failed."""
        return self._tree.first

    def item(self) -> Item:
        """Take the end of the file, and return what it says."""
        parser = self._parser
        if parser is not None:
            try:
                parser.close()
            except UnreadableReport as error:
                self._stop(str(error))
        tree = self._tree
        tree.end()
        counts = dict(tree.root.counts)
        meta = {"file": self._path, "type": "file"}
        if self.note or not counts:
            self.note = self.note or "no tests found"
            counts.setdefault(ResultStatus.UNKNOWN, 1)
            meta["error"] = self.note
            if tree.not_passed is not None:
                tree.not_passed.add((), self._name, ResultStatus.UNKNOWN, self.note)
        if tree.unlisted:
            meta["unlisted"] = ", ".join(
                f"{word}: {tree.unlisted[word]}" for word in sorted(tree.unlisted)
            )
        return Item(self._name, "", meta, {}, tree.root.items, counts)

    def _stop(self, why: str) -> None:
        self.note = self.note or why
        self._parser = None


@dataclass
class Findings:
    """What a result adds up to. `first` is what failed first, `note` why something is unknown.

    `not_passed` has the tests that did not pass, where they are wanted.
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: FirstFailure | None = None
    note: str = ""
    not_passed: NotPassed = field(default_factory=NotPassed)

    def add(self, item: Item, first: FirstFailure | None, note: str) -> None:
        """Add a file."""
        count_in(self.counts, item.counts)
        self.first = self.first or first
        self.note = self.note or (f"{item.name}: {note}" if note else "")

    def end(self, missing: str) -> None:
        """Take the end; `missing` is the note for a result without files."""
        if not self.counts:
            self.counts[ResultStatus.UNKNOWN] = 1
            self.note = missing
