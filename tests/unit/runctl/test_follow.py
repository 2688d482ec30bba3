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
    ("reason", "phase", "state", "code"),
    [
        ("ErrImagePull", "Pending", "waiting", 1),
        ("ImagePullBackOff", "Pending", "waiting", 1),
        ("CreateContainerConfigError", "Pending", "waiting", 1),
        ("InitContainerFailed", "Pending", "waiting", 1),
        ("Unschedulable", "Pending", "waiting", None),
        ("FailedCreate", "", "waiting", None),
        ("NodeNotReady", "Running", "running", None),
        ("", "Pending", "running", None),
    ],
)
@pytest.mark.parametrize("goal", ["end", "p"])
def test_an_entry_whose_plugin_has_not_begun(
    reason: str, phase: str, state: str, code: int | None, goal: str
) -> None:
    """It is not running, and --fail-fast does not wait for what waiting does not help."""
    pod = {"phase": phase, "reason": reason}
    run = {"status": "running", "plugins": [{"name": "p", "status": "running", "pod": pod}]}
    (row,) = rows(run)

    assert state == row.status
    assert code == Goal(goal, fail_fast=True).verdict(run)
    assert Goal(goal).verdict(run) is None
