"""`status-ctl gather` with the gatherers that it brings along, on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from reporter.common import schema

# As in the one file that is released: only the command's own process finds its modules.
LAUNCHED = f"""\
import sys
sys.path[:] = [*{sys.path!r}, {str(Path.cwd())!r}]
from reporter.status_ctl import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_facts_of_this_machine(tmp_path: Path) -> None:
    """They fit the published schema, and the table says what was gathered."""
    interpreter = getattr(sys, "_base_executable", sys.executable)  # of no virtual environment
    out = tmp_path / "out"
    done = subprocess.run(
        [interpreter, "-c", LAUNCHED, "gather", "--out", str(out)],
        env={"PATH": os.defpath},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    facts = json.loads((out / "host" / "facts.json").read_bytes())
    assert [] == list(schema.violations("facts.v1", facts))
    header, host, logs, analysis = done.stdout.splitlines()
    assert ["GATHERER", "STATUS", "TIME", "FILES", "SIZE", "NOTE"] == header.split()
    assert "host" == host.split()[0]
    assert host.split()[1] in {"complete", "partial"}
    assert ["logs", "log-analysis"] == [each.split()[0] for each in (logs, analysis)]
    assert (out / "log-analysis" / "report.yaml").exists()
