"""Somebody with the cluster's kubeconfig, the plugins of their runs, and what they look at."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.aggregators.served import ROOT
from tests.bed.api import ApiError
from tests.bed.controlplane import ControlPlane
from tests.bed.product_image import PRODUCT_IMAGE

PLUGIN_LABEL, RUN_LABEL = "status-reporter.io/plugin", "status-reporter.io/run"
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
PASSES = '{"status": "success", "reason": "Fine", "message": "all is well"}'
SLEEPS = yaml.safe_dump_all(
    {
        "apiVersion": "status-reporter.io/v1",
        "kind": "Plugin",
        "metadata": {"name": f"sleeps-{contract}"},
        "spec": {
            "driver": "Job",
            "contract": contract,
            "template": {
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": "main",
                            "image": BUSYBOX,
                            "command": [
                                *("/bin/sh", "-c"),
                                "trap 'exit 143' TERM; "
                                f"until [ -e /tmp/go ]; do sleep 0.2; done; {ending}",
                            ],
                        }
                    ],
                }
            },
        },
    }
    for contract, ending in {
        "result-file": f"echo '{PASSES}' >/results/new;"
        " mv /results/new /results/adapter-result.json",
        "done-file": "echo well >$RESULTS_DIR/a; echo -n $RESULTS_DIR/a >$RESULTS_DIR/done",
    }.items()
)
"""Both go on when there is a file /tmp/go in their containers."""
BOUND = 300.0
REFUSAL = "plugins of this kind are not allowed here"
"""What a policy says."""


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
        named = self.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        # A kind that is there twice, and one of virtual objects that have no labels.
        kinds = sorted({*named} - {"events", "componentstatuses"})
        label = f"status-reporter.io/run={run}"
        listed = self.cluster.kubectl("get", ",".join(kinds), "-A", "-l", label, "-o", "name")
        return listed.split()

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """Return an object."""
        found = self.cluster.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        return dict(json.loads(found))


def entries(document: str) -> dict[str, tuple[str, str]]:
    """Return status and result of each entry, by plugin and node."""
    return {
        each.get("key") or f"{each['name']}/{each['node'] or 'global'}": (
            each["status"],
            each["result_status"],
        )
        for each in json.loads(document)["plugins"]
    }


def jobs(person: Person, namespace: str) -> list[dict[str, Any]]:
    """Return the Jobs of plugins in a namespace."""
    words = ("get", "jobs", "-n", namespace, "-l", PLUGIN_LABEL, "-o", "json")
    return list(json.loads(person.cluster.kubectl(*words))["items"])


def conditions(person: Person, namespace: str) -> dict[str, str]:
    """Return the status of our condition on the plugins' Jobs of a namespace, by plugin."""
    found = {}
    for job in jobs(person, namespace):
        plugin = job["metadata"]["labels"]["status-reporter.io/plugin"]
        for each in job["status"].get("conditions", []):
            if each["type"] == "Available":
                found[plugin] = f"{each['status']} {each['reason']}"
    return found


def gateway(cluster: ControlPlane) -> str:
    """Return the address of this machine that Pods reach."""
    path = "jsonpath={.status.addresses[?(@.type=='InternalIP')].address}"
    return cluster.kubectl("get", "node", "node1", "-o", path).strip()


def write(folder: Path, name: str, content: str) -> str:
    """Write a file; return its path."""
    path = folder / name
    path.write_text(content)
    return str(path)


@contextmanager
def refusing(cluster: ControlPlane, run: str, *, pod: str, job: str) -> Iterator[None]:
    """Have a policy that refuses the Pod of one plugin of a run, and the Job of another."""
    name = f"refuses-{run}"
    plugin = f"object.metadata.labels['{PLUGIN_LABEL}']"
    rule = {"apiGroups": ["", "batch"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    refused = f"{plugin} != (request.kind.kind == 'Pod' ? '{pod}' : '{job}')"
    policy = {
        "matchConstraints": {"resourceRules": [rule | {"resources": ["pods", "jobs"]}]},
        "validations": [{"expression": refused, "message": REFUSAL}],
    }
    of_plugins = [
        {"key": RUN_LABEL, "operator": "In", "values": [run]},
        {"key": PLUGIN_LABEL, "operator": "Exists"},
    ]
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"objectSelector": {"matchExpressions": of_plugins}},
    }
    group = "/apis/admissionregistration.k8s.io/v1"
    made = {"validatingadmissionpolicies": policy, "validatingadmissionpolicybindings": binding}
    for resource, spec in made.items():
        cluster.request("POST", f"{group}/{resource}", {"metadata": {"name": name}, "spec": spec})
    trial = {
        "metadata": {"name": "trial", "labels": {RUN_LABEL: run, PLUGIN_LABEL: pod}},
        "spec": {"containers": [{"name": "main", "image": BUSYBOX}]},
    }
    try:
        end = time.monotonic() + BOUND
        while REFUSAL not in _refusal(cluster, trial):
            assert time.monotonic() < end  # the API server follows policies with a delay of its own
            time.sleep(0.1)
        yield
    finally:
        for resource in reversed(made):
            cluster.request("DELETE", f"{group}/{resource}/{name}")


def _refusal(cluster: ControlPlane, pod: dict[str, Any]) -> str:
    """Create a Pod as a dry run; return why it is refused."""
    try:
        cluster.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
    except ApiError as error:
        return str(error)
    return ""


def wait_pods(person: Person, run: str, wanted: Callable[[list[Any]], bool]) -> list[Any]:
    """Return the Pods of a run's plugins once they are as wanted."""
    path = f"/api/v1/namespaces/status-reporter-{run}/pods"
    query = "?labelSelector=status-reporter.io/plugin"
    found = person.cluster.api.wait_for(path + query, lambda pods: wanted(pods["items"]), BOUND)
    return list(found["items"])


def wait_reachable(person: Person, run: str) -> None:
    """Return once the node knows the way to an aggregator: without an API server it learns none."""
    path = f"/api/v1/namespaces/status-reporter-{run}/services/{run}"
    address = person.cluster.api.wait_for(path, bool, BOUND)["spec"]["clusterIP"]
    end = time.monotonic() + BOUND
    while True:
        try:
            ssl.get_server_certificate((address, 8080), timeout=BOUND)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def go_on(person: Person, pods: list[Any]) -> None:
    """Let the sleepers of these Pods end."""
    for pod in pods:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            person.cluster.kubectl(
                "exec", name, "-n", namespace, "-c", "main", "--", "touch", "/tmp/go"
            )
        except subprocess.CalledProcessError as error:
            if error.returncode != 137:  # the container has ended, and the command with it
                raise


def phases(pods: list[Any]) -> list[str]:
    """Return the phases of Pods."""
    return [pod["status"].get("phase", "") for pod in pods]
