"""Each program by its launcher: what it answers with success, what it refuses, and on which stream.

The commands that have a module of their own here are tested there.
"""

import json
from pathlib import Path

import pytest

from tests import forked
from tests.blackbox.ctl.scripted import ROOT, Home
from tests.blackbox.ctl.starting import DEFINITION

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: quota}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1"}]
"""
FILES = {
    "plugin.yaml": DEFINITION,
    "job.yaml": JOB,
    "good/one": "#!/bin/sh\necho said\n",
    "bad/one": "#!/bin/sh\nexit 3\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(folder: Path, command: str) -> tuple[int, str, str]:
    program, *words = command.split()
    done = forked.run(
        [str(ROOT / "cmd" / f"{program}.py"), *words],
        env=Home(folder).environ,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("status-ctl --version", "."),
        ("status-ctl images -f plugin.yaml", "busybox\n"),
        ("status-ctl gather --gatherers good --out out", "complete"),
        ("status-reporter --help", "usage: status-reporter "),
        ("status-reporter --version", "."),
        ("status-aggregator --help", "usage: status-aggregator "),
        ("status-agent --help", "usage: status-agent "),
        ("status-agent --version", "."),
        ("sonobuoy --help", "usage: sonobuoy worker global"),
        ("sonobuoy version", "."),
    ],
)
def test_success(folder: Path, command: str, said: str) -> None:
    code, out, _ = run(folder, command)

    assert 0 == code
    assert said in out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("status-ctl", "usage: status-ctl "),
        ("status-ctl walk", "invalid choice: 'walk'"),
        ("status-ctl images -f none.yaml", "cannot read none.yaml: No such file or directory"),
        ("status-ctl gather --gatherers none --out out", "cannot read none"),
        ("status-ctl lint", "usage: status-ctl lint "),
        ("status-ctl lint -f none.yaml", "none.yaml"),
        ("status-ctl facts a b", "unrecognized arguments: b"),
        ("status-ctl jobs walk --output walk", "usage: status-ctl jobs "),
        ("status-reporter walk", "usage: status-reporter "),
        ("status-agent walk", "invalid choice: 'walk'"),
        ("sonobuoy walk", "unknown command: walk"),
    ],
)
def test_refusal(folder: Path, command: str, said: str) -> None:
    """2, and nothing on standard output."""
    code, out, err = run(folder, command)

    assert (2, "") == (code, out)
    assert said in err


def test_jobs_without_a_reporter(folder: Path) -> None:
    """There is nothing to be checked."""
    said = "status-ctl: no Jobs with a status reporter found; 0 errors, 0 warnings\n"

    assert (0, "", said) == run(folder, "status-ctl lint -f job.yaml")


def test_gatherers_that_fail(folder: Path) -> None:
    """1, and what they have left is kept."""
    code, out, err = run(folder, "status-ctl gather --gatherers bad --out out")

    assert (1, "status-ctl: written to out\n") == (code, err)
    assert "exit code 3" in out


def test_settings_that_are_missing(folder: Path) -> None:
    """2, and every problem in one line of the log."""
    code, out, err = run(folder, "status-agent gather")

    assert (2, "") == (code, err)
    (event,) = map(json.loads, out.splitlines())
    assert ("error", "Invalid settings") == (event["level"], event["message"])
    assert {"CA_CERT", "AGGREGATOR_URL"} <= {each.split(":")[0] for each in event["problems"]}


def test_gatherers_of_the_image(folder: Path) -> None:
    """They write where they stand, and say nothing."""
    assert (0, "", "") == run(folder, "gather-host")
    assert isinstance(json.loads((folder / "facts.json").read_bytes()), dict)
    assert (0, "", "") == run(folder, "gather-logs")
