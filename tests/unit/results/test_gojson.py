"""L17: events of `go test -json`, from bytes to tests, packages and their output."""

from __future__ import annotations

import json

import pytest

from tests.unit.results.scene import judged, plain


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
