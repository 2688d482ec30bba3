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


def gather(out: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    interpreter = getattr(sys, "_base_executable", sys.executable)  # of no virtual environment
    return subprocess.run(
        [interpreter, "-c", LAUNCHED, "gather", "--out", str(out), *options],
        env={"PATH": os.defpath, **variables},
        cwd=out.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_no_program_of_another_machines_disk_is_run(tmp_path: Path) -> None:
    """Whatever variables are set: the command may be run as root, and the machine be a suspect."""
    host, out = tmp_path / "host", tmp_path / "out"
    (host / "var/log/journal/0a").mkdir(parents=True)

    done = gather(out, "--host", str(host), LOG_CHROOT="true", PATH="/nowhere")

    assert 0 == done.returncode, done.stderr
    said = json.loads((out / "logs" / "gather.json").read_bytes())["stderr"]
    assert "/var/log/journal: not read: journalctl is not installed\n" == said


def test_the_facts_of_this_machine(tmp_path: Path) -> None:
    """They fit the published schema, and the table says what was gathered."""
    out = tmp_path / "out"
    done = gather(out)

    assert 0 == done.returncode, done.stderr
    facts = json.loads((out / "host" / "facts.json").read_bytes())
    assert [] == list(schema.violations("facts.v1", facts))
    header, host, logs, analysis = done.stdout.splitlines()
    assert ["GATHERER", "STATUS", "TIME", "FILES", "SIZE", "NOTE"] == header.split()
    assert "host" == host.split()[0]
    assert host.split()[1] in {"complete", "partial"}
    assert ["logs", "log-analysis"] == [each.split()[0] for each in (logs, analysis)]
    assert (out / "log-analysis" / "report.yaml").exists()
