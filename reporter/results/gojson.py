"""What `go test -json` prints: an event per line, an item for each test that has ended.

A package may fail while none of its tests has: it does not compile, or its `TestMain` says so. A
test or a package that began and never ended is unknown: the missing part may have failed.
"""

import json
from typing import Any, Final

from reporter.results.limits import UnreadableReport
from reporter.results.tree import Tree
from reporter.run.counting import SKIPPED
from reporter.run.results import ResultStatus

_LINE: Final = 2**20  # bytes
_RUNNING: Final = 10_000  # tests, and packages, that have begun and not ended; failed packages
_NAMES: Final = 4 * 2**20  # characters of their names
_OUTPUT: Final = 8 * 2**10  # characters kept of one test's output, the newest
_PIECES: Final = 64
_OUTPUTS: Final = 500  # tests whose output is kept at one time
_ENDS: Final = {"pass": ResultStatus.PASSED, "fail": ResultStatus.FAILED, "skip": SKIPPED}


class GoJson:
    """Reads one report into a tree. `feed` and `close` raise `UnreadableReport`.

    A line that is no event, as older versions print for code that does not compile, makes the
    report unknown and the rest is read all the same.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._rest = b""
        self._lines = 0
        self._strange = 0  # the first line that is no event
        self._running: dict[tuple[str, str], _Output | None] = {}
        self._open: set[str] = set()  # packages that have begun and not ended
        self._failed: set[str] = set()  # packages with a test that has failed
        self._names = 0  # characters

    def feed(self, data: bytes) -> None:
        """Take more of the report."""
        *whole, rest = data.split(b"\n")
        if whole:
            self._line(self._rest + whole[0])
            for line in whole[1:]:
                self._line(line)
            self._rest = rest
        else:
            self._rest += rest
        if len(self._rest) > _LINE:
            raise UnreadableReport(f"line {self._lines + 1} is larger than {_LINE} bytes")

    def close(self) -> None:
        """Take the end of the report."""
        self._line(self._rest)
        for (package, test), output in self._running.items():
            self._leaf(test, ResultStatus.UNKNOWN, package, output)
        for package in sorted(self._open):
            self._leaf(package or "package", ResultStatus.UNKNOWN, package, None)
        self._running, self._open = {}, set()
        if self._strange:
            raise UnreadableReport(f"line {self._strange} is not an event of go test -json")

    def _line(self, line: bytes) -> None:
        self._lines += 1
        if not line.strip():
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict) and isinstance(event.get("Action"), str):
            self._event(event)
        else:
            self._strange = self._strange or self._lines

    def _event(self, event: dict[str, Any]) -> None:
        action, package, test = (_text(event, name) for name in ("Action", "Package", "Test"))
        key = (package, test)
        if (test and (action == "run" or action in _ENDS)) or action == "start":
            self._begins(package)
        if not test:
            if action in _ENDS:
                self._ends(package)
            if action == "fail" and package not in self._failed:
                self._leaf(package or "package", ResultStatus.FAILED, package, None)
        elif action in _ENDS:
            if key in self._running:
                self._names -= len(package) + len(test)
            output = self._running.pop(key, None)
            status = _ENDS[action]
            if (
                status == ResultStatus.FAILED
                and package not in self._failed
                and len(self._failed) < _RUNNING
            ):
                self._hold(package)
                self._failed.add(package)
            self._leaf(test, status, package, output if status == ResultStatus.FAILED else None)
        elif action == "run" and key not in self._running and len(self._running) < _RUNNING:
            self._hold(package, test)
            self._running[key] = _Output() if len(self._running) < _OUTPUTS else None
        elif action == "output" and (kept := self._running.get(key)) is not None:
            kept.add(_text(event, "Output"))

    def _begins(self, package: str) -> None:
        if package not in self._open:
            if len(self._open) == _RUNNING:
                raise UnreadableReport(
                    f"more than {_RUNNING} packages that have begun and not ended"
                )
            self._hold(package)
            self._open.add(package)

    def _ends(self, package: str) -> None:
        if package in self._open:
            self._names -= len(package)
            self._open.remove(package)

    def _hold(self, *names: str) -> None:
        """Take the place for names that are kept."""
        self._names += sum(map(len, names))
        if self._names > _NAMES:
            raise UnreadableReport(f"the names of running tests have more than {_NAMES} characters")

    def _leaf(self, test: str, status: str, package: str, output: "_Output | None") -> None:
        said = output.text if output is not None else ""
        self._tree.leaf(
            test,
            status,
            {"output": said} if said else None,
            {"package": package} if package else None,
        )


class _Output:
    """The newest output of a test."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        piece = piece[-_OUTPUT:]
        self._pieces.append(piece)
        self._size += len(piece)
        # A piece of one character takes as much memory as one of eighty.
        if self._size > 2 * _OUTPUT or len(self._pieces) > _PIECES:
            self._pieces = [self.text]
            self._size = len(self._pieces[0])

    @property
    def text(self) -> str:
        return "".join(self._pieces)[-_OUTPUT:]


def _text(event: dict[str, Any], name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""
