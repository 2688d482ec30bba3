"""`status-ctl run` on a real node: from definitions to verdicts and a tarball, and back to nothing.

The cluster is the one of `make cluster`: with a scheduler, Services, names and volumes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aggregators.served import ROOT
from tests.bed.controlplane import ControlPlane
from tests.bed.product_image import PRODUCT_IMAGE

FIRST = ROOT / "deploy" / "plugins" / "first-run.yaml"
BUSYBOX = "docker.io/library/busybox:1.37"
SONOBUOYS = f"""\
sonobuoy-config:
  driver: DaemonSet
  plugin-name: systemd-logs
  result-format: raw
spec:
  name: systemd-logs
  image: {BUSYBOX}
  command: ["/bin/sh", "-c", "echo -n logs >${{RESULTS_DIR}}/log && echo -n ${{RESULTS_DIR}}/log \
>${{RESULTS_DIR}}/done && while true; do sleep 3600; done"]
  volumeMounts:
    - {{mountPath: /tmp/sonobuoy/results, name: results, readOnly: false}}
    - {{mountPath: /node, name: root, readOnly: false}}
"""
"""In the shape of Sonobuoy's: no podSpec, its volume `root`, and it sleeps for ever."""
KINDS = (
    "statefulsets,jobs,pods,secrets,services,networkpolicies,persistentvolumeclaims,rolebindings,"
    "roles,serviceaccounts,configmaps"
)
CLUSTER_KINDS = "clusterroles,clusterrolebindings"
BOUND = 300.0

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]


class Person:
    """Somebody with the cluster's kubeconfig and this command."""

    def __init__(self, cluster: ControlPlane, home: Path) -> None:
        self.cluster, self.home = cluster, home

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run the command in the background."""
        return subprocess.Popen(
            [sys.executable, str(ROOT / "cmd" / "status-ctl.py"), *arguments],
            env={
                "KUBECONFIG": str(self.cluster.kubeconfig),
                "PATH": "/usr/bin:/bin",
                "STATUS_CTL_IMAGE": PRODUCT_IMAGE,
                "XDG_STATE_HOME": str(self.home),
            },
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command: exit code, standard output, standard error."""
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=BOUND)
            finally:
                process.kill()
        return process.returncode, out, err

    def left_of(self, run: str) -> list[str]:
        """Return what has the run's label, of all kinds, in the cluster's scope too."""
        found = []
        for kinds in (KINDS, CLUSTER_KINDS, "namespaces"):
            listed = self.cluster.kubectl(
                *("get", kinds, "-A", "-l", f"status-reporter.io/run={run}", "-o", "name")
            )
            found += listed.split()
        return found

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """Return an object."""
        found = self.cluster.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        return dict(json.loads(found))


@pytest.fixture
def person(cluster: ControlPlane, tmp_path: Path) -> Person:
    """Somebody in an empty folder."""
    return Person(cluster, tmp_path)


@pytest.fixture
def run(person: Person, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a run that is gone after the test, whatever became of it."""
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:30].strip("-")
    yield name
    person.run("delete", name, "--yes")


def entries(document: str) -> dict[str, tuple[str, str]]:
    """Return status and result of each entry, by plugin and node."""
    return {
        each.get("key") or f"{each['name']}/{each['node'] or 'global'}": (
            each["status"],
            each["result_status"],
        )
        for each in json.loads(document)["plugins"]
    }


def conditions(person: Person, namespace: str) -> dict[str, str]:
    """Return the status of our condition on the Jobs of a namespace, by plugin."""
    listed = person.cluster.kubectl("get", "jobs", "-n", namespace, "-o", "json")
    found = {}
    for job in json.loads(listed)["items"]:
        plugin = job["metadata"]["labels"]["status-reporter.io/plugin"]
        for each in job["status"].get("conditions", []):
            if each["type"] == "Available":
                found[plugin] = f"{each['status']} {each['reason']}"
    return found


def write(folder: Path, name: str, content: str) -> str:
    """Write a file; return its path."""
    path = folder / name
    path.write_text(content)
    return str(path)


class TestFromNothingToATarballAndBack:
    """L1: adapters that pass and fail, a plugin for each node, one of Sonobuoy's."""

    def test_verdicts_conditions_and_tarball(self, person: Person, run: str) -> None:
        sonobuoys = write(person.home, "systemd-logs.yaml", SONOBUOYS)
        files = ("-f", str(FIRST), "-f", sonobuoys)
        code, out, err = person.run(
            *("run", *files, "--name", run, "--storage", "none", "--cleanup", "never"),
            *("--wait", "--timeout", "4m", "-o", "json"),
        )

        assert 1 == code, err
        assert {
            "greeting/global": ("complete", "passed"),
            "quota/global": ("complete", "failed"),
            "kernel/node1": ("complete", "passed"),
            "systemd-logs/node1": ("complete", "passed"),
        } == entries(out), err
        namespace = f"status-reporter-{run}"
        assert {
            "greeting": "True Greeted",
            "quota": "False QuotaMissing",
        } == conditions(person, namespace)

        code, out, err = person.run("retrieve", run, "--extract", str(person.home / "got"))
        assert 0 == code, err
        kernel = person.home / "got" / "plugins" / "kernel" / "results" / "node1" / "kernel.txt"
        assert kernel.read_text().startswith("Linux ")

        code, _, err = person.run("delete", run)
        assert 0 == code, err
        assert [] == person.left_of(run)
