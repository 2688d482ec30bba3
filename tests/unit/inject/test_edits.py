"""Changes of a value that leave the old one as it was."""

from reporter.inject.edits import Add, Put, Remove, apply, get


def test_a_change_leaves_the_old_value_and_all_that_it_is_not_about():
    """The old one is needed for the next Job of a list; a copy of the whole would cost each Job."""
    old = {"a": [{"b": [1]}, {"c": {}}], "d": {"e": 2}}
    edits = [Add(("a", 0, "b"), 2), Put(("a", 1, "c", "x"), 1), Remove(("a", 0))]

    new = apply(old, edits)

    assert {"a": [{"c": {"x": 1}}], "d": {"e": 2}} == new
    assert {"a": [{"b": [1]}, {"c": {}}], "d": {"e": 2}} == old
    assert new["d"] is old["d"]


def test_nothing_is_at_a_path_that_leads_nowhere():
    """As an empty value, never an error."""
    assert [None] * 3 == [get(value, path) for value, path in [({}, (0,)), ([], (0,)), (1, ("a",))]]
