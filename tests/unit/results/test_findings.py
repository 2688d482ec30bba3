"""L17: which files of a result count, and what their tests add up to."""

from __future__ import annotations

import pytest

from reporter.results.child import selects
from reporter.run.counting import count_in, custom, status_of, verdict_of
from tests.unit.results.scene import judged


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
