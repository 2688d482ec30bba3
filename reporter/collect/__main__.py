"""The command `status-agent`: signals first, everything heavy after."""

import sys

from reporter.common.lifecycle import begin


def main() -> int:
    """Collect what is asked for, deliver it, and return the exit code."""
    return begin("status-agent", "reporter.collect.agent", extra="sidecar")


if __name__ == "__main__":
    sys.exit(main())
