"""The items of one report while it is read: what is listed, and the counts of all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.results.not_passed import BAD, GOOD, NotPassed, said
from reporter.run.counting import count_in, status_of, status_word
from reporter.run.results import ResultStatus

_PASSED: Final = str(ResultStatus.PASSED)
_NAME: Final = 1024  # characters


@dataclass(slots=True)
class Item:
    """One test, or what has tests: a suite, a file, a node. `counts` are those of its leaves."""

    name: str
    status: str
    meta: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    items: "list[Item]" = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Room:
    """What may still be listed, for one file or for several that share it.

    `passed` and `others` are items, `text` characters of details, of which one may have `each`.
    """

    passed: int = 10_000
    others: int = 10_000
    text: int = 4 * 2**20
    each: int = 32 * 2**10


NOTHING: Final = Room(0, 0, 0)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """The first test that failed: its name, and the beginning of what it said."""

    name: str
    text: str


class Tree:
    """The tree of one report. Items are added to the branch that is open.

    `unlisted` has the counts of leaves that there was no room for. `not_passed`, if there is one,
    gets the tests that did not pass, below the names in `path`.
    """

    def __init__(
        self, room: Room, not_passed: NotPassed | None = None, path: tuple[str, ...] = ()
    ) -> None:
        self.room = room
        self.not_passed, self._path = not_passed, path
        self.first: FirstFailure | None = None
        self.unlisted: dict[str, int] = {}
        self._open = [Item("", "")]

    @property
    def root(self) -> Item:
        """The branch that is the report itself."""
        return self._open[0]

    @property
    def depth(self) -> int:
        """How many branches are open."""
        return len(self._open) - 1

    def enter(self, name: str) -> None:
        """Open a branch."""
        self._open.append(Item(name[:_NAME], ""))

    def leave(self) -> None:
        """Close the branch that was opened last. One without tests is unknown."""
        branch = self._open.pop()
        if not branch.counts:
            branch.counts[ResultStatus.UNKNOWN] = 1
            self._note(branch.name, ResultStatus.UNKNOWN, "no tests found")
        branch.status = status_of(branch.counts)
        above = self._open[-1]
        count_in(above.counts, branch.counts)
        # A branch of which nothing is listed would be counted as a test.
        if branch.items or (branch.counts == {ResultStatus.UNKNOWN: 1} and self._has(branch)):
            above.items.append(branch)

    def leaf(
        self,
        name: str,
        status: str,
        details: Mapping[str, Any] | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Add a test."""
        word = status_word(status)
        item = Item(name[:_NAME], word, meta or {}, details or {})
        above = self._open[-1]
        count_in(above.counts, {word: 1})
        if self.not_passed is not None and self.not_passed.wants(word):
            of = item.meta.get("package") or item.meta.get("classname") or ""
            self._note(item.name, word, said(item.details, item.meta), of)
        if self.first is None and word in BAD:
            text = next((each for each in item.details.values() if isinstance(each, str)), "")
            self.first = FirstFailure(item.name, text[:_NAME])
        if self._has(item):
            item.details = {key: self._kept(each) for key, each in item.details.items()}
            above.items.append(item)
        else:
            count_in(self.unlisted, {word: 1})

    def _note(self, name: str, word: str, text: str, *below: str) -> None:
        """Have a test told that did not pass; `below` has names between the branch and its own."""
        if self.not_passed is not None:
            branches = (branch.name for branch in self._open[1:])
            self.not_passed.add((*self._path, *branches, *filter(None, below)), name, word, text)

    def passed(self) -> bool:
        """Count a test that has passed and has nothing to say, if there is no room to list it."""
        if self.room.passed > 0:
            return False
        for counts in (self._open[-1].counts, self.unlisted):
            counts[_PASSED] = counts.get(_PASSED, 0) + 1
        return True

    def end(self) -> None:
        """Close what is open."""
        while self.depth:
            self.leave()

    def _has(self, item: Item) -> bool:
        """Take the place for an item, if there is one."""
        room = self.room
        if item.status in GOOD:
            room.passed -= 1
            return room.passed >= 0
        room.others -= 1
        return room.others >= 0

    def _kept(self, value: Any) -> Any:
        """Return as much of a text as there is room for."""
        if not isinstance(value, str):
            return value
        most = max(0, min(self.room.each, self.room.text))
        kept = value if len(value) <= most else f"{value[:most]} [truncated]"
        self.room.text -= len(kept)
        return kept
