"""Each program and command by its launcher: what it answers with success, and what it refuses."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked, verdicts
from tests.blackbox.ctl.cluster import kubeconfig, plugin
from tests.blackbox.ctl.launched import Controllers, shown
from tests.blackbox.ctl.scripted import ROOT, Home
from tests.blackbox.ctl.starting import DEFINITION, add_node
from tests.blackbox.ctl.test_retrieve_command import packed, serving
from tests.fakekube import FakeKube

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
RESULT = '{"status": "success", "reason": "Fine", "message": "12 of 12"}'
FACTS = b'{"api_version": "v1", "collected_at": "2026-01-01T00:00:00Z", "node": "node1"}'
ITEMS = b"name: e2e\nstatus: passed\nitems: [{name: dns, status: passed}]\n"
TARBALL = packed(
    ("plugins/e2e/sonobuoy_results.yaml", ITEMS),
    ("plugins/host-facts/results/node1/host/facts.json", FACTS),
)
FILES = {
    "plugin.yaml": DEFINITION,
    "job.yaml": JOB,
    "result.json": RESULT,
    "adapter": f"#!/bin/sh\necho '{RESULT}' >\"$RESULTS_PATH\"\n",
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


@pytest.fixture
def cluster(folder: Path) -> Iterator[FakeKube]:
    """A cluster with a node and a Job that has its verdict, and a kubeconfig that leads there."""
    with FakeKube(role="admin") as fake:
        add_node(fake, "node1")
        good = verdicts.result(True, "Fine", "12 of 12")
        fake.create_job(verdicts.with_verdicts(good, name="one"))
        kubeconfig(folder / ".kube" / "config", fake)
        yield fake


def run(folder: Path, command: str, **variables: str) -> tuple[int, str, str]:
    program, *words = command.split()
    done = forked.run(
        [str(ROOT / "cmd" / f"{program}.py"), *words],
        env={**Home(folder).environ, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


ALONE = {
    "status-ctl --version": ".",
    "status-ctl images -f plugin.yaml": "busybox\n",
    "status-ctl gather --gatherers good --out out": "complete",
    "status-ctl inject -f job.yaml --image i:1": "initContainers:",
    "status-ctl uninject -f job.yaml": JOB,
    "status-ctl try -- ./adapter": "Fine",
    "status-ctl validate result.json": "12 of 12",
    "status-ctl completion bash": "complete",
    "status-reporter --help": "usage: status-reporter ",
    "status-reporter --version": ".",
    "status-aggregator --help": "usage: status-aggregator ",
    "status-agent --help": "usage: status-agent ",
    "status-agent --version": ".",
    "sonobuoy --help": "usage: sonobuoy worker global",
    "sonobuoy version": ".",
}


@pytest.mark.parametrize(("command", "said"), ALONE.items())
def test_success(folder: Path, command: str, said: str) -> None:
    code, out, _ = run(folder, command)

    assert 0 == code
    assert said in out


OF_JOBS = {
    "status-ctl explain one": "Available=True Fine: 12 of 12",
    "status-ctl jobs": "one",
    "status-ctl wait job/one": "Available=True  Fine: 12 of 12",
    "status-ctl reap": "",
}


@pytest.mark.parametrize(("command", "said"), OF_JOBS.items())
def test_success_with_jobs(folder: Path, cluster: FakeKube, command: str, said: str) -> None:
    code, out, err = run(folder, command)

    assert 0 == code, err
    assert said in out


OF_RUNS = {
    "status-ctl status": "complete: 1 of 1 done",
    "status-ctl watch": "complete: 1 of 1 done",
    "status-ctl wait": "complete: 1 of 1 done",
    "status-ctl results": "e2e",
    "status-ctl facts": "node1",
    "status-ctl retrieve": ".tar.gz",
}


@pytest.mark.parametrize(("command", "said"), OF_RUNS.items())
def test_success_with_a_run_that_is_over(folder: Path, command: str, said: str) -> None:
    with serving(TARBALL) as server:
        code, out, err = run(folder, f"{command} --url {server.url}")

    assert 0 == code, err
    assert said in out


STARTED = {
    "status-ctl run -f plugin.yaml --name first": "",
    "status-ctl runs -A": "first",
    "status-ctl logs first": "",
    "status-ctl stop first": "",
    "status-ctl delete first --yes": "",
}


def test_success_with_a_run_that_is_started(folder: Path, cluster: FakeKube) -> None:
    with Controllers(cluster) as controllers:
        controllers.annotations = shown(
            "complete", plugin("quota", status="complete", verdict="passed"), result_status="passed"
        )
        for command, said in STARTED.items():
            code, out, err = run(folder, command)

            assert (0, True) == (code, said in out), (command, out, err)


REFUSED = {
    "status-ctl": "usage: status-ctl ",
    "status-ctl walk": "invalid choice: 'walk'",
    "status-ctl explain": "usage: status-ctl explain ",
    "status-ctl jobs walk --output walk": "usage: status-ctl jobs ",
    "status-ctl wait job/one run/two": "status-ctl wait",
    "status-ctl reap a b --settle x": "usage: status-ctl reap ",
    "status-ctl lint": "usage: status-ctl lint ",
    "status-ctl lint -f none.yaml": "none.yaml",
    "status-ctl inject -f none.yaml": "none.yaml",
    "status-ctl uninject -f none.yaml": "none.yaml",
    "status-ctl try": "usage: status-ctl try ",
    "status-ctl validate": "usage: status-ctl validate ",
    "status-ctl gather --gatherers none --out out": "cannot read none",
    "status-ctl run -f none.yaml": "none.yaml",
    "status-ctl runs a b": "unrecognized arguments",
    "status-ctl status --output walk": "usage: status-ctl status ",
    "status-ctl watch a b c": "unrecognized arguments",
    "status-ctl logs": "usage: status-ctl logs ",
    "status-ctl stop": "usage: status-ctl stop ",
    "status-ctl open a b": "unrecognized arguments: b",
    "status-ctl results --mode walk": "usage: status-ctl results ",
    "status-ctl facts a b": "unrecognized arguments: b",
    "status-ctl retrieve --url x --context y": "status-ctl retrieve",
    "status-ctl delete": "usage: status-ctl delete ",
    "status-ctl images -f none.yaml": "cannot read none.yaml: No such file or directory",
    "status-ctl completion tcsh": "usage: status-ctl completion ",
    "status-reporter walk": "usage: status-reporter ",
    "status-aggregator walk": "usage: status-aggregator ",
    "status-agent walk": "invalid choice: 'walk'",
    "sonobuoy walk": "unknown command: walk",
}


@pytest.mark.parametrize(("command", "said"), REFUSED.items())
def test_refusal(folder: Path, command: str, said: str) -> None:
    """2, and nothing on standard output."""
    code, out, err = run(folder, command)

    assert (2, "") == (code, out)
    assert said in err


def test_no_command_is_forgotten(folder: Path) -> None:
    _, out, _ = run(folder, "status-ctl --help")
    commands = set(re.findall("^  ([a-z]+) ", out, re.MULTILINE))

    elsewhere = "status-ctl lint", "status-ctl open"
    for tried in ([*ALONE, *OF_JOBS, *OF_RUNS, *STARTED, *elsewhere], REFUSED):
        assert set() == commands - {each.split()[1] for each in tried if " " in each}


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
    """They write where they stand, and say what is missing."""
    assert (0, "", "") == run(folder, "gather-host")
    assert isinstance(json.loads((folder / "facts.json").read_bytes()), dict)
    log = folder / "host" / "var" / "log"
    log.mkdir(parents=True)
    (log / "kern.log").write_text("one\n")
    assert (0, "", "") == run(folder, "gather-logs", GATHER_HOST_ROOT=str(folder / "host"))
    assert (folder / "kern.log.gz").exists()
    code, _, err = run(folder, "gather-log-analysis")
    assert (1, True) == (code, err.startswith("the gatherer logs: not run\n")), err
    assert (folder / "report.yaml").exists()
