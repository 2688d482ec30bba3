"""What Pods wait for, told while somebody waits for the run."""

from reporter.runctl.wait import STANDS, HeldUp


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
