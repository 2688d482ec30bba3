#!/usr/bin/env python3
"""An adapter that finds a problem and reports it: a failure with details."""

import json
import os
import sys
from pathlib import Path

CHECKS = {"dns": True, "storage": False, "certificates": False}


def main() -> int:
    """Run the checks and write the result; a check that fails is no error of the adapter's own."""
    path = Path(os.environ.get("RESULTS_PATH", "/results/adapter-result.json"))
    failed = [name for name, passed in CHECKS.items() if not passed]
    result = {
        "status": "failure" if failed else "success",
        "reason": "ChecksFailed" if failed else "ChecksPassed",
        "message": f"{len(failed)} of {len(CHECKS)} checks failed: {', '.join(failed)}",
        "details": {"checks": CHECKS},
    }
    # Written to a temporary file and renamed, so that it is never read half-written.
    new = path.with_suffix(".new")
    new.write_text(json.dumps(result, indent=2), encoding="utf-8")
    new.replace(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
