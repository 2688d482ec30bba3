"""L17: items as they are written, and as somebody reads them from YAML."""

from __future__ import annotations

import yaml

from reporter.results.items import (
    Item,
    adapter_item,
    error_item,
    lines,
    raw_item,
    unread_item,
)
from tests.unit.results.scene import HOME, MANUAL, judged


def written(*items: Item, counted: bool = False) -> list:
    """Return items as somebody reads them from YAML."""
    text = "".join(line for item in items for line in lines(item, 0, counted=counted))
    return yaml.safe_load(text)


def test_items_as_yaml():
    item, note = judged("manual", MANUAL)
    assert ({"passed": 1, "failed": 1, "unknown": 2}, "") == (item.counts, note)
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
        error_item("errors/n/error.json", "lost", {}, timeout=False, verdict="passed"),
        error_item("errors/n/error.json", "unclear", {}, timeout=False, verdict="unknown"),
    ]
    names = [(each["name"], each["status"], each.get("details")) for each in written(*made)]
    assert [
        ("log", "passed", None),
        ("r.json", "failed", None),
        ("r.json", "unknown", None),
        ("gone", "failed", {"error": "gone", "n": "3"}),
        ("late", "timeout", None),
        ("lost", "failed", None),
        ("unclear", "unknown", None),
    ] == names
    assert {
        "name": "DiskSlow",
        "status": "failed",
        "meta": {"path": "results/n/r.json", "type": "verdict"},
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
