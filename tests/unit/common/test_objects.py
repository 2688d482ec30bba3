"""Views of API objects, and quantities as Kubernetes writes them."""

from decimal import Decimal
from typing import Any

import pytest

from reporter.common.objects import View, quantity


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("64Mi", 64 * 2**20),
        ("1G", 10**9),
        ("67108864", 67108864),
        ("0.5Gi", 2**29),
        (".5", Decimal("0.5")),
        ("5.", 5),
        ("100m", Decimal("0.1")),
        ("1n", Decimal("0.000000001")),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("-1k", -1000),
    ],
)
def test_a_quantity(written, value):
    """All that the API server accepts."""
    assert value == quantity(written)


@pytest.mark.parametrize("written", ["", "Mi", "1 Mi", "1mi", "1KB", "1e", "1_000", "٣", "None"])
def test_no_quantity(written):
    """None."""
    assert quantity(written) is None


def test_what_every_object_may_have() -> None:
    found = {
        "metadata": {"name": "x", "uid": "1", "labels": {"a": "b"}, "deletionTimestamp": "now"},
        "status": {"conditions": ["?", {"type": "Ready", "status": "True", "reason": "R"}]},
    }
    view = View(found)

    assert ("x", "", "1", {"a": "b"}, {}) == (
        view.name,
        view.namespace,
        view.uid,
        view.labels,
        view.annotations,
    )
    assert (True, None, []) == (view.deleting, view.created, list(view.owners))
    assert "R" == view.condition("Failed", "Ready", status="True")["reason"]
    assert {} == view.condition("Ready", status="False")


@pytest.mark.parametrize("found", [{}, {"metadata": []}, {"metadata": {"name": 7}, "status": "x"}])
def test_an_object_that_is_none(found: dict[str, Any]) -> None:
    view = View(found)

    assert ("", {}, False) == (view.name, view.labels, view.deleting)
    assert {} == view.condition("Ready", status="True")
