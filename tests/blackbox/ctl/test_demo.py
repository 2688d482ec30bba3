"""The demo and its examples, as `make demo` runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
BOUND = 100.0


def demo(directory, script):
    """Run the demo with this script as `status-ctl`, and the Python of the tests first in PATH."""
    program = directory / "status-ctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    path = os.pathsep.join([str(directory), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [EXAMPLES / "demo.sh"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def test_the_demo_shows_three_runs_that_come_out_as_announced(tmp_path):
    """Success, failure, and a verdict of our own."""
    done = demo(tmp_path, f'exec "{sys.executable}" "{ROOT}/cmd/status-ctl.py" "$@"')

    assert 0 == done.returncode, done.stderr
    assert 3 == done.stdout.count("\n$ status-ctl try ")
    assert ["0", "1", "3"] == [
        line.rsplit(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("-> ")
    ]
    assert "reason: AllStepsDone" in done.stdout
    assert "reason: ChecksFailed" in done.stdout
    assert (
        "reason: AdapterOOMKilled" in done.stdout or "cannot create a memory cgroup" in done.stderr
    )


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("exit 3", "the exit code is 3, not 0"),
        ("echo '  reason: Other'", "the reason is not AllStepsDone"),
    ],
)
def test_the_demo_fails_when_a_run_comes_out_otherwise(tmp_path, script, complaint):
    """It is a check, not only a show."""
    done = demo(tmp_path, script)

    assert 1 == done.returncode
    assert complaint in done.stderr


def test_every_example_can_be_run():
    """Executable, with an interpreter line."""
    scripts = [path for path in EXAMPLES.iterdir() if path.suffix in {".sh", ".py"}]

    assert 4 <= len(scripts)
    assert [] == [path.name for path in scripts if not os.access(path, os.X_OK)]
    assert [] == [path.name for path in scripts if not path.read_text().startswith("#!/")]
