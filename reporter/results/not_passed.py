"""The tests of a result that did not pass, as people are shown them: so many, and so much of each.

They are written as soon as they are read, since what they are bounded by is the size of that.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.common.objects import text
from reporter.run.counting import SKIPPED
from reporter.run.record import TIMEOUTS, Record
from reporter.run.results import ResultStatus

BAD: Final = frozenset({ResultStatus.FAILED, ResultStatus.TIMEOUT})
GOOD: Final = frozenset({ResultStatus.PASSED, SKIPPED})
_TEXTS: Final = ("failure", "error", "message", "output", "system-err", "system-out")
_TEXT: Final = 4096  # characters of one test
_NAMES: Final = 16  # above a test
_NAME: Final = 256  # characters of one of them


def said(details: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """Return what a test says, the most telling of its details."""
    found = [text(details, name) for name in _TEXTS]
    return next(filter(None, found), "") or text(meta, "error")


@dataclass(slots=True)
class Places:
    """What may still be shown of a result: tests that failed, other tests, bytes of each kind."""

    failed: int = 200
    failed_bytes: int = 192 * 2**10
    others: int = 50
    others_bytes: int = 64 * 2**10


@dataclass(slots=True)
class NotPassed:
    """Tests that did not pass, in JSON: those of one file, or of several that share the `places`.

    The first failure comes first; `listed` counts them by status.
    """

    places: Places = field(default_factory=Places)
    failed: list[bytes] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)
    listed: dict[str, int] = field(default_factory=dict)

    def wants(self, status: str) -> bool:
        """Whether there is a place for a test with this status."""
        if status in GOOD:
            return False
        return (self.places.failed if status in BAD else self.places.others) > 0

    def add(self, path: Sequence[str], name: str, status: str, said: str) -> None:
        """Take a test, if it is wanted; `path` has the names above its own.

        After one that is too large for what is left, none is wanted: what is shown has no gaps.
        """
        places, bad = self.places, status in BAD
        if not self.wants(status):
            return
        shown = said if len(said) <= _TEXT else f"{said[:_TEXT]} [truncated]"
        above = [each[:_NAME] for each in path[:_NAMES]]
        test = {"path": above, "name": name, "status": status, "text": shown}
        written = json.dumps(test, ensure_ascii=False).encode("utf-8", "replace")
        if len(written) > (places.failed_bytes if bad else places.others_bytes):
            if bad:
                places.failed = 0
            else:
                places.others = 0
            return
        if bad:
            self.failed.append(written)
            places.failed -= 1
            places.failed_bytes -= len(written)
        else:
            self.others.append(written)
            places.others -= 1
            places.others_bytes -= len(written)
        self.listed[status] = self.listed.get(status, 0) + 1

    def extend(self, more: "NotPassed") -> None:
        """Take those of another file."""
        self.failed += more.failed
        self.others += more.others
        for status, many in more.listed.items():
            self.listed[status] = self.listed.get(status, 0) + many

    def document(self, counts: Mapping[str, int]) -> bytes:
        """Write the tests, and how many of each status in `counts` there was no place for."""
        unlisted = {
            word: many - self.listed.get(word, 0)
            for word, many in counts.items()
            if word not in GOOD and many > self.listed.get(word, 0)
        }
        head = json.dumps(unlisted, ensure_ascii=False).encode("utf-8", "replace")
        tests = b",".join((*self.failed, *self.others))
        return b'{"unlisted":%s,"tests":[%s]}' % (head, tests)


def from_record(record: Record) -> bytes:
    """Write the same from what the row says, of a result that has no tests of its own.

    That is an adapter's, or an error; of a report it is known how many tests did not pass.
    """
    missing = ResultStatus.TIMEOUT if record.cause in TIMEOUTS else ResultStatus.FAILED
    found, counts = NotPassed(), record.counts or {record.verdict or missing: 1}
    bad = {word: many for word, many in counts.items() if word not in GOOD}
    if sum(bad.values()) == 1:
        (word,) = bad
        name = record.reason or (str(record.cause) if record.cause is not None else "")
        found.add((), name, word, record.message or record.text)
    return found.document(bad)
