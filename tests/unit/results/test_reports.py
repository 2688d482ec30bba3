"""L17: reports of every format that cannot be read to their end, or listed as a whole."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from reporter.results import junit
from reporter.results.items import lines
from reporter.results.report import Report, Room, Text
from reporter.run.results import verdict_of
from tests.unit.results.scene import HOME, PARSE, judged, plain, read, suite

BOMB = b'<!DOCTYPE a [<!ENTITY b "%s"><!ENTITY c "&b;&b;">]><testsuite name="&c;"/>' % (b"x" * 99)


@pytest.mark.parametrize(
    ("result_format", "report", "note"),
    [
        ("junit", b"", "not valid XML: no element found: line 1, column 0"),
        ("junit", b"ok 1 - works", "not valid XML: syntax error: line 1, column 0"),
        ("junit", b"<html/>", "not a JUnit report: the root is neither testsuites nor testsuite"),
        ("junit", b"<testsuites/>", "no tests found"),
        ("junit", BOMB, "a document type with declarations is not allowed"),
        ("junit", b"<testsuite>" + b"<a>" * 64, "nested more than 64 levels deep"),
        ("junit", b'<?xml version="1.0" encoding="none"?><a/>', "not valid XML: unknown encoding"),
        ("gojson", b"", "no tests found"),
        ("gojson", b"\n\n", "no tests found"),
        ("gojson", b"FAIL\tpkg [build failed]\n", "line 1 is not an event of go test -json"),
        ("gojson", b"[" * 100_000, "line 1 is not an event of go test -json"),
        ("gojson", b'\n{"Action":7}', "line 2 is not an event of go test -json"),
        ("manual", b"", "not a tree of results: the document is not a mapping"),
        ("manual", b"- a", "not a tree of results: the document is not a mapping"),
        ("manual", b"a: b: c", "not valid YAML in line 1"),
        ("manual", b"\xff\xff", "not valid YAML"),
        ("manual", b"items: [x]", "not a tree of results: an item is not a mapping"),
        ("manual", b"? [a]\n: b", "not a tree of results: a key is not a text"),
        ("manual", b"a: *b", "not valid YAML: an alias without its anchor"),
        ("manual", b"a: &b [*b]", "not valid YAML: an alias without its anchor"),
        ("manual", b"a: " + b"[" * 70, "nested more than 64 levels deep"),
    ],
)
def test_what_cannot_be_read_is_unknown_and_says_why(result_format, report, note):
    item, said = judged(result_format, report)
    assert (note, {"unknown": 1}) == (said, item.counts)
    assert {"file": f"{HOME}/r", "type": "file", "error": note} == item.meta


def test_a_report_that_breaks_off_keeps_what_it_has_said():
    """A test that failed has failed; without one the rest may have said so."""
    failed = suite('<testcase name="a"><failure>x</failure></testcase>')[:-13]
    item, note = judged("junit", failed)
    assert {"failed": 1, "unknown": 1} == item.counts
    assert note.startswith("not valid XML: ")
    assert [["s", "failed", {}, {}, ["a", "failed", {"failure": "x"}, {}]]] == plain(item)
    item, _ = judged("junit", suite('<testcase name="a"/>')[:-13])
    assert "unknown" == verdict_of(item.counts)


@pytest.mark.parametrize("result_format", ["junit", "gojson", "manual"])
def test_a_report_without_the_memory_for_it_keeps_what_it_has_said(result_format):
    """A process may have so much; what is left of the report is not read."""
    failed = {
        "junit": b'<testsuite name="s"><testcase><error/></testcase>',
        "gojson": b'{"Action":"fail","Test":"A"}\n',
        "manual": b"",
    }[result_format]

    def pieces() -> Iterator[bytes]:
        yield failed
        raise MemoryError

    found = Report("r", Room.of_list())
    found.read(PARSE[result_format], pieces())
    expected = {"failed": 1, "unknown": 1} if failed else {"unknown": 1}
    assert (expected, "it takes too much memory to read") == (found.item.counts, found.note)


CASES = "".join(
    f'<testcase name="{number}">{"<failure>why</failure>" if number % 5 == 0 else ""}</testcase>'
    for number in range(50)
)


def test_what_there_is_no_room_for_is_counted():
    """Of good tests and of others so many are listed; texts end where their room does."""
    item, _ = judged("junit", suite(CASES), Room(passed=3, others=4, others_text=Text(83)))
    listed = [each.name for each in item.items[0].items]
    assert ["0", "1", "2", "3", "5", "10", "15"] == listed
    assert {"failed": 10, "passed": 40} == item.counts == item.items[0].counts
    assert "failed: 6, passed: 37" == item.meta["unlisted"]
    said = [each.details.get("failure") for each in item.items[0].items if each.details]
    assert ["why", "wh [truncated]", " [truncated]", " [truncated]"] == said


def test_good_tests_leave_the_others_their_room():
    """However much they say: a failure after them has its text."""
    cases = f'<testcase name="a" classname="{"c" * 90}"/>' * 9
    room = Room(passed=9, others=1, passed_text=Text(200), others_text=Text(200))
    item, _ = judged(
        "junit", suite(f'{cases}<testcase name="b"><failure>why</failure></testcase>'), room
    )
    assert {"failure": "why"} == item.items[0].items[-1].details


def test_of_a_long_text_the_beginning_is_kept():
    item, _ = judged("junit", suite(f"<testcase><error>{'x' * 99}{'<b/>y' * 9}</error></testcase>"))
    assert "x" * 99 + "y" * 9 == item.items[0].items[0].details["error"]
    found = read("junit", suite(f"<testcase><error>{'xy<b/>' * 50_000}</error></testcase>"))
    said = found.item.items[0].items[0].details["error"]
    assert (32_768, " [truncated]") == (len(said[:-12]), said[-12:])


def test_suites_without_room_are_counted_too():
    inside = '<testsuite name="e"/>' * 9
    item, _ = judged("junit", suite(inside), Room(others=2))
    assert ({"unknown": 9}, 2) == (item.counts, len(item.items[0].items))
    assert "unknown: 7" == item.meta["unlisted"]


def test_the_first_failure_is_known_without_a_list():
    found = read("junit", suite(CASES), Room())
    item = found.item
    assert ("0", "why") == found.first
    assert [] == item.items


def test_a_million_cases_take_no_more_memory_than_the_listed_ones():
    """The last of them, too, has been read."""
    found = Report("r", Room(passed=100))

    def pieces() -> Iterator[bytes]:
        yield b"<testsuite>"
        tracemalloc.start()
        for _ in range(100):
            yield b'<testcase name="a" classname="b"/>' * 300
        yield b'<testcase name="last"><failure/></testcase></testsuite>'

    found.read(junit.parse, pieces())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert {"passed": 30_000, "failed": 1} == found.item.counts
    assert peak < 1_000_000


def test_what_is_listed_of_an_alias_takes_its_room_each_time():
    """A text of a megabyte that a thousand items have would be written a thousand times."""
    item = b"- {name: x, meta: {m: *a}, details: {b: [*a, *a], c: {d: *a}, e: *l}}\n"
    texts = b"text: &a " + b"x" * 40_000 + b"\nlist: &l [" + b"y, " * 1_000 + b"]\n"
    report = texts + b"items:\n" + item * 1_000
    found = read("manual", report, Room(others=1_000, others_text=Text(500_000)), piece=65_536)
    assert {"unknown": 1_000} == found.item.counts
    assert len("".join(lines(found.item, 0, counted=False))) < 700_000
