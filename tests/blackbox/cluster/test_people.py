"""What `make cluster` starts: the examples of `deploy/` run there as they stand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bed.controlplane import ControlPlane

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "deploy" / "examples"
EXPORTED = 'print(open("/data/export/secrets.yaml").read())'
BOUND = 300.0

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]


def status_ctl(cluster: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as somebody with the cluster's kubeconfig does."""
    return subprocess.run(
        [sys.executable, str(ROOT / "cmd" / "status-ctl.py"), *arguments],
        env={"KUBECONFIG": str(cluster.kubeconfig), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def test_the_native_example_reports(cluster: ControlPlane) -> None:
    """The scheduler finds the node, the reporter the API server."""
    cluster.kubectl("apply", "--kustomize", str(EXAMPLES / "native"))

    done = status_ctl(cluster, "wait", "greeting", "--timeout", "120s")

    assert (0, "job.batch/greeting  Available=True  Greeted: Hello from the adapter\n") == (
        done.returncode,
        done.stdout,
    )


def test_the_example_of_a_run_ends(cluster: ControlPlane) -> None:
    """The aggregator has its volume, the Jobs find it by name; one passes, two fail."""
    there = ("--namespace", "example-run")
    cluster.kubectl("create", "namespace", "example-run")
    cluster.kubectl("apply", *there, "--kustomize", str(EXAMPLES / "run"))
    cluster.kubectl("rollout", "status", *there, "--timeout=120s", "statefulset/status-aggregator")
    program = ("exec", *there, "status-aggregator-0", "--", "python3", "-c", EXPORTED)
    cluster.kubectl("apply", *there, "--filename", "-", input=cluster.kubectl(*program))

    done = status_ctl(cluster, "wait", *there, "--timeout", "240s", "--output", "json")

    shown = json.loads(done.stdout)
    assert 1 == done.returncode
    assert {"network": "passed", "quota": "failed", "storage": "failed"} == {
        entry["name"]: entry["result_status"] for entry in shown["plugins"]
    }
