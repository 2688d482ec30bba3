"""`sonobuoy_results.yaml` read event by event: what counts, what is kept, what is refused."""

import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from reporter.results import manual, run_results
from reporter.results.run_results import PluginResults, read_results, read_tree


def read(text: str, node: str = "", *, every: bool = True, piece: int = 7) -> PluginResults | None:
    """Read a text that comes in small pieces."""
    data = text.encode()
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return read_tree("p", pieces, node, every=every)


def many(tests: int, status: str = "passed") -> str:
    """The results of so many tests on one node."""
    test = f"    - name: '[sig-node] a test with a long name'\n      status: {status}\n"
    head = "name: p\nstatus: passed\nitems:\n- name: n\n  meta: {type: node}\n  items:\n"
    return head + f"  - name: a.xml\n    items:\n{test * tests}"


def test_the_order_of_the_fields_does_not_matter() -> None:
    """JSON is YAML as well, and other tools sort the keys."""
    found = read(
        '{"items": [{"items": [{"details": {"failure": "x", "at": 7, "of": [1.5, true, null]}, '
        '"name": "t", "status": "failed"}], "meta": {"type": "node"}, "name": "n", '
        '"status": "failed"}], "meta": {"unlisted": "passed: 8"}, "name": "p", "status": "failed"}'
    )
    assert found is not None
    (test,) = found.tests
    assert (["p", "n"], "t", "failed", "x") == (test.path, test.name, test.status, test.said)
    assert {"failure": "x", "at": 7, "of": [1.5, True, None]} == test.details
    assert {"failed": 1, "passed": 8} == found.counts


def test_what_is_no_item_is_passed_over() -> None:
    """The items after it count."""
    found = read("items: [x, [y], {name: a, status: failed}]")
    assert found is not None
    assert {"failed": 1} == found.counts


@pytest.mark.parametrize("name", ["n", "p", "a", "other"])
def test_only_a_node_is_a_node(name) -> None:
    """Whatever else has the name: the plugin, a test, a file of a plugin that runs once."""
    text = (
        "{name: p, status: passed, items: ["
        "{name: a, status: passed, items: [{name: n, status: passed}]}, "
        "{name: m, status: passed, meta: {type: node}, items: [{name: n, status: passed}, "
        "{name: n, meta: {type: node}, status: passed}]}, "
        "{name: n, status: failed, meta: {type: node}, items: [{name: x, status: failed}]}]}"
    )
    found = read(text, name)
    if name == "n":
        assert found is not None
        assert ("failed", "failed", {"failed": 1}) == (found.status, found.verdict, found.counts)
        assert [["p"]] == [test.path for test in found.tests]
    else:
        assert found is None


def test_a_large_run_is_not_held(tmp_path: Path) -> None:
    """Fifty nodes with ten thousand tests each would take gigabytes."""
    folder = tmp_path / "plugins" / "p"
    folder.mkdir(parents=True)
    path = folder / "sonobuoy_results.yaml"
    path.write_text(many(5_000) + "    - {name: last, status: failed}\n")
    tracemalloc.start()
    try:
        (found,) = read_results(tmp_path, every=False).plugins
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_500_000  # as a whole it would take ten times as much
    assert {"passed": 5_000, "failed": 1} == found.counts
    assert ["last"] == [test.name for test in found.tests]


def test_a_file_that_cannot_be_read_does_not_hide_the_next_one(tmp_path: Path) -> None:
    """It is given up in its middle; the archive goes on behind it."""
    path = tmp_path / "results.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for plugin, text in {"b": "]" + " " * 3_000_000, "a": many(3), "c": many(2)}.items():
            member = tarfile.TarInfo(f"plugins/{plugin}/sonobuoy_results.yaml")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    found = read_results(path)
    assert [("a", 3), ("c", 2)] == [(each.name, each.counts["passed"]) for each in found.plugins]
    assert ["plugin b: sonobuoy_results.yaml cannot be read"] == found.problems
    assert ["c"] == [each.name for each in read_results(path, "c").plugins]


def test_tests_without_room_in_the_list_are_counted(monkeypatch) -> None:
    """Those that passed take no room from the others, nor do those of other nodes."""
    monkeypatch.setattr(run_results, "_LISTED", {True: 5000, False: 5000})
    failed = "    - {name: last, status: failed}\n"
    found = read(many(100) + failed)
    assert found is not None
    assert {"passed": 100, "failed": 1} == found.counts
    assert "last" == found.tests[0].name
    assert (101, "failed") == (len(found.tests) + found.unlisted, found.verdict)
    assert found.unlisted > 90
    other = "- {name: m, meta: {type: node}, items: [{name: x, status: failed}]}\n"
    found = read(many(100, "failed") + other, "m")
    assert found is not None
    assert (["x"], 0) == ([test.name for test in found.tests], found.unlisted)
    found = read(many(100, "failed"), every=False)
    assert found is not None
    assert ({"failed": 100}, "failed") == (found.counts, found.verdict)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a: [",
        "{name: p}\n---\n{name: q}",
        "a: &a {k: v}\nb: {<<: *a}",
        "items: [{name: a, details: {x: &a b, y: *a}}]",
        "items: [{name: a, *a : b}]",
        "? {a: b}\n: c",
        "items: [{name: a}]\nitems: [{name: b}]",
        "a: " + "[" * 150 + "]" * 150,
        "items: [" * 150 + "{name: x}" + "]" * 150,
        "a: \x01",
    ],
)
def test_what_is_refused(text) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the words are for nobody
        read(text)


def test_a_value_or_an_item_that_would_fill_the_memory(monkeypatch) -> None:
    monkeypatch.setattr(manual, "_LONGEST", 100_000)
    for text, why in (
        ("name: '" + "x" * 200_000 + "'", "a value is too long"),
        ("details: [" + "x, " * 20_000 + "]", "an item is too large"),
    ):
        with pytest.raises(ValueError, match="too large") as found:
            read(text, piece=1000)
        assert why == str(found.value.__cause__)
