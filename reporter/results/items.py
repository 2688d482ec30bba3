"""Items, which are tests and what has them, and how they are written.

In the list of all tests they are YAML, in the shape of Sonobuoy's `sonobuoy_results.yaml`. Those
that did not pass are JSON as well, as the page shows them.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.common.objects import text
from reporter.run.record import TIMEOUTS, Record
from reporter.run.results import SKIPPED, ResultStatus, status_of, without_result

BAD: Final = frozenset({ResultStatus.FAILED, ResultStatus.TIMEOUT})
GOOD: Final = frozenset({ResultStatus.PASSED, SKIPPED})
VERDICT: Final = "verdict"
"""The `type` of the one test of a result that has no report: an adapter's, or an error."""
TRUNCATED: Final = " [truncated]"
_TEXTS: Final = ("failure", "error", "message", "output", "system-err", "system-out")
_TEXT: Final = 4096  # characters of one test on the page
_ABOVE: Final = 16  # names above it there
_NAME: Final = 256  # characters of one of them
_KEY: Final = 256  # characters; YAML allows 1024 bytes
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONE: Final = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Item:
    """A test has a `status`; that of anything else follows from `counts`, those of its tests."""

    name: str
    status: str = ""
    meta: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    items: "list[Item]" = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def raw_item(name: str, path: str) -> Item:
    """A file that nobody reads: it came, and that is all that is asked of it."""
    return Item(name, ResultStatus.PASSED, {"file": path})


def adapter_item(name: str, path: str, verdict: str, reason: str, message: str) -> Item:
    """An adapter's result: the one test has the name of its reason."""
    details = {"reason": reason, "message": message}
    # Not its `file`: `sonobuoy results` would print that in the place of the test.
    test = Item(reason or name, verdict, {"path": path, "type": VERDICT}, details)
    return Item(name, "", {"file": path, "type": "file"}, {}, [test], {verdict: 1})


def unread_item(name: str, path: str, note: str) -> Item:
    """A result that was given up."""
    return Item(name, ResultStatus.UNKNOWN, {"file": path, "type": "file", "error": note})


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
    return Item(cause, status, {"file": path, "type": VERDICT}, details)


def head(name: str, counts: Mapping[str, int], *, counted: bool) -> str:
    """Return the lines of a plugin's summary, but for its items."""
    return (
        f"name: {_quoted(name)}\n"
        f"status: {_quoted(status_of(counts, counted=counted))}\n"
        "meta:\n"
        "  type: summary\n"
    )


def lines(item: Item, depth: int, *, counted: bool) -> Iterator[str]:
    """Yield the lines of an item in a list that is `depth` levels deep.

    `counted`: the statuses of what has tests are their counts.
    """
    pad = "  " * depth
    branch = item.items or not item.status
    status = status_of(item.counts, counted=counted) if branch else item.status
    yield f"{pad}- name: {_quoted(item.name)}\n{pad}  status: {_quoted(status)}\n"
    for name, found in (("meta", item.meta), ("details", item.details)):
        if found:
            yield f"{pad}  {name}:\n"
            for key, value in found.items():
                yield f"{pad}    {_quoted(key[:_KEY])}: {_flow(value)}\n"
    if item.items:
        yield f"{pad}  items:\n"
        for each in item.items:
            yield from lines(each, depth + 1, counted=counted)


def _flow(value: Any) -> str:
    match value:
        case str():
            return _quoted(value)
        case dict():
            pairs = (f"{_quoted(key[:_KEY])}: {_flow(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case float() if not math.isfinite(value):
            return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
        case _:
            return json.dumps(value)


def _quoted(written: str) -> str:
    plain = json.dumps(_LONE.sub("\ufffd", written), ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def said(details: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """Return what a test says, the most telling of its details."""
    found = [text(details, name) for name in _TEXTS]
    return next(filter(None, found), "") or text(meta, "error")


def cut(words: str, most: int) -> str:
    """Return a text of so many characters at most; one that is longer says that it is cut."""
    return words if len(words) <= most else f"{words[:most]}{TRUNCATED}"


def shown_test(path: Sequence[str], name: str, status: str, words: str) -> bytes:
    """Write a test as the page shows it; `path` has the names above its own."""
    above = [each[:_NAME] for each in path[:_ABOVE]]
    return _json({"path": above, "name": name, "status": status, "text": cut(words, _TEXT)})


def not_passed(tests: Sequence[tuple[str, bytes]], counts: Mapping[str, int]) -> bytes:
    """Write tests that did not pass, each with its status, and how many of `counts` they lack.

    What failed comes first.
    """
    listed = Counter(status for status, _ in tests)
    unlisted = {
        word: many - listed[word]
        for word, many in counts.items()
        if word not in GOOD and many > listed[word]
    }
    ordered = sorted(tests, key=lambda each: each[0] not in BAD)
    written = b",".join(test for _, test in ordered)
    return b'{"unlisted":%s,"tests":[%s]}' % (_json(unlisted), written)


def from_record(record: Record) -> bytes:
    """Write the same from what the row says, of a result that has no tests of its own.

    That is an adapter's, or an error; of a report it is known how many tests did not pass.
    """
    missing = ResultStatus.TIMEOUT if record.cause in TIMEOUTS else ResultStatus.FAILED
    counts = record.counts or {record.verdict or missing: 1}
    bad = {word: many for word, many in counts.items() if word not in GOOD}
    tests = []
    if sum(bad.values()) == 1:
        (word,) = bad
        name = record.reason or (str(record.cause) if record.cause is not None else "")
        tests = [(word, shown_test((), name, word, record.message or record.text))]
    return not_passed(tests, bad)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
