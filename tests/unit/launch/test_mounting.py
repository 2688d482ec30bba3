"""Whose Pods wait for what they mount: those that have a node, no word of why, and had the time."""

import pytest

from reporter.launch.decide import MOUNTED, waiting_for_mounts
from reporter.run.entry import Entry, launch
from reporter.run.state import PodState
from tests.unit.launch.cluster import CHECK, NOW


@pytest.mark.parametrize(
    ("phase", "node", "reason", "launched", "after", "waits"),
    [
        ("Pending", "node1", "ContainerCreating", True, MOUNTED, True),
        ("Pending", "node1", "", True, MOUNTED, True),
        ("Pending", "node1", "ContainerCreating", True, MOUNTED - 1, False),
        ("Pending", "node1", "ContainerCreating", False, MOUNTED, False),
        ("Pending", "node1", "ImagePullBackOff", True, MOUNTED, False),
        ("Pending", "", "", True, MOUNTED, False),
        ("Running", "node1", "", True, MOUNTED, False),
    ],
)
def test_who_waits(
    phase: str, node: str, reason: str, launched: bool, after: float, waits: bool
) -> None:
    entry = launch(Entry(CHECK), NOW) if launched else Entry(CHECK)
    shown = PodState("check-x", node, phase, reason, "", None, 0)
    found = waiting_for_mounts({CHECK: shown}, {CHECK: entry}, now=NOW + after)
    assert ([CHECK] if waits else []) == found
