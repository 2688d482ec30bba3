"""Counts of tests by status that are added up, and taken away again."""

from hypothesis import given
from hypothesis import strategies as st

from reporter.run.counting import MOST_WORDS, Sum, sum_of

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
