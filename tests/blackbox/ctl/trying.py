"""`status-ctl try` as a process."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import yaml

from tests.forked import Forked

ROOT = Path(__file__).resolve().parents[3]


STATUS_CTL = [str(ROOT / "cmd" / "status-ctl.py")]


BOUND = 60.0


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


SUCCESS = """echo '{"status":"success","reason":"Fine","message":"It works"}' >"$RESULTS_PATH"; """


FAILURE = """echo '{"status":"failure","reason":"Bad","details":{"a":1}}' >"$RESULTS_PATH"; """


class Run:
    """What one run left: exit code, both outputs, and the Job."""

    def __init__(self, process, out, err):
        self.code, self.pid, self.err = process.returncode, process.pid, err
        self.job = yaml.safe_load(out)
        self.events = [line for line in out.splitlines() if line.startswith("# ")]

    @property
    def condition(self):
        (condition,) = self.job["status"]["conditions"]
        return condition["status"], condition["reason"], condition["message"]

    @property
    def note(self):
        return json.loads(self.job["metadata"]["annotations"]["status-reporter.io/Available"])


def status_ctl_try(*arguments, before=()):
    with started(*arguments, before=before) as process:
        return finish(process)


@contextlib.contextmanager
def started(*arguments, before=(), **options):
    """A run that is under way, for signals."""
    program = [*STATUS_CTL, "try", "-o", "yaml", *arguments]
    process = (
        subprocess.Popen([*before, sys.executable, *program], **PIPES, **options)
        if before
        else Forked(program, **PIPES, **options)
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(BOUND)
        process.stdout.close()
        process.stderr.close()


def finish(process):
    out, err = process.communicate(timeout=BOUND)
    return Run(process, out, err)
