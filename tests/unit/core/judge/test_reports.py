"""L17: reports of every format, from bytes to items, counts and a verdict."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest
import yaml

from reporter.aggregator.judging.parsers import PARSERS
from reporter.core.judge import limits, report
from reporter.core.judge.counting import count_in, custom, status_of, verdict_of
from reporter.core.judge.listing import lines
from reporter.core.judge.report import (
    FileReport,
    Findings,
    adapter_item,
    error_item,
    raw_item,
    selects,
    unread_item,
)
from reporter.core.judge.tree import Item, Room
from reporter.wire import manual

HOME = "results/global"


def read(result_format: str, data: bytes, room: Room | None = None, piece: int = 7) -> FileReport:
    """Feed a report in pieces."""
    found = FileReport(PARSERS[result_format], "r", f"{HOME}/r", room or Room())
    for at in range(0, len(data), piece):
        found.feed(data[at : at + piece])
    return found


def judged(result_format: str, data: bytes, room: Room | None = None) -> tuple[Item, str]:
    """Return the item and the note of a report."""
    found = read(result_format, data, room)
    return found.item(), found.note


def plain(item: Item) -> list:
    """Return the items below as lists of name, status, details, meta and their own items."""
    return [
        [each.name, each.status, dict(each.details), dict(each.meta), *plain(each)]
        for each in item.items
    ]


def suite(inside: str, name: str = "s") -> bytes:
    """A report with one suite."""
    return f'<testsuites><testsuite name="{name}">{inside}</testsuite></testsuites>'.encode()


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
    item, note = judged("e2e", report)
    assert (counts, names, "") == (item.counts, [each.name for each in item.items], note)


def events(*found: tuple[str, ...]) -> bytes:
    """Events of `go test -json`: action, test, output, package."""
    names = ("Action", "Test", "Output", "Package")
    return b"\n".join(
        json.dumps(dict(zip(names, (*each, "", "")[:3], strict=False)) | {"Package": "p"}).encode()
        for each in found
    )


OPEN = [("start",), ("run", "TestA"), ("pass", "TestA")]
END = [("pass",)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (OPEN, {"passed": 1, "unknown": 1}),
        (OPEN[1:], {"passed": 1, "unknown": 1}),
        (OPEN[:1], {"unknown": 1}),
        (OPEN[:2], {"unknown": 2}),
        ([*OPEN, ("skip", "TestB"), *END], {"passed": 1, "skipped": 1}),
        ([*OPEN, *END, ("output", "", "PASS")], {"passed": 1}),
        ([*OPEN, *END, *OPEN], {"passed": 2, "unknown": 1}),
        ([("start",), ("skip",), *OPEN, *END], {"passed": 1}),
    ],
)
def test_a_package_of_go_without_an_end_is_unknown(found, expected):
    """The stream broke off, and with it what failed later."""
    item, note = judged("gojson", events(*found))
    assert (expected, "") == (item.counts, note)
    if "unknown" in expected:
        assert ["p", "unknown", {}, {"package": "p"}] == plain(item)[-1]


def test_every_open_package_of_go_is_named():
    """Those of several, in any order; and one without a name."""
    names = ("q", "", "a")
    lines = [json.dumps({"Action": "start", "Package": name}).encode() for name in names]
    item, _ = judged("gojson", b"\n".join([*lines, b'{"Action":"pass","Package":"q"}']))
    assert [["package", "unknown"], ["a", "unknown"]] == [each[:2] for each in plain(item)]


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
    assert (counts, "") == (found.item().counts, found.note)
    assert first == (found.first.name if found.first else "")
    assert found.first is None or found.first.text in ("", "no database")


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
        ("junit", b"<testsuites/>", "no tests in it"),
        ("junit", BOMB, "a document type with declarations is not allowed"),
        ("junit", b"<testsuite>" + b"<a>" * 64, "nested more than 64 levels deep"),
        ("junit", b'<testsuite a="' + b"x" * 2_000_000, "a tag is larger than 1048576 bytes"),
        ("junit", b'<?xml version="1.0" encoding="none"?><a/>', "not valid XML: unknown encoding"),
        ("junit", NAMES, TOO_MANY),
        ("junit", LONG, TOO_MANY),
        ("gojson", RUNS, "the names of running tests have more than 4194304 characters"),
        ("gojson", STARTS, "more than 10000 packages that have begun and not ended"),
        ("gojson", b"", "no tests in it"),
        ("gojson", b"\n\n", "no tests in it"),
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


def test_tests_of_go():
    """An item for each that has ended, with its package; of a failure the output."""
    item, note = judged(
        "gojson",
        events(
            ("start",),
            ("run", "TestA"),
            ("output", "TestA", "a_test.go:7: no\n"),
            ("output", "TestUnseen", "lost"),
            ("pause", "TestA"),
            ("cont", "TestA"),
            ("fail", "TestA"),
            ("run", "TestB"),
            ("output", "TestB", "fine"),
            ("pass", "TestB"),
            ("skip", "TestC"),
            ("bench", "BenchmarkD"),
            ("run", "TestHangs"),
            ("fail",),
        ),
    )
    package = {"package": "p"}
    assert [
        ["TestA", "failed", {"output": "a_test.go:7: no\n"}, package],
        ["TestB", "passed", {}, package],
        ["TestC", "skipped", {}, package],
        ["TestHangs", "unknown", {}, package],
    ] == plain(item)
    assert ({"failed": 1, "passed": 1, "skipped": 1, "unknown": 1}, "") == (item.counts, note)


def test_a_package_of_go_that_fails_without_a_test_has_failed():
    """It does not compile, or its TestMain failed; what is around it is read all the same."""
    item, note = judged("gojson", b"# p\n" + events(("pass", "TestA"), ("fail",)))
    assert [["TestA", "passed"], ["p", "failed"]] == [each[:2] for each in plain(item)]
    assert "line 1 is not an event of go test -json" == note
    nameless, _ = judged("gojson", b'{"Action":"fail"}')
    assert [["package", "failed", {}, {}]] == plain(nameless)


def test_output_of_go_is_kept_from_its_end():
    outputs = [("output", "TestA", f"{number:9}") for number in range(2000)]
    item, _ = judged("gojson", events(("run", "TestA"), *outputs, ("fail", "TestA")))
    said = item.items[0].details["output"]
    assert said.endswith("     1999")
    assert 8_000 < len(said) <= 8_192


def test_output_of_go_in_single_characters():
    """A text takes as much memory as eighty of its characters, so they are joined."""
    found = read("gojson", events(*(("run", f"Test{number}") for number in range(20))))
    piece = b"".join(
        b'\n{"Action":"output","Test":"Test%d","Package":"p","Output":"\xc4\x81"}' % number
        for number in range(20)
    )
    tracemalloc.start()
    for _ in range(2_000):
        found.feed(piece)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 20 * 20_000
    found.feed(b"\n" + events(("fail", "Test7")))
    assert "\u0101" * 2_000 == found.item().items[0].details["output"]


MANUAL = b"""\
name: mine
status: ignored
details: {version: 3, when: 2026-01-01}
items:
- name: disks
  items:
  - {name: sda, status: passed, meta: {size: 3, other: [x]}, details: &d {ok: yes, n: 1.5, s: "7"}}
  - {name: sdb, status: failed, details: *d}
- name: 12
- name: nil
  details: {a: [1, {b: ~}], big: 0o7}
  items: []
---
status: failed
"""


def test_a_tree_that_a_plugin_writes_itself():
    """The first document; what branches say of themselves does not count."""
    item, note = judged("manual", MANUAL)
    details = {"ok": True, "n": 1.5, "s": "7"}
    assert [
        [
            *("disks", "failed", {}, {}),
            ["sda", "passed", details, {"size": "3"}],
            ["sdb", "failed", details, {}],
        ],
        ["12", "unknown", {}, {}],
        ["nil", "unknown", {"a": [1, {"b": None}], "big": "0o7"}, {}],
    ] == plain(item)
    assert ({"passed": 1, "failed": 1, "unknown": 2}, "") == (item.counts, note)


def test_a_manual_report_without_items_is_one_test():
    item, note = judged("manual", b"name: all\nstatus: passed\ndetails: {a: b}\n")
    assert ([["all", "passed", {"a": "b"}, {}]], "") == (plain(item), note)


def bombs() -> Iterator[bytes]:
    """Reports that are small, and large when they are written out."""
    level = b"items: [" + b",".join(b"{name: x}" for _ in range(40)) + b"]"
    yield b"a: &a {" + level + b"}\nitems: [*a" + b",*a" * 9_000 + b"]"
    yield b"items: [{details: {a: &a [" + b"x," * 500 + b"], b: [" + b"*a," * 500 + b"]}}]"
    yield b"items: [" + b"x," * 400_001 + b"]"


@pytest.mark.parametrize("bomb", list(bombs()), ids=["items", "details", "values"])
def test_aliases_cost_what_they_stand_for(bomb):
    found = read("manual", bomb, piece=65_536)
    found.item()
    assert found.note.startswith("more than ")


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


def test_a_tree_nested_too_deep_by_aliases():
    """No part of it is written that deep."""
    parts = [b"a0: &a0 {items: [{name: x}]}"]
    parts += [b"a%d: &a%d {items: [*a%d]}" % (n, n, n - 1) for n in range(1, 70)]
    item, note = judged("manual", b"\n".join([*parts, b"items: [*a69]"]))
    assert ("nested more than 64 levels deep", {"unknown": 1}) == (note, item.counts)


def test_numbers_that_are_none_in_a_manual_report_stay_texts():
    item, _ = judged(
        "manual", b"items: [{details: {a: 0b2, b: 1_000, c: [x], d: 12:30:45}, meta: []}]"
    )
    assert {"a": "0b2", "b": 1000, "c": ["x"], "d": "12:30:45"} == item.items[0].details


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


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ({}, "unknown"),
        ({"passed": 2}, "passed"),
        ({"passed": 2, "skipped": 1}, "passed"),
        ({"skipped": 1}, "passed"),
        ({"passed": 2, "unknown": 1}, "unknown"),
        ({"passed": 2, "unknown": 1, "failed": 1}, "failed"),
        ({"passed": 2, "timeout": 1}, "failed"),
        ({"passed": 2, "degraded": 1}, "unknown"),
        ({"failed": 2, "degraded": 1}, "failed"),
        ({"failed": 0, "passed": 1}, "passed"),
    ],
)
def test_roll_up(counts, verdict):
    assert verdict == verdict_of(counts) == status_of(counts)


def test_words_of_a_plugin_are_counted_in_the_status():
    counts = {"passed": 2, "degraded": 1}
    assert custom(counts)
    assert not custom({"passed": 1, "timeout": 1, "skipped": 1})
    assert "degraded: 1, passed: 2" == status_of(counts, counted=True)


def test_a_plugin_has_so_many_words():
    """And one that no count could show is unknown."""
    counts: dict[str, int] = {}
    count_in(counts, {f"w{number}": 1 for number in range(50)})
    assert ({"unknown": 18}, 33) == ({k: v for k, v in counts.items() if v > 1}, len(counts))
    item, _ = judged("manual", b'items: [{status: "a: 3"}, {status: degraded}]')
    assert {"unknown": 1, "degraded": 1} == item.counts


@pytest.mark.parametrize(
    ("result_format", "files", "name", "taken"),
    [
        ("junit", (), "a.xml", True),
        ("e2e", (), "a.xml", True),
        ("junit", (), "a.json", False),
        ("gojson", (), "a.json", True),
        ("manual", (), "a.yaml", True),
        ("manual", (), "a.yml", True),
        ("raw", (), "anything", True),
        ("junit", ("b.txt",), "b.txt", True),
        ("junit", ("b.txt",), "a.xml", False),
    ],
)
def test_which_files_count(result_format, files, name, taken):
    assert taken is selects(result_format, files, name)


def test_what_a_result_adds_up_to():
    """Of several files the first failure and the first note are told."""
    found = Findings()
    found.add(raw_item("a", "results/n/a"), None, "")
    for data in (suite('<testcase name="x"><error>e</error></testcase>'), b"<", b"{"):
        each = read("junit", data)
        found.add(each.item(), each.first, each.note)
    found.end("nothing")
    assert {"passed": 1, "failed": 1, "unknown": 2} == found.counts
    assert ("x", "r: not valid XML: unclosed token: line 1, column 0") == (
        found.first.name,
        found.note,
    )


def test_a_result_without_files_is_unknown():
    found = Findings()
    found.end("no a.xml in it")
    assert ({"unknown": 1}, "no a.xml in it") == (found.counts, found.note)


def written(*items: Item, counted: bool = False) -> list:
    """Return items as somebody reads them from YAML."""
    text = "".join(line for item in items for line in lines(item, 0, counted=counted))
    return yaml.safe_load(text)


def test_items_as_yaml():
    item, _ = judged("manual", MANUAL)
    assert [
        {
            "name": "r",
            "status": "failed",
            "meta": {"file": f"{HOME}/r", "type": "file"},
            "items": [
                {
                    "name": "disks",
                    "status": "failed",
                    "items": [
                        {
                            "name": "sda",
                            "status": "passed",
                            "meta": {"size": "3"},
                            "details": {"ok": True, "n": 1.5, "s": "7"},
                        },
                        {
                            "name": "sdb",
                            "status": "failed",
                            "details": {"ok": True, "n": 1.5, "s": "7"},
                        },
                    ],
                },
                {"name": "12", "status": "unknown"},
                {
                    "name": "nil",
                    "status": "unknown",
                    "details": {"a": [1, {"b": None}], "big": "0o7"},
                },
            ],
        }
    ] == written(item)


def test_statuses_of_branches_as_counts():
    item, _ = judged("manual", b"items: [{name: a, items: [{status: degraded}, {status: passed}]}]")
    (found,) = written(item, counted=True)
    assert "degraded: 1, passed: 1" == found["status"] == found["items"][0]["status"]


def test_items_of_results_that_nobody_parses():
    made = [
        raw_item("log", "results/n/log"),
        adapter_item("r.json", "results/n/r.json", "failed", "DiskSlow", "80 ms"),
        adapter_item("r.json", "results/n/r.json", "unknown", "", ""),
        error_item("errors/n/error.json", "gone", {"error": "gone", "n": 3}, timeout=False),
        error_item("errors/n/error.json", "late", {}, timeout=True),
    ]
    names = [(each["name"], each["status"], each.get("details")) for each in written(*made)]
    assert [
        ("log", "passed", None),
        ("r.json", "failed", None),
        ("r.json", "unknown", None),
        ("gone", "failed", {"error": "gone", "n": "3"}),
        ("late", "timeout", None),
    ] == names
    assert {
        "name": "DiskSlow",
        "status": "failed",
        "details": {"reason": "DiskSlow", "message": "80 ms"},
    } == written(made[1])[0]["items"][0]


def test_any_text_survives_yaml():
    """Whatever a test is called."""
    strange = 'a"\\\n\t\0\x1b\x7f\x85\u2028\ufeff\ufffe é 😀 : - #'
    made = Item(strange, "passed", {strange: "\ud800"}, {"f": [float("inf"), float("-inf"), ""]})
    (found,) = written(made)
    assert (strange, {strange: "\ufffd"}) == (found["name"], found["meta"])
    assert [float("inf"), float("-inf"), ""] == found["details"]["f"]
    (nan,) = written(Item("n", "passed", {}, {"f": float("nan")}))
    assert nan["details"]["f"] != nan["details"]["f"]


def test_a_result_whose_reading_was_given_up():
    (found,) = written(unread_item("r", "results/n/r", "too large"))
    assert ("unknown", "too large") == (found["status"], found["meta"]["error"])
