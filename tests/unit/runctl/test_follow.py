"""What Pods wait for, told while somebody waits for the run."""

import pytest

from reporter.run.view import rows
from reporter.runctl.wait import STANDS, Goal, HeldUp


def document(**reasons: str) -> dict[str, object]:
    """Return a run whose entries' Pods wait for this, by the name of the node."""
    return {
        "plugins": [
            {"name": "p", "key": f"p/{node}", "pod": {"phase": "Pending", "reason": reason}}
            for node, reason in reasons.items()
        ]
    }


def test_what_stands_is_told_once_for_all_nodes() -> None:
    """Not what passes; another reason of the same Pod at once."""
    now = 0.0
    held = HeldUp(lambda: now)

    assert [] == held.see(document(n1="NoPod"))
    now = STANDS
    assert [] == held.see(document())
    assert [] == held.see(document(n1="ErrImagePull", n2="ErrImagePull"))
    now += STANDS
    assert ["p/n1: Pending: ErrImagePull"] == held.see(
        document(n1="ErrImagePull", n2="ErrImagePull")
    )
    assert ["p/n1: Pending: ImagePullBackOff"] == held.see(document(n1="ImagePullBackOff"))
    assert [] == held.see(document(n1="ErrImagePull"))


@pytest.mark.parametrize(
    ("reason", "phase", "state", "stuck"),
    [
        ("ErrImagePull", "Pending", "waiting", True),
        ("ImagePullBackOff", "Pending", "waiting", True),
        ("CreateContainerConfigError", "Pending", "waiting", True),
        ("InitContainerFailed", "Pending", "waiting", True),
        ("Unschedulable", "Pending", "waiting", False),
        ("FailedCreate", "", "waiting", False),
        ("AggregatorUnreachable", "Running", "running", True),
        ("NodeNotReady", "Running", "running", False),
        ("", "Pending", "running", False),
    ],
)
@pytest.mark.parametrize("goal", ["end", "p", "p/n1"])
def test_an_entry_whose_plugin_has_not_begun(
    reason: str, phase: str, state: str, stuck: bool, goal: str
) -> None:
    """It is not running, and --fail-fast waits a minute for what may still come."""
    now = 0.0
    held = HeldUp(lambda: now)
    pod = {"phase": phase, "reason": reason}
    entry = {"name": "p", "node": "n1", "status": "running", "pod": pod}
    run = {"status": "running", "plugins": [entry]}
    (row,) = rows(run)
    assert state == row.status

    for at, ends in ((0.0, False), (59.9, False), (60.0, stuck)):
        now = at
        held.see(run)
        code = Goal(goal, fail_fast=True).verdict(run, held.stuck)
        assert (1 if ends else None) == code
        assert Goal(goal).verdict(run, held.stuck) is None


def test_what_an_entry_waits_for_changes() -> None:
    """The minute begins with the trouble, and only the entries that are meant count."""
    now = 0.0
    held = HeldUp(lambda: now)
    for at, reason in ((0.0, "Unschedulable"), (50.0, "ErrImagePull"), (70.0, "ImagePullBackOff")):
        now = at
        held.see(document(n1=reason))
    assert set() == held.stuck
    now = 110.0
    held.see(document(n1="ErrImagePull", n2="ErrImagePull"))
    assert {"p/n1"} == held.stuck
