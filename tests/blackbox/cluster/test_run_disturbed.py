"""`status-ctl run` on a real node, while somebody takes away what the run needs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.blackbox.cluster.scene import BOUND, BUSYBOX, Person, entries, phases, wait_pods, write

pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(900),
    # Begins now, so that it is over when its tests come.
    pytest.mark.usefixtures("slow_run"),
]
LABEL = "test.status-reporter.io/room"
PLUGINS = f"""\
apiVersion: status-reporter.io/v1
kind: Plugin
metadata: {{name: late}}
spec:
  driver: Job
  contract: done-file
  template:
    spec:
      nodeSelector: {{{LABEL}: "yes"}}
      containers:
        - name: main
          image: {BUSYBOX}
          command: [sh, -c, 'echo well >$RESULTS_DIR/a; echo -n $RESULTS_DIR/a >$RESULTS_DIR/done']
---
apiVersion: status-reporter.io/v1
kind: Plugin
metadata: {{name: sleeps}}
spec:
  driver: Job
  contract: link
  template:
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: {BUSYBOX}
          # In the second in which it is asked to end it may have ended by itself.
          command: [sh, -c, "trap 'sleep 2; exit 143' TERM; sleep 3600 & wait"]
"""


@pytest.fixture
def room(person: Person) -> Iterator[Callable[[], None]]:
    """Call it to make room on the node for the plugin that is late."""
    yield lambda: person.cluster.kubectl("label", "node", "node1", f"{LABEL}=yes") and None
    person.cluster.kubectl("label", "node", "node1", f"{LABEL}-")


def test_its_secret_its_role_and_its_config_map_are_deleted(
    person: Person, run: str, room: Callable[[], None]
) -> None:
    """L10: named, and made again with the Role's return; what the ConfigMap owned fails with it."""
    kubectl, namespace = person.cluster.kubectl, f"status-reporter-{run}"
    plugins = write(person.home, "plugins.yaml", PLUGINS)
    code, _, err = person.run("run", "-f", plugins, "--name", run, "--storage", "none")
    assert 0 == code, err
    pods = wait_pods(person, run, lambda pods: sorted(phases(pods)) == ["Pending", "Running"])
    (pending,) = (pod for pod in pods if pod["status"]["phase"] == "Pending")
    secret = mounted_secret(pending)
    there = f"/api/v1/namespaces/{namespace}/secrets/{secret}"
    before = person.cluster.request("GET", there)["metadata"]["uid"]

    role = person.get("role", f"{run}-aggregator", namespace)
    kubectl("delete", "role", f"{run}-aggregator", "-n", namespace)
    kubectl("delete", "secret", secret, "-n", namespace)
    room()
    shown = wait_status(person, run, lambda shown: shown["launcher"]["degraded"])
    assert " is forbidden: " in shown["launcher"]["degraded"]["reason"]
    kept = {name: role["metadata"][name] for name in ("name", "namespace", "labels")}
    kubectl("create", "-f", "-", input=json.dumps({**role, "metadata": kept}))
    again = person.cluster.api.wait_for(there, bool, BOUND)["metadata"]["uid"]
    assert before != again
    shown = wait_status(person, run, lambda shown: "running" != verdict(shown, "late")[0])
    assert ("complete", "passed") == verdict(shown, "late")
    wait_status(person, run, lambda shown: not shown["launcher"]["degraded"])

    kubectl("delete", "configmap", run, "-n", namespace)
    code, out, err = person.run("wait", f"run/{run}", "--timeout", "4m", "-o", "json")
    assert 1 == code, err
    assert {
        "late/global": ("complete", "passed"),
        "sleeps/global": ("failed", "failed"),
    } == entries(out)
    (error,) = filter(None, (each["error"] for each in json.loads(out)["plugins"]))
    assert error["text"].endswith("was deleted before its result arrived")
    code, _, err = person.run("retrieve", run)
    assert 0 == code, err
    code, _, err = person.run("delete", run)
    assert 0 == code, err
    assert [] == person.left_of(run)


def mounted_secret(pod: dict[str, Any]) -> str:
    """Return the name of the Secret by which a plugin's Pod reports."""
    (found,) = (each["secret"] for each in pod["spec"]["volumes"] if "secret" in each)
    return str(found["secretName"])


def verdict(shown: dict[str, Any], plugin: str) -> tuple[str, str]:
    """Return status and result of a plugin for the whole cluster."""
    return entries(json.dumps(shown))[f"{plugin}/global"]


def wait_status(
    person: Person, run: str, wanted: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Return the run's status once it is as wanted."""
    end = time.monotonic() + BOUND
    while True:
        _, out, err = person.run("status", f"run/{run}", "-o", "json")
        if out and wanted(shown := json.loads(out)):
            return dict(shown)
        assert time.monotonic() < end, (out, err)
