"""What `go test -json` prints: an event per line, an item for each test that has ended.

A package may fail while none of its tests has: it does not compile, or its `TestMain` says so. A
test or a package that began and never ended is unknown: the missing part may have failed.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from reporter.results.report import Report, UnreadableReport
from reporter.run.results import SKIPPED, ResultStatus

_OUTPUT: Final = 8 * 2**10  # characters kept of one test's output, the newest
_ENDS: Final = {"pass": ResultStatus.PASSED, "fail": ResultStatus.FAILED, "skip": SKIPPED}


def parse(pieces: Iterator[bytes], report: Report) -> None:
    """Read a report. Raises UnreadableReport.

    A line that is no event, as older versions print for code that does not compile, makes the
    report unknown and the rest is read all the same.
    """
    reader, strange = _Reader(report), 0
    for number, line in enumerate(_lines(pieces), 1):
        if line.strip():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            if isinstance(event, dict) and isinstance(event.get("Action"), str):
                reader.event(event)
            else:
                strange = strange or number
    reader.end()
    if strange:
        raise UnreadableReport(f"line {strange} is not an event of go test -json")


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest


class _Reader:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._running: dict[tuple[str, str], str] = {}  # the output of a package's test
        self._open: set[str] = set()  # packages that have begun and not ended
        self._failed: set[str] = set()  # packages with a test that has failed

    def event(self, event: dict[str, Any]) -> None:
        action, package, test, output = (
            value if isinstance(value := event.get(name), str) else ""
            for name in ("Action", "Package", "Test", "Output")
        )
        key, ends = (package, test), action in _ENDS
        if action == "start" or (test and (ends or action == "run")):
            self._open.add(package)
        if not test:
            if ends:
                self._open.discard(package)
            if action == "fail" and package not in self._failed:
                self._add(package or "package", ResultStatus.FAILED, package)
        elif ends:
            output = self._running.pop(key, "")
            if action == "fail":
                self._failed.add(package)
            self._add(test, _ENDS[action], package, output if action == "fail" else "")
        elif action == "run":
            self._running.setdefault(key, "")
        elif action == "output" and key in self._running:
            self._running[key] = (self._running[key] + output)[-_OUTPUT:]

    def end(self) -> None:
        for (package, test), output in self._running.items():
            self._add(test, ResultStatus.UNKNOWN, package, output)
        for package in sorted(self._open):
            self._add(package or "package", ResultStatus.UNKNOWN, package)

    def _add(self, test: str, status: str, package: str, output: str = "") -> None:
        details = {"output": output} if output else None
        self._report.test(test, status, details, {"package": package} if package else None)
