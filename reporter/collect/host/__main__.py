"""The program of the gatherer `host`."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from reporter.collect.host.facts import facts

COMPLETE, PARTIAL = 0, 1
FILE = "facts.json"


def main(environ: Mapping[str, str]) -> int:
    """Write the facts; return 0 if they are complete, 1 if something could not be read."""
    root = Path(environ.get("GATHER_HOST_ROOT") or "/")
    found = facts(root, environ.get("NODE_NAME", ""))
    document = json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1).encode()
    (Path(environ.get("GATHER_OUT") or ".") / FILE).write_bytes(document + b"\n")
    for problem in found.get("problems", ()):
        print(f"{problem['path']}: {problem['error']}", file=sys.stderr)
    return PARTIAL if found.get("problems") else COMPLETE


if __name__ == "__main__":
    sys.exit(main(os.environ))
