"""Counts of tests by status that are added up, and taken away again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.run.results import (
    MOST_WORDS,
    Sum,
    count_in,
    custom,
    status_of,
    status_word,
    sum_of,
    verdict_of,
)

COUNTS = st.dictionaries(
    st.sampled_from(["passed", "failed", "unknown", "degraded", "worn"]),
    st.integers(1, 9),
    max_size=3,
)


@given(st.lists(st.tuples(st.integers(0, 3), COUNTS)))
def test_a_sum_is_that_of_the_newest_counts_of_each_thing(told):
    """However often they change; a word that nothing has any more is not shown with 0."""
    kept, newest = Sum(), {}
    for name, counts in told:
        kept.put(name, counts)
        newest[name] = counts
    assert sum_of(newest.values()) == kept.counts()


def test_words_beyond_the_cap_are_taken_away_again():
    """They had counted as unknown."""
    kept = Sum()
    kept.put("a", {f"word {number}": 1 for number in range(MOST_WORDS)})
    kept.put("b", {"one more": 2})
    assert 2 == kept.counts()["unknown"]
    kept.put("b", {"passed": 2})
    assert "unknown" not in kept.counts()
    kept.put("a", {"failed": 1})
    assert {"passed": 2, "failed": 1} == kept.counts()


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
    counts: dict[str, int] = {}
    count_in(counts, {f"w{number}": 1 for number in range(50)})
    assert ({"unknown": 18}, 33) == ({k: v for k, v in counts.items() if v > 1}, len(counts))


@pytest.mark.parametrize(("said", "word"), [("a: 3", "unknown"), ("", "unknown"), ("worn", "worn")])
def test_a_status_that_no_count_could_show_is_unknown(said, word):
    assert word == status_word(said)
