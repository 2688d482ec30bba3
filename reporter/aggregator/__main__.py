"""The command `status-aggregator`: signals first, everything heavy after."""

import sys

from reporter.common.lifecycle import begin


def main() -> int:
    """Run one command of the aggregator and return the exit code."""
    return begin("status-aggregator", "reporter.aggregator.main", extra="aggregator")


if __name__ == "__main__":
    sys.exit(main())
