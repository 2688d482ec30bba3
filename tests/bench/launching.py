"""How soon a run begins, says what is wrong with a Pod, and refuses to begin, on a real node."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import yaml

from tests.bed.binaries import program
from tests.bed.controlplane import ControlPlane
from tests.bench.figures import Percentiles
from tests.blackbox.cluster.scene import BOUND, FIRST, SONOBUOYS, Person, write
from tests.ports import free_port

NO_IMAGE = ("ErrImagePull", "ImagePullBackOff")
PULLED = 30  # Pods whose image nobody has
FEWEST = 20
POLL = 0.01  # seconds between an answer and the next question
_PROBLEM = re.compile(r"^  |: line \d", re.MULTILINE)
MISTAKEN = """\
apiVersion: status-reporter.io/v1
kind: Plugin
metadata: {name: mistaken}
spec:
  driver: Deployment
  contract: done-file
  timeoutSeconds: soon
  retries: 3
  template: {spec: {containers: [{name: main, image: "nowhere.invalid/a:1"}]}}
"""

Object = dict[str, Any]


class Pods:
    """When a watch first showed plugins' Pods and that an image is missing, monotonic, by name."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.seen: dict[str, float] = {}
        self.waiting: dict[str, float] = {}
        threading.Thread(target=self._watch, args=(cluster,), daemon=True).start()

    def first_after(self, began: float) -> float:
        """Return when the first Pod came that was not there at that time."""
        return min(at for at in [*self.seen.values()] if at > began)

    def _watch(self, cluster: ControlPlane) -> None:
        path = "/api/v1/pods?labelSelector=status-reporter.io/plugin"
        with suppress(OSError, http.client.HTTPException):  # the cluster ends before
            for event in cluster.api.watch(path, 3600):
                now, pod = time.monotonic(), event["object"]
                name = pod["metadata"]["name"]
                self.seen.setdefault(name, now)
                for each in pod["status"].get("containerStatuses", ()):
                    if each["state"].get("waiting", {}).get("reason") in NO_IMAGE:
                        self.waiting.setdefault(name, now)


def troubles(person: Person, pods: Pods) -> Percentiles:
    """Measure from the watch's event to the first answer of /status that has it.

    What the first answer has already is left out.
    """
    plugin = next(yaml.safe_load_all(FIRST.read_text()))
    plugin["spec"]["template"]["spec"]["containers"][0]["image"] = "localhost:1/nobody/has:this"
    files = []
    for number in range(PULLED):
        plugin["metadata"]["name"] = f"waits-{number}"
        files += ["-f", write(person.home, f"waits-{number}.yaml", yaml.safe_dump(plugin))]
    _said(person, 0, "run", *files, "--name", "troubles", "--storage", "none")
    shown: dict[str, float] = {}
    end = time.monotonic() + BOUND
    with _asked(person, "troubles") as status:
        before = waiting_for_images(status())
        while len(shown.keys() | before) < PULLED:
            for name in waiting_for_images(status()) - before:
                shown.setdefault(name, time.monotonic())
            assert time.monotonic() < end, shown
            time.sleep(POLL)
    _said(person, 0, "delete", "troubles", "--yes")
    assert len(shown) >= FEWEST, f"{len(before)} of {PULLED} came before the first answer"
    return Percentiles.of([at - pods.waiting[name] for name, at in shown.items()])


def waiting_for_images(status: Object) -> set[str]:
    """Return the names of the Pods that a status shows so."""
    found = (each["pod"] or {} for each in status["plugins"])
    return {pod["name"] for pod in found if pod.get("reason") in NO_IMAGE}


@contextmanager
def _asked(person: Person, run: str) -> Iterator[Any]:
    """Give what asks a run's /status, on one connection through a port-forward."""
    port = free_port()
    command = [program("kubectl"), "--kubeconfig", person.cluster.kubeconfig, "port-forward"]
    command += ["-n", f"status-reporter-{run}", f"job/{run}", f"{port}:8081"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            forward.stdout.readline()
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)) as opened:

                def ask() -> Object:
                    opened.request("GET", "/status")
                    return dict(json.loads(opened.getresponse().read()))

                yield ask
        finally:
            forward.terminate()


def refusals(person: Person, runs: int) -> Mapping[str, tuple[int, list[float]]]:
    """Return how many problems each refused command says, and the seconds that it takes."""
    kubectl, team = person.cluster.kubectl, "crowded"
    kubectl("create", "namespace", team)
    kubectl("label", "namespace", team, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("create", "quota", "none", "--hard=pods=0", "-n", team)
    kubectl("create", "configmap", "refused", "--from-literal=a=b", "-n", team)
    there = f"/api/v1/namespaces/{team}/resourcequotas/none"
    person.cluster.api.wait_for(there, lambda quota: quota.get("status", {}).get("hard"))
    config = yaml.safe_load(person.cluster.kubeconfig.read_text())
    config["users"] = [{"name": "lead", "user": {"token": _token(person, team)}}]
    config["contexts"][0]["context"]["user"] = "lead"
    own = ("--kubeconfig", write(person.home, "lead", json.dumps(config)))
    plugins = ("-f", str(FIRST), "-f", write(person.home, "systemd-logs.yaml", SONOBUOYS))
    nobody = ("--service-account", "nobody", "--image-pull-secret", "none")
    cases = {
        "mistakes in a definition": (2, "-f", write(person.home, "mistaken.yaml", MISTAKEN)),
        "a quota, Pod Security, a name in use": (1, *plugins, "-n", team),
        "no such account, no such Secret": (1, *plugins, *nobody),
        "without the right to write": (1, *plugins, "-n", team, "--node", "node1", *own),
    }
    found = {}
    for case, (code, *arguments) in cases.items():
        seconds, counts = [], set()
        for _ in range(runs):
            began = time.monotonic()
            said = _said(person, code, "run", *arguments, "--name", "refused", "--storage", "none")
            seconds.append(time.monotonic() - began)
            counts.add(len(_PROBLEM.findall(said)))
            kubectl("wait", "--for=delete", "namespace/status-reporter-refused", "--timeout=60s")
        (count,) = counts
        assert count > 1, said
        found[case] = count, seconds
    kubectl("delete", "namespace", team, "--wait=false")
    return found


def _token(person: Person, namespace: str) -> str:
    """Return the token of somebody who may read what is in a namespace."""
    kubectl = person.cluster.kubectl
    kubectl("create", "serviceaccount", "lead", "-n", namespace)
    kubectl(
        *("create", "rolebinding", "lead", "--clusterrole=view", "-n", namespace),
        f"--serviceaccount={namespace}:lead",
    )
    return kubectl("create", "token", "lead", "-n", namespace).strip()


def _said(person: Person, wanted: int, *arguments: str) -> str:
    """Run the command and return what it says on standard error."""
    code, out, err = person.run(*arguments)
    assert code == wanted, (arguments, code, out, err)
    return err
