"""The gatherer `host`: what a machine is, as `facts.json`.

Only files are read, below `GATHER_HOST_ROOT`; nothing that lies there is executed.
"""

import json
from collections.abc import Mapping
from pathlib import Path

COMPLETE, PARTIAL = 0, 1


def main(environ: Mapping[str, str]) -> int:
    """Write the facts; return 0 if they are complete, 1 if something could not be read."""
    root = Path(environ.get("GATHER_HOST_ROOT") or "/")
    out = Path(environ["GATHER_OUT"])
    try:
        release = (root / "proc/sys/kernel/osrelease").read_text(errors="replace").strip()
    except OSError as error:
        facts, code = {"unreadable": {"proc/sys/kernel/osrelease": error.strerror}}, PARTIAL
    else:
        facts, code = {"kernel": {"release": release}}, COMPLETE
    (out / "facts.json").write_text(json.dumps(facts))
    return code
