"""L17: JUnit's reports, from bytes to cases, suites and counts."""

from __future__ import annotations

import pytest

from reporter.run.results import verdict_of
from tests.unit.results.scene import judged, plain, read, suite


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param('<testcase name="a"/>', ["a", "passed", {}, {}], id="passed"),
        pytest.param(
            '<testcase name="a" classname="p.C"><skipped message="no disk"/></testcase>',
            ["a", "skipped", {}, {"classname": "p.C"}],
            id="skipped",
        ),
        pytest.param(
            '<testcase name="a"><failure message="is 3"> line 1\nline 2 </failure></testcase>',
            ["a", "failed", {"failure": "is 3  line 1\nline 2"}, {}],
            id="failed: message and text",
        ),
        pytest.param(
            '<testcase name="a"><failure message="is 3"/><failure message="is 4"/></testcase>',
            ["a", "failed", {"failure": "is 3 is 4"}, {}],
            id="failed twice",
        ),
        pytest.param(
            '<testcase name="a"><failure/></testcase>', ["a", "failed", {}, {}], id="mute"
        ),
        pytest.param(
            '<testcase name="a"><error>boom <b>now</b></error></testcase>',
            ["a", "failed", {"error": "boom now"}, {}],
            id="error",
        ),
        pytest.param(
            '<testcase name="a"><skipped/><failure>x</failure></testcase>',
            ["a", "failed", {"failure": "x"}, {}],
            id="a failure is not hidden by a skip",
        ),
        pytest.param(
            '<testcase name="a"><system-out> o\n</system-out><system-err>e</system-err></testcase>',
            ["a", "passed", {"system-out": " o\n", "system-err": "e"}, {}],
            id="output",
        ),
        pytest.param(
            '<testcase name="a"><rerunFailure>x</rerunFailure><testcase name="b"/></testcase>',
            ["a", "passed", {}, {}],
            id="what is not known is passed over",
        ),
    ],
)
def test_a_case_of_junit(case, expected):
    item, note = judged("junit", suite(case))
    assert ([["s", verdict_of({expected[1]: 1}), {}, {}, expected]], "") == (plain(item), note)
    assert {expected[1]: 1} == item.counts


UTF16 = '<?xml version="1.0" encoding="utf-16"?><testsuite name="é"><testcase/></testsuite>'


@pytest.mark.parametrize(
    ("report", "counts", "names"),
    [
        (b'<testsuite><testcase name="a"/></testsuite>', {"passed": 1}, ["testsuite-001"]),
        (b'<testsuites><testcase name="a"/></testsuites>', {"passed": 1}, ["a"]),
        (
            b'<j:testsuites xmlns:j="u"><j:testsuite name="s"><j:testcase><j:error/></j:testcase>'
            b"</j:testsuite></j:testsuites>",
            {"failed": 1},
            ["s"],
        ),
        (b'<!DOCTYPE a><testsuite name="s"><testcase/></testsuite>', {"passed": 1}, ["s"]),
        (
            b'<testsuite name="o"><testsuite name="i"><testcase name="a"><failure/></testcase>'
            b'</testsuite><testcase name="b"/></testsuite>',
            {"failed": 1, "passed": 1},
            ["o"],
        ),
        (
            b'<testsuites><testsuite name="empty"/><testsuite name="s"><testcase/></testsuite>'
            b"</testsuites>",
            {"unknown": 1, "passed": 1},
            ["empty", "s"],
        ),
        (
            UTF16.encode("utf-16"),
            {"passed": 1},
            ["é"],
        ),
    ],
    ids=[
        "one suite",
        "no suite",
        "a namespace",
        "a document type",
        "nested",
        "an empty suite",
        "UTF-16",
    ],
)
def test_suites_of_junit(report, counts, names):
    """Every case counts, wherever it is; a suite without any is unknown."""
    item, note = judged("junit", report)
    assert (counts, names, "") == (item.counts, [each.name for each in item.items], note)


@pytest.mark.parametrize(
    ("report", "counts", "first"),
    [
        (suite('<error message="no database"/><testcase/>'), {"failed": 1, "passed": 1}, "s"),
        (
            suite("<failure>no<error/> database</failure><testcase/>"),
            {"failed": 1, "passed": 1},
            "s",
        ),
        (b"<testsuites><error>no database</error></testsuites>", {"failed": 1}, "testsuites"),
        (suite("<properties><error>x</error></properties><testcase/>"), {"passed": 1}, ""),
        (suite('<testcase name="a" status="failed"/>'), {"failed": 1}, "a"),
        (suite('<testcase name="a" result="ERROR"/>'), {"failed": 1}, "a"),
        (suite('<testcase name="a" status="run" result="completed"/>'), {"passed": 1}, ""),
    ],
)
def test_failures_of_junit_outside_of_a_case_s_elements(report, counts, first):
    """A suite whose setup failed, and a case that says so in an attribute."""
    found = read("junit", report)
    assert (counts, "") == (found.item.counts, found.note)
    name, text = found.first or ("", "")
    assert (first, True) == (name, text in ("", "no database"))


CASE = '<testcase name="a">{}</testcase>'


@pytest.mark.parametrize(
    ("report", "counts"),
    [
        ('<testsuites errors="1"><testsuite>{}</testsuite></testsuites>', "denied"),
        ('<testsuite tests="2" failures="01">{}</testsuite>', "denied"),
        ('<testsuite><testsuite errors="2">{}</testsuite></testsuite>', "denied"),
        ('<testsuite failures="0" errors="">{}</testsuite>', "passed"),
        ('<testsuite failures="none" errors="-1">{}</testsuite>', "passed"),
    ],
)
def test_suites_of_junit_that_count_failures(report, counts):
    """Where no test has failed the failed one is missing, so nobody knows."""
    note = "a suite counts failures or errors, and no test in it has failed"
    item, said = judged("junit", report.format(CASE.format("")).encode())
    expected = ({"passed": 1, "unknown": 1}, note) if counts == "denied" else ({"passed": 1}, "")
    assert expected == (item.counts, said)
    item, said = judged("junit", report.format(CASE.format("<failure/>")).encode())
    assert ({"failed": 1}, "") == (item.counts, said)
