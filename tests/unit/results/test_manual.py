"""L17: trees that a plugin writes itself, and what their aliases may cost."""

from __future__ import annotations

from tests.unit.results.scene import judged, plain, read


def test_a_manual_report_without_items_is_one_test():
    item, note = judged("manual", b"name: all\nstatus: passed\ndetails: {a: b}\n")
    assert ([["all", "passed", {"a": "b"}, {}]], "") == (plain(item), note)


def test_a_manual_report_whose_tests_say_that_they_are_its_plugins_verdict():
    """Only the aggregator says that, of a result without a report."""
    item, _ = judged("manual", b"items: [{name: a, status: failed, meta: {type: verdict, at: 3}}]")
    assert {"at": "3"} == item.items[0].meta


def test_aliases_cost_what_they_stand_for():
    """This report is small, and large when it is written out."""
    level = b"items: [" + b",".join(b"{name: x}" for _ in range(40)) + b"]"
    bomb = b"a: &a {" + level + b"}\nitems: [*a" + b",*a" * 9_000 + b"]"
    assert "more than 200000 items" == read("manual", bomb, piece=65_536).note


def test_a_tree_nested_too_deep_by_aliases():
    """No part of it is written that deep."""
    parts = [b"a0: &a0 {items: [{name: x}]}"]
    parts += [b"a%d: &a%d {items: [*a%d]}" % (n, n, n - 1) for n in range(1, 70)]
    item, note = judged("manual", b"\n".join([*parts, b"items: [*a69]"]))
    assert ("nested more than 64 levels deep", {"unknown": 1}) == (note, item.counts)
    parts = [b"a0: &a0 [x]", *(b"a%d: &a%d [*a%d]" % (n, n, n - 1) for n in range(1, 70))]
    item, _ = judged("manual", b"\n".join([*parts, b"items: [{details: {a: *a69}}]"]))
    assert f"{'[' * 64}' [truncated]'{']' * 64}" == str(item.items[0].details["a"])


def test_numbers_that_are_none_in_a_manual_report_stay_texts():
    item, _ = judged(
        "manual", b"items: [{details: {a: 0b2, b: 1_000, c: [x], d: 12:30:45}, meta: []}]"
    )
    assert {"a": "0b2", "b": 1000, "c": ["x"], "d": "12:30:45"} == item.items[0].details
