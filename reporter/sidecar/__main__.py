"""The command `status-reporter`: signals first, everything heavy after."""

import sys

from reporter.runtime.lifecycle import begin


def main() -> int:
    """Run the sidecar, or answer what is asked of it, and return the exit code."""
    return begin("status-reporter", "reporter.sidecar.main", extra="sidecar")


if __name__ == "__main__":
    sys.exit(main())
