"""`-p tests.left_out` says which tests `make test` leaves out, and which command runs them.

The workers of pytest-xdist have collected the tests, the process that prints has not.
"""

from collections.abc import Sequence
from typing import Any

import pytest

TIERS = {
    "long": "make test-long",
    "cluster": "make test-cluster",
    "node": "make test-cluster",
}
found = dict.fromkeys(TIERS, 0)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count them; a test of two tiers counts for the first."""
    for item in items:
        tier = next((name for name in TIERS if item.get_closest_marker(name)), None)
        if tier:
            found[tier] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = found


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker has collected the same."""
    found.update(getattr(node, "workeroutput", {}).get("left out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a tier."""
    if hasattr(terminalreporter.config, "workerinput"):
        return
    terminalreporter.write_line("Left out here:")
    for tier, command in TIERS.items():
        terminalreporter.write_line(f"  {found[tier]:4} {tier:8} {command}")
    terminalreporter.write_line(
        "The cluster needs Go to build its control plane, the node needs root on Linux."
    )
