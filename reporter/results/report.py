"""One report while it is read: the counts of all its tests, and as many of them as are kept."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.results.items import BAD, GOOD, TRUNCATED, Item, cut, said, shown_test
from reporter.run.results import ResultStatus, count_in, status_of, status_word

DEEPEST: Final = 64
TOO_MUCH: Final = "it takes too much memory to read"
_NAME: Final = 1024  # characters
_TEXT: Final = 32 * 2**10  # characters of one detail
_MEMBER: Final = 32  # what a member of a mapping or a list takes beside its text


class UnreadableReport(Exception):
    """Why a report cannot be read, in one line that is safe to show."""


@dataclass(slots=True)
class Places:
    """How many tests may still be shown, and in how many bytes."""

    tests: int
    size: int

    def take(self, written: bytes) -> bool:
        """Take a place; after what does not fit there is none, so what is shown has no gaps."""
        fits = len(written) <= self.size
        self.tests, self.size = (self.tests - 1, self.size - len(written)) if fits else (0, 0)
        return fits


@dataclass(slots=True)
class Text:
    """How many characters may still be kept."""

    left: int


@dataclass(slots=True)
class Room:
    """What may still be kept of a result, of all its reports together.

    `passed` and `others` are items of the list, and the texts characters in them. `failed` and
    `unclear` are places on the page, for tests that failed and others that did not pass.
    """

    passed: int = 0
    others: int = 0
    passed_text: Text = field(default_factory=lambda: Text(0))
    others_text: Text = field(default_factory=lambda: Text(0))
    failed: Places = field(default_factory=lambda: Places(0, 0))
    unclear: Places = field(default_factory=lambda: Places(0, 0))

    @classmethod
    def of_list(cls) -> "Room":
        """Return what the list of all tests has for a result."""
        texts = Text(3 * 2**20), Text(5 * 2**20)
        return cls(passed=40_000, others=20_000, passed_text=texts[0], others_text=texts[1])

    @classmethod
    def of_page(cls) -> "Room":
        """Return what the page has for a result."""
        return cls(failed=Places(200, 192 * 2**10), unclear=Places(50, 64 * 2**10))


class Report:
    """A report, at first without tests; a parser adds them to the branch that is open.

    `path` is that of its file below the plugin's directory. After `read`, `item` has everything for
    the list, `shown` the tests for the page with their statuses, and `note` says why the report was
    not read to its end. `first` is the first test that failed: its name, and the beginning of what
    it said.
    """

    def __init__(self, path: str, room: Room) -> None:
        self.item = Item(path.rpartition("/")[2], meta={"file": path, "type": "file"})
        self.first: tuple[str, str] | None = None
        self.shown: list[tuple[str, bytes]] = []
        self.note = ""
        self._room = room
        self._open = [self.item]
        self._unlisted: dict[str, int] = {}

    def read(
        self, parse: "Callable[[Iterator[bytes], Report], None]", pieces: Iterable[bytes]
    ) -> None:
        """Read it. Whatever is in it, what was found before its end or a mistake counts."""
        try:
            parse(iter(pieces), self)
        except UnreadableReport as error:
            self.note = str(error)
        except MemoryError:  # what the parser held is free again
            self.note = TOO_MUCH
        while len(self._open) > 1:
            self.leave()
        item = self.item
        if self.note or not item.counts:
            self.note = item.meta["error"] = self.note or "no tests found"
            item.counts.setdefault(ResultStatus.UNKNOWN, 1)
            self._show((), item.name, ResultStatus.UNKNOWN, self.note)
        if self._unlisted:
            item.meta["unlisted"] = status_of(self._unlisted, counted=True)

    def enter(self, name: str) -> None:
        """Open a branch, such as a suite."""
        self._open.append(Item(name[:_NAME]))

    def leave(self) -> None:
        """Close the branch that was opened last. One without tests is unknown."""
        branch = self._open.pop()
        if not branch.counts:
            self.test(branch.name, ResultStatus.UNKNOWN, meta={"error": "no tests found"})
            return
        count_in(self._open[-1].counts, branch.counts)
        if branch.items:  # one of which nothing is listed would be counted as a test
            self._open[-1].items.append(branch)

    def test(
        self,
        name: str,
        status: str,
        details: Mapping[str, Any] | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Add a test."""
        word = status_word(status)
        branch = self._open[-1]
        _count(branch.counts, word)
        room, good = self._room, word in GOOD
        if good:
            room.passed -= 1
        else:
            room.others -= 1
        listed = (room.passed if good else room.others) >= 0
        if not listed:
            _count(self._unlisted, word)
            if good:  # most of all tests
                return
        name, details, meta = name[:_NAME], details or {}, meta or {}
        if word in BAD and self.first is None:
            text = next((each for each in details.values() if isinstance(each, str)), "")
            self.first = name, text[:_NAME]
        if not good:
            of = meta.get("package") or meta.get("classname")
            above = (*(each.name for each in self._open), *((of,) if of else ()))
            self._show(above, name, word, said(details, meta))
        if listed:
            left = room.passed_text if good else room.others_text
            branch.items.append(Item(name, word, _kept(meta, left), _kept(details, left)))

    def _show(self, above: tuple[str, ...], name: str, word: str, text: str) -> None:
        places = self._room.failed if word in BAD else self._room.unclear
        if places.tests > 0:
            written = shown_test(above, name, word, text)
            if places.take(written):
                self.shown.append((word, written))


def _kept(value: Any, room: Text, depth: int = 0) -> Any:
    """Return as much as there is room for: an alias may have put one value in many places."""
    if depth > DEEPEST or (depth and room.left <= 0):
        return TRUNCATED
    if isinstance(value, str):
        most = max(0, min(_TEXT, room.left))
        kept = cut(value, most)
        room.left -= len(kept)
        return kept
    if isinstance(value, dict):
        return dict(_members(value.items(), room, depth + 1))
    if isinstance(value, list):
        return [each for _, each in _members((("", each) for each in value), room, depth + 1)]
    room.left -= len(str(value))
    return value


def _members(pairs: Iterable[tuple[str, Any]], room: Text, depth: int) -> Iterator[tuple[str, Any]]:
    for key, each in pairs:
        room.left -= len(key) + _MEMBER
        yield key, _kept(each, room, depth)
        if room.left <= 0:
            return


def _count(counts: dict[str, int], word: str) -> None:
    if word in counts:  # as of most tests
        counts[word] += 1
    else:
        count_in(counts, {word: 1})
