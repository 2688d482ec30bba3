"""The tests of a result that did not pass, as the page gets them."""

import json
from dataclasses import replace

import pytest

from reporter.results.items import from_record, not_passed, said
from reporter.results.report import Places, Report, Room
from reporter.run.record import Cause, Rank, Record
from tests.unit.results.scene import read

JUNIT = b"""<testsuite name="s"><testcase name="good" classname="c"/>
<testcase name="skipped"><skipped/></testcase>
<testcase name="bad" classname="c"><failure message="why">line 7</failure></testcase></testsuite>"""
GO = b"""{"Action":"run","Package":"p","Test":"Open"}
{"Action":"fail","Package":"p","Test":"Bad"}
{"Action":"fail","Package":"p"}"""
MANUAL = b"items: [{name: a, status: worn}, {name: b, status: failed, details: {message: m}}]"


def told(found: Report) -> list:
    """The tests as rows, and what is left out of the list."""
    document = json.loads(not_passed(found.shown, found.item.counts))
    tests = [
        (each["status"], "/".join(each["path"]), each["name"], each["text"])
        for each in document["tests"]
    ]
    return [tests, document["unlisted"]]


@pytest.mark.parametrize(
    ("result_format", "report", "tests"),
    [
        ("junit", JUNIT, [("failed", "r/s/c", "bad", "why line 7")]),
        ("gojson", GO, [("failed", "r/p", "Bad", ""), ("unknown", "r/p", "Open", "")]),
        ("manual", MANUAL, [("failed", "r", "b", "m"), ("worn", "r", "a", "")]),
        ("junit", b"", [("unknown", "", "r", "not valid XML: no element found: line 1, column 0")]),
        ("junit", b"<testsuite/>", [("unknown", "r", "testsuite-001", "no tests found")]),
        ("gojson", b"", [("unknown", "", "r", "no tests found")]),
    ],
)
def test_tests_of_every_format(result_format, report, tests):
    """What failed is first; a file that says nothing is one of them, with the reason."""
    assert [tests, {}] == told(read(result_format, report, Room.of_page()))


def test_places_are_for_failed_tests_and_for_others():
    """So others take none from what failed; what has no place is counted."""
    found = Report("r", Room(failed=Places(2, 999), unclear=Places(1, 999)))
    for status in ("unknown", "worn", "failed", "passed", "timeout", "failed"):
        found.test(status, status)
    tests, unlisted = told(found)
    assert ["failed", "timeout", "unknown"] == [each[0] for each in tests]
    assert {"failed": 1, "worn": 1} == unlisted


@pytest.mark.parametrize("status", ["failed", "unknown"])
def test_a_test_that_does_not_fit_is_the_last_that_was_wanted(status):
    """What is shown has no gaps, and is never larger than the places for it."""
    found = Report("r", Room(failed=Places(9, 200), unclear=Places(9, 200)))
    for text in ("first", "x" * 300, "third"):
        found.test(text, status)
    assert [[(status, "r", "first", "")], {status: 2}] == told(found)


def test_hostile_names_and_texts_are_cut():
    """Lone surrogates, too, can be sent."""
    found = Report("r", Room.of_page())
    for _ in range(99):
        found.enter("\ud800" * 1000)
    for length in (4096, 4097):
        found.test("n", "failed", {"failure": "t" * length})
    whole, cut = json.loads(not_passed(found.shown, {"failed": 2}))["tests"]
    assert [1] + [256] * 15 == [len(each) for each in whole["path"]]
    assert ["t" * 4096, "t" * 4096 + " [truncated]"] == [whole["text"], cut["text"]]


ADAPTER = Record(Rank.RESULT, 1.0, verdict="failed", reason="DiskSlow", message="80 ms")


@pytest.mark.parametrize(
    ("record", "test"),
    [
        (ADAPTER, ("failed", "DiskSlow", "80 ms")),
        (replace(ADAPTER, verdict="passed"), None),
        (Record(Rank.WORKER, 1.0, text="no journal"), ("failed", "", "no journal")),
        (
            Record(Rank.AGGREGATOR, 1.0, cause=Cause.DEADLINE, text="too late"),
            ("timeout", "deadline", "too late"),
        ),
    ],
)
def test_a_result_without_tests_of_its_own(record, test):
    """An adapter's is one test, and so is an error."""
    document = json.loads(from_record(record))
    found = [(each["status"], each["name"], each["text"]) for each in document["tests"]]
    assert ([test] if test else [], {}) == (found, document["unlisted"])


def test_a_report_whose_tests_were_not_kept():
    """How many there are is known."""
    record = replace(ADAPTER, counts={"passed": 5, "failed": 3, "worn": 1})
    assert {"tests": [], "unlisted": {"failed": 3, "worn": 1}} == json.loads(from_record(record))


@pytest.mark.parametrize(
    ("details", "meta", "text"),
    [
        ({"output": "o", "failure": "f"}, {}, "f"),
        ({"smart": "bad"}, {"error": "e"}, "e"),
        ({"failure": "", "output": "o"}, {}, "o"),
        ({}, {}, ""),
    ],
)
def test_what_a_test_says(details, meta, text):
    """The most telling detail."""
    assert text == said(details, meta)
