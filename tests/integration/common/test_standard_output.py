"""Standard output that takes no more, as of `| head`: nothing is cut off without an error."""

import fcntl
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BOUND = 60.0
NOBODY_READS = 141  # 128 + SIGPIPE
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: many}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}
"""


def start(command, *arguments, stdout, unbuffered, stderr=subprocess.PIPE, **settings):
    return subprocess.Popen(
        [sys.executable, str(ROOT / "cmd" / f"{command}.py"), *arguments],
        env={**os.environ, **settings, "PYTHONUNBUFFERED": unbuffered},
        stdout=stdout,
        stderr=stderr,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_manifest_that_is_cut_off_in_the_middle_is_no_success(unbuffered, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("---\n".join([JOB] * 20))
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)

    with start(
        "status-ctl", "inject", "-f", str(file), unbuffered=unbuffered, stdout=writer
    ) as ctl:
        # A blocked writer has filled the pipe, and gets a short count when the reader leaves.
        full = select.poll()
        full.register(writer, select.POLLOUT)
        while ctl.poll() is None and full.poll(0):
            select.select([reader], [], [], 0.05)
        os.close(reader)
        os.close(writer)
        said = ctl.communicate(timeout=BOUND)[1].decode()

    assert (NOBODY_READS, False) == (ctl.returncode, "Traceback" in said)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("status-aggregator", ("run", "--check")),
        ("status-aggregator", ("run", "--help")),  # argparse passes over an error of its own write
        ("status-reporter", ("--check",)),
        ("status-ctl", ("--help",)),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_settings_that_nobody_reads_are_no_success(command, arguments, unbuffered, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text('{"run": "first", "timeout_seconds": 60, "plugins": [{"name": "a"}]}')
    settings = {"JOB_NAME": "job", "JOB_NAMESPACE": "checks", "POD_NAME": "pod"}
    settings |= {"PLAN": str(plan), "STATE": str(tmp_path), "OUTPUT": str(tmp_path)}
    reader, writer = os.pipe()
    os.close(reader)

    with start(command, *arguments, unbuffered=unbuffered, stdout=writer, **settings) as process:
        os.close(writer)
        said = process.communicate(timeout=BOUND)[1].decode()

    assert (NOBODY_READS, "") == (process.returncode, said)


@pytest.mark.parametrize(
    "arguments", [("completion", "bash"), ("jobs", "--help"), ("inject", "-f", "jobs.yaml")]
)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_disk_that_is_full(arguments, unbuffered, tmp_path, monkeypatch):
    """However much is written: the manifests do not fit into a buffer."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.yaml").write_text("---\n".join([JOB] * 200))
    with Path("/dev/full").open("wb") as full:
        ctl = start("status-ctl", *arguments, unbuffered=unbuffered, stdout=full)
        said = ctl.communicate(timeout=BOUND)[1].decode()

    expected = "status-ctl: cannot write the output: No space left on device"
    assert (4, expected) == (ctl.returncode, said.splitlines()[-1])


@pytest.mark.parametrize(
    ("code", "arguments"),
    [(4, ("completion", "bash")), (4, ("status", "--url", "http://127.0.0.1:1")), (2, ("stauts",))],
)
def test_a_full_disk_for_messages_too(code, arguments):
    """The exit code stays: 1 would say that a run has failed."""
    with Path("/dev/full").open("wb") as full:
        ctl = start("status-ctl", *arguments, unbuffered="", stdout=full, stderr=full)
        ctl.communicate(timeout=BOUND)

    assert code == ctl.returncode
