"""JUnit's XML, as test runners write it: suites, also within suites, and their cases.

A failure or an error of a suite itself, as of its setup, is a failed test with the suite's name. A
suite that counts failures where no test has failed is not to be believed.

A document type with declarations is refused: that is where entities come from. expat keeps a tag
in memory until it ends, and every name of a tag or an attribute for ever, so these have caps of
their own.
"""

from itertools import islice
from typing import Final, NamedTuple
from xml.parsers import expat

from reporter.results.limits import DEEPEST, UnreadableReport
from reporter.results.tree import Tree
from reporter.run.counting import SKIPPED
from reporter.run.results import ResultStatus

_TOKEN: Final = 2**20  # bytes of one tag
_PIECE: Final = 64 * 2**10
_NAMES: Final = 10_000  # different names of tags and attributes
_NAMES_SIZE: Final = 4 * 2**20  # characters of all of them
_TEXT: Final = 64 * 2**10  # characters of one element's text that are looked at
_NAME: Final = 1024
_FAILURES: Final = ("failure", "error")
_FAILED: Final = frozenset({"fail", "failed", "failure", "error"})  # in attributes of a case
_TEXTS: Final = (*_FAILURES, "system-out", "system-err")


class _Suite(NamedTuple):
    """A suite that is open; `failed` is how many tests had failed when it began."""

    depth: int
    name: str
    failed: int
    says_failed: bool


class JUnit:
    """Reads one report into a tree. `feed` and `close` raise `UnreadableReport`."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = _PIECE
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        self._fed = 0
        self._names = self._names_size = 0
        self._depth = self._suites = self._failed = 0
        self._within: list[_Suite] = []
        self._denied = False
        self._case: dict[str, str] | None = None  # the attributes of the one that is open
        self._case_depth = 0
        self._found: dict[str, str] = {}
        self._skipped = False
        self._pieces: list[str] = []
        self._room = 0
        self._reading = 0  # the depth of the element whose text is read

    def feed(self, data: bytes) -> None:
        """Take more of the report."""
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            self._parse(piece, last=False)
            self._fed += len(piece)
            if self._fed - self._parser.CurrentByteIndex > _TOKEN:
                raise UnreadableReport(f"a tag is larger than {_TOKEN} bytes")
            self._count_names()

    def close(self) -> None:
        """Take the end of the report."""
        self._parse(b"", last=True)
        if self._denied:
            raise UnreadableReport(
                "a suite counts failures or errors, and no test in it has failed"
            )

    def _parse(self, piece: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            # Its own words tell where, and repeat nothing of the report.
            raise UnreadableReport(f"not valid XML: {error}") from None
        except (LookupError, ValueError):
            raise UnreadableReport("not valid XML: unknown encoding") from None

    def _count_names(self) -> None:
        names = self._parser.intern  # None, too, is in it: a document type without a system's name
        if len(names) > self._names:
            self._names_size += sum(len(each or "") for each in islice(names, self._names, None))
            self._names = len(names)
            if self._names > _NAMES or self._names_size > _NAMES_SIZE:
                raise UnreadableReport(
                    f"more than {_NAMES} different names of tags and attributes, or too long ones"
                )

    def _doctype(self, name: str, system: object, public: object, inside: int) -> None:
        if inside:
            raise UnreadableReport("a document type with declarations is not allowed")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        depth = self._depth = self._depth + 1
        if tag == "testcase" and self._case is None and 1 < depth <= DEEPEST:  # most by far
            self._case, self._case_depth = attributes, depth
            return
        if depth > DEEPEST:
            raise UnreadableReport(f"nested more than {DEEPEST} levels deep")
        name = tag.rpartition(":")[2]
        if depth == 1 and name not in ("testsuites", "testsuite"):
            raise UnreadableReport(
                "not a JUnit report: the root is neither testsuites nor testsuite"
            )
        if self._case is not None:
            if depth == self._case_depth + 1 and not self._reading:
                self._part(name, attributes)
        elif name == "testcase":
            self._case, self._case_depth = attributes, depth
        elif name in ("testsuites", "testsuite"):
            title = attributes.get("name") or name
            if name == "testsuite":
                self._suites += 1
                title = attributes.get("name") or f"testsuite-{self._suites:03}"
                self._tree.enter(title)
            says = any(_above_zero(attributes.get(each, "")) for each in ("failures", "errors"))
            self._within.append(_Suite(depth, title[:_NAME], self._failed, says))
        elif name in _FAILURES and depth == self._within[-1].depth + 1:
            self._case, self._case_depth = {"name": self._within[-1].name}, depth
            self._part(name, attributes)

    def _part(self, name: str, attributes: dict[str, str]) -> None:
        if name == "skipped":
            self._skipped = True
        elif name in _TEXTS:
            before = self._found.get(name, "")
            message = "" if name.startswith("system-") else attributes.get("message", "")
            self._pieces = [
                each for text in (before, message[:_TEXT]) if text for each in (text, " ")
            ]
            self._room = _TEXT
            self._reading = self._depth
            self._parser.CharacterDataHandler = self._text

    def _text(self, data: str) -> None:
        if self._room > 0:
            self._pieces.append(data[: self._room])
            self._room -= len(data)

    def _end(self, tag: str) -> None:
        depth = self._depth
        self._depth = depth - 1
        if self._case is not None:
            if depth == self._reading:
                self._text_ends(tag.rpartition(":")[2])
            if depth == self._case_depth:
                self._case_ends(self._case)
        elif depth == self._within[-1].depth:
            suite = self._within.pop()
            self._denied |= suite.says_failed and suite.failed == self._failed
            if tag.rpartition(":")[2] == "testsuite":
                self._tree.leave()

    def _text_ends(self, name: str) -> None:
        said = "".join(self._pieces)
        self._found[name] = said if name.startswith("system-") else said.strip()
        self._pieces, self._reading = [], 0
        self._parser.CharacterDataHandler = None

    def _case_ends(self, attributes: dict[str, str]) -> None:
        found, skipped = self._found, self._skipped
        self._case = None
        failed = (
            ("status" in attributes and attributes["status"].lower() in _FAILED)
            or ("result" in attributes and attributes["result"].lower() in _FAILED)
            or "failure" in found
            or "error" in found
        )
        if not failed and not found and not skipped and self._tree.passed():
            return
        self._found, self._skipped = {}, False
        status: str = ResultStatus.PASSED
        if failed:
            self._failed += 1
            status = ResultStatus.FAILED
        elif skipped:
            status = SKIPPED
        details = {key: found[key] for key in _TEXTS if found.get(key)}
        of = attributes.get("classname", "")
        meta = {"classname": of[:_TEXT]} if of else None
        self._tree.leaf(attributes.get("name", ""), status, details, meta)


def _above_zero(number: str) -> bool:
    return number.strip().lstrip("0").isdecimal()
