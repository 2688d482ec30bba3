"""Lists that are cut."""

import pytest

from reporter.core.within import within


@pytest.mark.parametrize(
    ("many", "size", "kept"),
    [(9, 99, ["aa", "b", "c"]), (2, 99, ["aa", "b"]), (9, 7, ["aa", "b"]), (9, 3, []), (0, 99, [])],
)
def test_a_list_that_is_cut(many, size, kept):
    """By number and by bytes, without gaps; the rest is counted."""
    assert (kept, 3 - len(kept)) == within(iter(["aa", "b", "c"]), many, size)
