"""JUnit's XML, as test runners write it: suites, also within suites, and their cases.

A failure or an error of a suite itself, as of its setup, is a failed test with the suite's name. A
suite that counts failures where no test has failed is not to be believed.

A document type with declarations is refused: that is where entities come from.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple
from xml.parsers import expat

from reporter.results.report import DEEPEST, Report, UnreadableReport
from reporter.run.results import SKIPPED, ResultStatus

_TEXT: Final = 64 * 2**10  # characters of one element's text that are looked at
_NAME: Final = 1024
_SUITES: Final = ("testsuites", "testsuite")
_FAILURES: Final = ("failure", "error")
_FAILED: Final = frozenset({"fail", "failed", "failure", "error"})  # in attributes of a case
_TEXTS: Final = (*_FAILURES, "system-out", "system-err")
_NO_MEMORY: Final = expat.errors.codes[expat.errors.XML_ERROR_NO_MEMORY]


def parse(pieces: Iterator[bytes], report: Report) -> None:
    """Read a report. Raises UnreadableReport."""
    reader = _Reader(report)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _doctype
    try:
        for piece in pieces:
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        if error.code == _NO_MEMORY:
            raise MemoryError from None
        # Its own words tell where, and repeat nothing of the report.
        raise UnreadableReport(f"not valid XML: {error}") from None
    except (LookupError, ValueError):
        raise UnreadableReport("not valid XML: unknown encoding") from None
    if reader.denied:
        raise UnreadableReport("a suite counts failures or errors, and no test in it has failed")


def _doctype(*words: object) -> None:
    if words[-1]:  # it has declarations inside
        raise UnreadableReport("a document type with declarations is not allowed")


class _Suite(NamedTuple):
    """A suite that is open; `failed` is how many tests had failed when it began."""

    depth: int
    name: str
    failed: int
    says_failed: bool


class _Reader:
    """What expat calls. The elements that matter of a case are those directly below it."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._depth = 0
        self._suites: list[_Suite] = []
        self._named = self._failed = 0  # suites, tests
        self.denied = False
        self._case: dict[str, str] | None = None  # the attributes of the one that is open
        self._case_depth = 0
        self._found: dict[str, str] = {}  # its elements and their texts
        self._pieces: list[str] = []
        self._room = 0  # characters
        self._reading = 0  # the depth of the element whose text is read

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        depth, name = self._depth, tag.rpartition(":")[2]
        if depth > DEEPEST:
            raise UnreadableReport(f"nested more than {DEEPEST} levels deep")
        if depth == 1 and name not in _SUITES:
            raise UnreadableReport(
                "not a JUnit report: the root is neither testsuites nor testsuite"
            )
        if self._case is not None:
            if depth == self._case_depth + 1 and not self._reading:
                self._part(name, attributes)
        elif name == "testcase":
            self._case, self._case_depth = attributes, depth
        elif name in _SUITES:
            self._suite(name, attributes)
        elif name in _FAILURES and depth == self._suites[-1].depth + 1:
            self._case, self._case_depth = {"name": self._suites[-1].name}, depth
            self._part(name, attributes)

    def _suite(self, name: str, attributes: dict[str, str]) -> None:
        title = attributes.get("name") or name
        if name == "testsuite":
            self._named += 1
            title = attributes.get("name") or f"testsuite-{self._named:03}"
            self._report.enter(title)
        says = any(_above_zero(attributes.get(each, "")) for each in ("failures", "errors"))
        self._suites.append(_Suite(self._depth, title[:_NAME], self._failed, says))

    def _part(self, name: str, attributes: dict[str, str]) -> None:
        if name == "skipped":
            self._found[name] = ""
        elif name in _TEXTS:
            message = attributes.get("message", "")[:_TEXT] if name in _FAILURES else ""
            before = self._found.get(name, "")  # the second failure of a case
            self._pieces = [f"{each} " for each in (before, message) if each]
            self._room, self._reading = _TEXT, self._depth

    def text(self, data: str) -> None:
        if self._reading and self._room > 0:
            self._pieces.append(data[: self._room])
            self._room -= len(data)

    def end(self, tag: str) -> None:
        depth = self._depth
        self._depth -= 1
        if self._case is not None:
            if depth == self._reading:
                name, text = tag.rpartition(":")[2], "".join(self._pieces)
                self._found[name] = text.strip() if name in _FAILURES else text
                self._pieces, self._reading = [], 0
            if depth == self._case_depth:
                self._case_ends(self._case)
        elif depth == self._suites[-1].depth:
            suite = self._suites.pop()
            self.denied |= suite.says_failed and suite.failed == self._failed
            if tag.rpartition(":")[2] == "testsuite":
                self._report.leave()

    def _case_ends(self, attributes: dict[str, str]) -> None:
        found = self._found
        self._case, self._found = None, {}
        status: str = ResultStatus.PASSED
        if (
            "failure" in found
            or "error" in found
            or attributes.get("status", "").lower() in _FAILED
            or attributes.get("result", "").lower() in _FAILED
        ):
            self._failed += 1
            status = ResultStatus.FAILED
        elif "skipped" in found:
            status = SKIPPED
        details = {key: found[key] for key in _TEXTS if found.get(key)} if found else None
        of = attributes.get("classname", "")
        meta = {"classname": of[:_TEXT]} if of else None
        self._report.test(attributes.get("name", ""), status, details, meta)


def _above_zero(number: str) -> bool:
    return number.strip().lstrip("0").isdecimal()
