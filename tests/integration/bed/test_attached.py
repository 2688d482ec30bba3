"""A bed does not outlive the process that has it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bed.attached import ROOT
from tests.bed.processes import started

HANG = 60.0  # seconds; only a bound
OWNER = """
import sys, time
from pathlib import Path
from tests.bed.attached import attached
from tests.bed.processes import Program

folder = Path(sys.argv[1])
with attached(folder):
    program = Program(folder, "etcd")
    program.start(["sleep", "600"])
    print(program.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_test_run_leaves_nothing_behind(tmp_path: Path, end: signal.Signals) -> None:
    """Ctrl-C, a stopped CI job, and a kill: what was started for the bed ends too."""
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert started(pid)
        owner.send_signal(end)
        limit = time.monotonic() + HANG
        while started(pid):
            assert time.monotonic() < limit
            time.sleep(0.02)
