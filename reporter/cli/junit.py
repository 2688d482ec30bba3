"""JUnit's XML, as pipelines read it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

_NO_XML: Final = {code: None for code in range(32) if code not in (9, 10, 13)} | {
    0xFFFE: None,
    0xFFFF: None,
}


class Case(NamedTuple):
    """One test case. Of a failure or error, `message` is a line and `text` the whole of it.

    `reason` is a property of the case; empty for none.
    """

    group: str
    name: str
    outcome: Literal["passed", "failure", "error", "skipped"] = "passed"
    message: str = ""
    text: str = ""
    reason: str = ""


def junit(suites: Iterable[tuple[str, Sequence[Case]]]) -> Iterator[str]:
    """Yield the lines of a report: suites by name, each with its cases."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield "<testsuites>"
    for name, cases in suites:
        counts = Counter(case.outcome for case in cases)
        yield (
            f'  <testsuite name={_attribute(name)} tests="{len(cases)}" '
            f'failures="{counts["failure"]}" errors="{counts["error"]}" '
            f'skipped="{counts["skipped"]}">'
        )
        for case in cases:
            yield from _case(case)
        yield "  </testsuite>"
    yield "</testsuites>"


def _case(case: Case) -> Iterator[str]:
    names = f"classname={_attribute(case.group)} name={_attribute(case.name)}"
    if case.outcome == "passed" and not case.reason:
        yield f"    <testcase {names}/>"
        return
    yield f"    <testcase {names}>"
    if case.reason:
        value = _attribute(case.reason)
        yield f'      <properties><property name="reason" value={value}/></properties>'
    if case.outcome == "skipped":
        yield "      <skipped/>"
    elif case.outcome != "passed":
        message = _attribute(case.message)
        yield f"      <{case.outcome} message={message}>{escape(_xml(case.text))}</{case.outcome}>"
    yield "    </testcase>"


def _attribute(value: str) -> str:
    return quoteattr(_xml(value))


def _xml(value: str) -> str:
    return value.translate(_NO_XML).encode("utf-8", "replace").decode()
