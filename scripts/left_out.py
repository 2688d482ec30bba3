"""Says which tests `make test` leaves out, how many, and which command runs them."""

import contextlib
import io
import sys

import pytest

TIERS = {
    "long": "make test-long",
    "cluster": "make test-cluster",
    "node": "make test-cluster",
}


class Count:
    """Counts the collected tests of each tier; a test of two tiers counts for the first."""

    def __init__(self) -> None:
        self.found = dict.fromkeys(TIERS, 0)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Look at the markers of what pytest has collected."""
        for item in items:
            tier = next((name for name in TIERS if item.get_closest_marker(name)), None)
            if tier:
                self.found[tier] += 1


def main() -> int:
    """Print one line a tier; return pytest's exit code when collecting fails."""
    count = Count()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = pytest.main(["--collect-only", "-q", "-p", "no:xdist"], plugins=[count])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        print(output.getvalue())
        return int(code)
    print("\nLeft out here:")
    for tier, command in TIERS.items():
        print(f"  {count.found[tier]:4} {tier:8} {command}")
    print("The cluster needs Go to build its control plane, the node needs root on Linux.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
