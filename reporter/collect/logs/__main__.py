"""The program of the gatherer `logs`."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from reporter.collect.logs.newest import newest

COMPLETE, PARTIAL, NOT_APPLICABLE = 0, 1, 2


def main(environ: Mapping[str, str]) -> int:
    """Write the logs; return 0 if all were kept, 1 if one was not, 2 if there are none."""
    root = Path(environ.get("GATHER_HOST_ROOT") or "/")
    out = Path(environ.get("GATHER_OUT") or ".")
    kept = list(newest(root, out, shutil.which("journalctl", path=environ.get("PATH"))))
    for each in kept:
        if each.problem:
            print(f"{each.path}: {each.problem}", file=sys.stderr)
    if not kept:
        print("/var/log: no known logs found", file=sys.stderr)
        return NOT_APPLICABLE
    return PARTIAL if any(each.problem for each in kept) else COMPLETE


if __name__ == "__main__":
    sys.exit(main(os.environ))
