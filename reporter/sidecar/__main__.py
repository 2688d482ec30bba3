"""The command `status-reporter`: a look at the result file, signals, everything heavy after."""

import os
import sys
import time
from collections.abc import Mapping

from reporter.common.defaults import RESULTS_PATH
from reporter.common.lifecycle import begin


def file_before_start(environ: Mapping[str, str]) -> tuple[os.stat_result | None, float] | None:
    """Return what is at RESULTS_PATH, and the time after the look; nothing if that is not known.

    The sooner, the more surely it is before the adapter's start.
    """
    path = environ.get("RESULTS_PATH", "").strip() or RESULTS_PATH
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        found = None
    except OSError:
        return None
    return found, time.time()


def main() -> int:
    """Run the sidecar, or answer what is asked of it, and return the exit code."""
    noted = file_before_start(os.environ)
    return begin("status-reporter", "reporter.sidecar.main", extra="sidecar", noted=noted)


if __name__ == "__main__":
    sys.exit(main())
