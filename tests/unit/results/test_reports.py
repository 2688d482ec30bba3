"""L17: reports of every format that cannot be read to their end, or listed as a whole."""

from __future__ import annotations

import tracemalloc

import pytest

from reporter.results import limits, manual, report
from reporter.results.parsers import PARSERS
from reporter.results.report import FileReport
from reporter.results.tree import Room
from reporter.run.counting import verdict_of
from tests.unit.results.scene import HOME, judged, plain, read, suite

BOMB = b'<!DOCTYPE a [<!ENTITY b "%s"><!ENTITY c "&b;&b;">]><testsuite name="&c;"/>' % (b"x" * 99)
NAMES = b"<testsuite>" + b"".join(b"<a%d/>" % number for number in range(10_001))
LONG = b"<testsuite>" + b"".join(b'<a b%d%s=""/>' % (n, b"x" * 60_000) for n in range(80))
TOO_MANY = "more than 10000 different names of tags and attributes, or too long ones"
RUN = b'{"Action":"run","Test":"%d%s"}\n'
STARTS = b"".join(b'{"Action":"start","Package":"%d"}\n' % n for n in range(10_001))
RUNS = b"".join(RUN % (number, b"x" * 60_000) for number in range(80))


@pytest.mark.parametrize(
    ("result_format", "report", "note"),
    [
        ("junit", b"", "not valid XML: no element found: line 1, column 0"),
        ("junit", b"ok 1 - works", "not valid XML: syntax error: line 1, column 0"),
        ("junit", b"<html/>", "not a JUnit report: the root is neither testsuites nor testsuite"),
        ("junit", b"<testsuites/>", "no tests found"),
        ("junit", BOMB, "a document type with declarations is not allowed"),
        ("junit", b"<testsuite>" + b"<a>" * 64, "nested more than 64 levels deep"),
        ("junit", b'<testsuite a="' + b"x" * 2_000_000, "a tag is larger than 1048576 bytes"),
        ("junit", b'<?xml version="1.0" encoding="none"?><a/>', "not valid XML: unknown encoding"),
        ("junit", NAMES, TOO_MANY),
        ("junit", LONG, TOO_MANY),
        ("gojson", RUNS, "the names of running tests have more than 4194304 characters"),
        ("gojson", STARTS, "more than 10000 packages that have begun and not ended"),
        ("gojson", b"", "no tests found"),
        ("gojson", b"\n\n", "no tests found"),
        ("gojson", b"FAIL\tpkg [build failed]\n", "line 1 is not an event of go test -json"),
        ("gojson", b"[" * 100_000, "line 1 is not an event of go test -json"),
        ("gojson", b'\n{"Action":7}', "line 2 is not an event of go test -json"),
        ("gojson", b'{"' + b"x" * 2_000_000, "line 1 is larger than 1048576 bytes"),
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
    item, said = judged(result_format, report) if len(report) < 999 else (None, None)
    if item is None:
        found = read(result_format, report, piece=65_536)
        item, said = found.item(), found.note
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


@pytest.mark.parametrize("which", [limits, manual], ids=["any", "manual"])
def test_a_report_that_is_too_large_is_not_read_on(monkeypatch, which):
    monkeypatch.setattr(report if which is limits else manual, "MOST_BYTES", 20)
    item, note = judged("manual", b"status: passed\nname: very long\n")
    assert ({"unknown": 1}, "larger than 20 bytes") == (item.counts, note)


CASES = "".join(
    f'<testcase name="{number}">{"<failure>why</failure>" if number % 5 == 0 else ""}</testcase>'
    for number in range(50)
)


def test_what_there_is_no_room_for_is_counted():
    """Of good tests and of others so many are listed; texts end where their room does."""
    item, _ = judged("junit", suite(CASES), Room(passed=3, others=4, text=5, each=4))
    listed = [each.name for each in item.items[0].items]
    assert ["0", "1", "2", "3", "5", "10", "15"] == listed
    assert {"failed": 10, "passed": 40} == item.counts == item.items[0].counts
    assert "failed: 6, passed: 37" == item.meta["unlisted"]
    said = [each.details.get("failure") for each in item.items[0].items if each.details]
    assert "why" == said[0]
    assert "wh [truncated]" == said[1]
    assert " [truncated]" == said[2]


def test_of_a_long_text_the_beginning_is_kept():
    item, _ = judged("junit", suite(f"<testcase><error>{'x' * 99}{'<b/>y' * 9}</error></testcase>"))
    assert "x" * 99 + "y" * 9 == item.items[0].items[0].details["error"]
    found = read("junit", suite(f"<testcase><error>{'xy<b/>' * 50_000}</error></testcase>"))
    said = found.item().items[0].items[0].details["error"]
    assert (32_768, " [truncated]") == (len(said[:-12]), said[-12:])


def test_suites_without_room_are_counted_too():
    inside = '<testsuite name="e"/>' * 9
    item, _ = judged("junit", suite(inside), Room(others=2))
    assert ({"unknown": 9}, 2) == (item.counts, len(item.items[0].items))


def test_the_first_failure_is_known_without_a_list():
    found = read("junit", suite(CASES), Room(0, 0, 0))
    item = found.item()
    assert ("0", "why") == (found.first.name, found.first.text)
    assert [] == item.items


def test_a_million_cases_take_no_more_memory_than_the_listed_ones():
    """The last of them, too, has been read."""
    found = FileReport(PARSERS["junit"], "r", "r", Room(passed=100))
    found.feed(b"<testsuite>")
    tracemalloc.start()
    for _ in range(100):
        found.feed(b'<testcase name="a" classname="b"/>' * 300)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    found.feed(b'<testcase name="last"><failure/></testcase></testsuite>')
    assert {"passed": 30_000, "failed": 1} == found.item().counts
    assert peak < 1_000_000
