"""One run with a plugin for each way to fail that takes its time, on the real node and hollow ones.

It is begun early and looked at late, so that other tests use the minutes in between.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.bed.controlplane import ControlPlane
from tests.bed.hollow import KEEPS_OUT, MERGE, HollowNodes
from tests.blackbox.cluster.scene import BUSYBOX, Person, refusing

Object = dict[str, Any]

NAME = "slow"
NAMESPACE = "status-reporter-slow"
BOUND = 300.0
SLEEPS = "trap 'sleep 2; exit 143' TERM; sleep 3600 & wait"
"""Ends in another second than it is asked to: in the same one it may have ended by itself."""
RESULT = '{"status": "failure", "reason": "DiskFull", "message": "no room"}'
WRITES = f"echo '{RESULT}' >/results/new; mv /results/new /results/adapter-result.json"
SEAT = "bed.example/seat"
"""Of which the real node has one."""
ABSENT = {"configMapKeyRef": {"name": "absent", "key": "a"}}

CONTAINERS: dict[str, Object] = {
    "job-refused": {"volumeMounts": [{"name": "absent", "mountPath": "/x"}]},
    "pod-refused": {},
    "policy-job": {},
    "policy-pod": {},
    "unschedulable": {},
    "image-name": {"image": "NOT/A:::NAME"},
    "never-pulled": {"image": "nowhere.invalid/a:1", "imagePullPolicy": "Never"},
    "configuration": {"env": [{"name": "A", "valueFrom": ABSENT}]},
    "pull": {"image": "localhost:1/nobody/has:this"},
    "crash": {"command": ["sh", "-c", "echo last words >/dev/termination-log; exit 3"]},
    "memory": {
        "command": ["sh", "-c", "exec tail /dev/zero"],
        "resources": {"limits": {"memory": "32Mi"}},
    },
    "verdict": {"command": ["sh", "-c", WRITES]},
    "evicted": {"command": ["sh", "-c", SLEEPS]},
    "deleted": {"command": ["sh", "-c", SLEEPS]},
    "job-deleted": {"command": ["sh", "-c", SLEEPS]},
    "preempted": {"command": ["sh", "-c", SLEEPS], "resources": {"limits": {SEAT: "1"}}},
    "node-lost": {"command": ["sh", "-c", SLEEPS]},
    "deadline": {"command": ["sh", "-c", SLEEPS]},
}
IMPOSTOR = """
import socket, ssl, subprocess
made = "/tmp/sonobuoy/results/made"
certs = ["status-aggregator", "certs", "--for", "status", "--host", "other", "--out", made]
subprocess.run(certs, check=True)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{made}/server.crt", f"{made}/server.key")
server = socket.create_server(("127.0.0.1", 8080))
while True:
    try:
        context.wrap_socket(server.accept()[0], server_side=True)
    except OSError:
        pass
"""
"""Answers in the aggregator's place, with a certificate of its own."""
CONTAINERS |= {
    "no-address": {"command": ["sh", "-c", SLEEPS]},
    "no-listener": {"command": ["sh", "-c", SLEEPS]},
    "impostor": {"image": "$STATUS_REPORTER_IMAGE", "command": ["python3", "-c", IMPOSTOR]},
}
UNREACHABLE = "node.kubernetes.io/unreachable"
HERE: Object = {
    "hostAliases": [{"ip": "127.0.0.1", "hostnames": [f"{NAME}.{NAMESPACE}.svc"]}],
}
"""For a Pod that takes itself for the aggregator's."""
PODS: dict[str, Object] = {
    "pod-refused": {"serviceAccountName": "nobody"},
    "unschedulable": {"nodeSelector": {"disk": "ssd"}},
    # Goes to a node that is not Ready, and tolerates for one second that it cannot be reached.
    "node-lost": {
        "nodeSelector": {"kubernetes.io/hostname": "doomed"},
        "tolerations": [
            {"operator": "Exists", "effect": "NoSchedule"},
            {
                "key": UNREACHABLE,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 1,
            },
        ],
    },
    # Its upload goes nowhere.
    "verdict": HERE,
    "no-address": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["127.0.0.1"]}},
    "no-listener": HERE,
    "impostor": HERE,
}
SPECS: dict[str, Object] = {
    "unschedulable": {"startTimeoutSeconds": 70},
    "verdict": {"contract": "result-file", "timeoutSeconds": 3600},
    "deadline": {"timeoutSeconds": 20},
    "no-address": {"contract": "result-file"},
    "no-listener": {"contract": "done-file"},
    "impostor": {"contract": "done-file"},
}
GREETS = "echo -n hello >$RESULTS_DIR/a; echo -n $RESULTS_DIR/a >$RESULTS_DIR/done"
OF_NODES: dict[str, Object] = {
    "facts": {},
    # Tolerates what keeps others from hollow nodes, and no more.
    "shy": {"tolerations": [KEEPS_OUT | {"operator": "Exists"}]},
}
LEFT_OUT: dict[str, Object] = {
    "windows": {"labels": {"kubernetes.io/os": "windows"}},
    "virtual": {"labels": {"type": "virtual-kubelet"}},
    "broken": {"ready": False},
}
"""Nodes on which no plugin runs."""
LATER_NODES = ("joined", "cordoned", "tainted", "doomed")
"""Nodes that are there while the run is."""
URGENT = "urgent"


def definitions() -> str:
    """Return the definitions as a document."""
    found = []
    for name, container in CONTAINERS.items():
        template = {"spec": {"containers": [_container(container)], **PODS.get(name, {})}}
        template["spec"]["terminationGracePeriodSeconds"] = 1
        spec = {"driver": "Job", "contract": "link", "cleanup": "never", "template": template}
        found.append(_definition(name, spec | SPECS.get(name, {})))
    for name, pod in OF_NODES.items():
        greets = _container({"command": ["sh", "-c", GREETS]})
        template = {"spec": {"containers": [greets], **pod}}
        spec = {"driver": "Node", "contract": "done-file", "heartbeats": False}
        spec |= {"timeoutSeconds": 60, "cleanup": "never", "template": template}
        found.append(_definition(name, spec))
    return yaml.safe_dump_all(found)


def _container(own: Object) -> Object:
    return {"name": "main", "image": BUSYBOX} | own


def _definition(name: str, spec: Object) -> Object:
    kinds = {"apiVersion": "status-reporter.io/v1", "kind": "Plugin"}
    return {**kinds, "metadata": {"name": name}, "spec": spec}


class SlowRun:
    """The run, from `begin` on; what became of an entry is waited for."""

    def __init__(self, cluster: ControlPlane, folder: Path) -> None:
        self.person, self.cluster = Person(cluster, folder), cluster
        self.nodes, self._policy = HollowNodes(cluster), ExitStack()
        self.disturbed: dict[str, float] = {}
        """When a plugin was disturbed, in Unix seconds."""
        self.created = 0.0
        """When the run's objects were, in Unix seconds."""
        self.pulling: Object = {}
        """What was shown of the Pod whose image cannot be pulled, before that counted."""
        self._disturbing = threading.Thread(target=self._disturb)
        self._failed: BaseException | None = None

    def begin(self) -> None:
        """Print its manifests, change the nodes, and create it: nothing is checked before."""
        self.nodes.start()
        for name, options in {**LEFT_OUT, "gone": {}, "cordoned": {}}.items():
            self.nodes.add(name, **options)
        self.nodes.add("tainted", taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
        (self.person.home / "slow.yaml").write_text(definitions())
        code, manifests, err = self.person.run(
            *("run", "-f", "slow.yaml", "--name", NAME, "--storage", "none"),
            *("--dry-run", "-o", "yaml"),
        )
        assert 0 == code, err
        for name in (*LEFT_OUT, "gone"):
            self.nodes.remove(name)
        for name in ("joined", "doomed"):
            self.nodes.add(name)
        self.nodes.cordon("cordoned")
        for name in LATER_NODES:
            self.nodes.lose(name)  # or the runs of other tests would choose them
        self._seats({SEAT: "1"})
        self.cluster.request(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": URGENT}, "value": 1_000_000},
        )
        self._policy.enter_context(refusing(self.cluster, NAME, pod="policy-pod", job="policy-job"))
        self.created = time.time()
        self.cluster.kubectl("create", "-f", "-", input=manifests)
        self._disturbing.start()

    def end(self) -> None:
        """Leave nothing."""
        self._policy.close()
        self._disturbing.join(BOUND)
        self.person.run("delete", NAME, "--yes")
        for name in LATER_NODES:
            self.nodes.remove(name)
        self.nodes.stop()
        self.cluster.kubectl("delete", "pod", URGENT, "--ignore-not-found", "--wait=false")
        self.cluster.kubectl("delete", "priorityclass", URGENT)
        self._seats({SEAT: None})

    def _seats(self, room: Object) -> None:
        """Change what the real node has room for."""
        status = {"status": {"capacity": room, "allocatable": room}}
        self.cluster.request("PATCH", "/api/v1/nodes/node1/status", status, MERGE)

    def _disturb(self) -> None:
        try:
            pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
            evicted = self.wait_running("evicted")["metadata"]["name"]
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
            eviction |= {"metadata": {"name": evicted, "namespace": NAMESPACE}}
            self._note("evicted")
            self.cluster.request("POST", f"{pods}/{evicted}/eviction", eviction)
            deleted = self.wait_running("deleted")["metadata"]["name"]
            self._note("deleted")
            self.cluster.request("DELETE", f"{pods}/{deleted}")
            job = self.wait_running("job-deleted")["metadata"]["ownerReferences"][0]["name"]
            self._note("job-deleted")
            self.cluster.kubectl("delete", "job", job, "-n", NAMESPACE, "--wait=false")
            self.wait_running("preempted")
            urgent = _container(CONTAINERS["preempted"])
            spec = {"priorityClassName": URGENT, "containers": [urgent]}
            spec["terminationGracePeriodSeconds"] = 1
            pod = {"metadata": {"name": URGENT}, "spec": spec}
            self._note("preempted")
            self.cluster.request("POST", "/api/v1/namespaces/default/pods", pod)
            self.wait_running("node-lost")
            self._note("node-lost")
            # So does the controller for lost nodes, unless most of a cluster's nodes are lost.
            self.cluster.kubectl("taint", "node", "doomed", f"{UNREACHABLE}=:NoExecute")
            self.pulling = self._wait_entry("pull", lambda found: found["pod"] is not None)["pod"]
        except BaseException as error:
            self._failed = error

    def _note(self, plugin: str) -> None:
        self.disturbed[plugin] = time.time()

    def wait_running(self, plugin: str) -> Object:
        """Return a plugin's Pod once it runs."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        query = f"?labelSelector=status-reporter.io/plugin%3D{plugin}"

        def runs(found: Object) -> bool:
            return any(pod["status"].get("phase") == "Running" for pod in found["items"])

        found: Object = self.cluster.api.wait_for(path + query, runs, BOUND)["items"][0]
        return found

    def status(self) -> Object:
        """Return the run's status, once it can be told."""
        end = time.monotonic() + BOUND
        words = ("status", f"run/{NAME}", "-n", NAMESPACE, "-o", "json")
        while not (answer := self.person.run(*words))[1]:
            assert time.monotonic() < end, answer
            time.sleep(1)
        found: Object = json.loads(answer[1])
        return found

    def _wait_entry(self, plugin: str, right: Callable[[Object], bool]) -> Object:
        end = time.monotonic() + 2 * BOUND
        while True:
            (found,) = (each for each in self.status()["plugins"] if each["name"] == plugin)
            if right(found):
                return dict(found)
            assert time.monotonic() < end, found
            time.sleep(1)

    def wait_decided(self, plugin: str) -> Object:
        """Return what became of a plugin that may take longer than the others."""
        return self._wait_entry(plugin, lambda found: found["status"] != "running")

    @cached_property
    def over(self) -> Object:
        """The status once every entry is decided, but for the image that cannot be pulled."""
        end = time.monotonic() + BOUND
        while True:
            found = self.status()
            open_ = {each["name"] for each in found["plugins"] if each["status"] == "running"}
            if open_ <= {"pull"}:
                assert self._failed is None, self._failed
                return found
            assert time.monotonic() < end, found
            time.sleep(1)

    def given_up(self, key: str) -> float:
        """When the aggregator has logged that it gave an entry up, in Unix seconds."""
        end = time.monotonic() + BOUND
        while True:
            text = self.cluster.kubectl("logs", f"job/{NAME}", "-n", NAMESPACE)
            lines = [json.loads(line) for line in text.splitlines()]
            for line in lines:
                if (line["message"], line.get("key")) == ("Result given up", key):
                    return moment(line["time"])
            assert time.monotonic() < end, (key, text)
            time.sleep(1)

    def entry(self, plugin: str, node: str = "") -> Object:
        """Return what became of an entry."""
        (found,) = (
            each for each in self.over["plugins"] if (each["name"], each["node"]) == (plugin, node)
        )
        return dict(found)

    def job(self, plugin: str, node: str = "") -> Object:
        """Return an entry's Job, which stays."""
        return self.jobs(plugin)[node]

    def jobs(self, plugin: str) -> dict[str, Object]:
        """Return a plugin's Jobs by the node they are for; "" where there is only one."""
        found = self._labelled("jobs", plugin)
        return {_node(each): each for each in found}

    def pod(self, plugin: str) -> Object:
        """Return a plugin's Pod, which stays."""
        (found,) = self._labelled("pods", plugin)
        return found

    @cached_property
    def plan(self) -> Object:
        """The plan that stands in the run's ConfigMap."""
        config = self.person.get("configmap", NAME, NAMESPACE)
        return dict(json.loads(config["data"]["plan.json"]))

    def _labelled(self, kind: str, plugin: str) -> list[Object]:
        label = f"status-reporter.io/plugin={plugin}"
        text = self.cluster.kubectl("get", kind, "-n", NAMESPACE, "-l", label, "-o", "json")
        return list(json.loads(text)["items"])


def _node(job: Object) -> str:
    node = job["metadata"]["annotations"].get("status-reporter.io/node", "global")
    return "" if node == "global" else str(node)


def moment(text: str) -> float:
    """Return an RFC 3339 time in Unix seconds."""
    return datetime.fromisoformat(re.sub("Z$", "+00:00", text)).timestamp()
