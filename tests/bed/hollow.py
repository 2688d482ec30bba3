"""Nodes without a kubelet, as many as wanted, in a cluster of `tests.bed`.

    python -m tests.bed.hollow FOLDER

Runs beside the bed in FOLDER until it is killed and does what the API server expects of a kubelet:
Pods that were bound to a hollow node are said to run, deleted ones are confirmed gone, and a
container has a log of one line. Nothing runs, so nothing ever ends by itself. Nobody sends their
heartbeats: with the controller for lost nodes they are lost after a minute.
"""

from __future__ import annotations

import os
import queue
import ssl
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.bed.api import ApiError
from tests.bed.controlplane import ControlPlane
from tests.bed.processes import Program

LABEL = "bed/hollow"
PORT_FILE = "hollow-port"
KEEPS_OUT = {"key": "bed/hollow", "effect": "NoSchedule"}
"""The taint of every hollow node: a Pod that does not ask for one runs on a real node."""
ROOM = {"cpu": "32", "memory": "64Gi", "pods": "500"}
THREADS = 4
MERGE = "application/merge-patch+json"
LINE = b"a line of a container that does not run\n"

Object = dict[str, Any]


class HollowNodes:
    """The hollow nodes of a control plane; `start` runs what stands for their kubelets, first."""

    def __init__(self, controlplane: ControlPlane) -> None:
        self.controlplane = controlplane
        self._program = Program(controlplane.folder, "hollow")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and wait until it looks at Pods."""
        self._program.log.unlink(missing_ok=True)
        self._program.start(
            [sys.executable, "-m", "tests.bed.hollow", str(self.controlplane.folder)],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        )
        self._program.wait_ready(lambda: "ready" in self._program.log.read_text())

    def stop(self) -> None:
        """End the process; the Node objects stay."""
        self._program.stop()

    def add(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        ready: bool = True,
        unschedulable: bool = False,
    ) -> None:
        """Create a Node object."""
        own = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name, LABEL: "true"}
        metadata = {"name": name, "labels": own | dict(labels or {})}
        made = {"metadata": metadata, "status": self._status(ready=ready)}
        self.controlplane.request("POST", "/api/v1/nodes", made)
        # A new one is given a taint that only the controller for lost nodes would take away.
        spec = {"taints": [KEEPS_OUT, *map(dict, taints)], "unschedulable": unschedulable}
        self._patch(name, {"spec": spec})

    def add_many(self, names: Iterable[str]) -> None:
        """Create Node objects with nothing special."""
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(self.add, names))

    def lose(self, name: str) -> None:
        """Have the node say that it is not Ready any more."""
        self._patch(f"{name}/status", {"status": self._status(ready=False)})

    def _status(self, *, ready: bool) -> Object:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "reason": "KubeletReady" if ready else "KubeletNotReady",
            "message": "" if ready else "container runtime is down",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        port = int((self.controlplane.folder / PORT_FILE).read_text())
        return {
            "capacity": ROOM,
            "allocatable": ROOM,
            "conditions": [condition],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }

    def cordon(self, name: str) -> None:
        """Let nothing new be scheduled there."""
        self._patch(name, {"spec": {"unschedulable": True}})

    def remove(self, name: str) -> None:
        """Delete the Node object."""
        self.controlplane.request("DELETE", f"/api/v1/nodes/{name}")

    def _patch(self, path: str, body: Object) -> None:
        self.controlplane.request("PATCH", f"/api/v1/nodes/{path}", body, MERGE)


class Kubelets:
    """What all hollow nodes of a control plane have instead of kubelets."""

    def __init__(self, controlplane: ControlPlane) -> None:
        self._api = controlplane.api
        self._work: queue.Queue[Object] = queue.Queue()
        self._hollow: dict[str, bool] = {}

    def run(self) -> None:
        """Look at Pods for ever; while the API server is away nothing is done."""
        for _ in range(THREADS):
            threading.Thread(target=self._carry_out, daemon=True).start()
        while True:
            try:
                for event in self._api.watch("/api/v1/pods?fieldSelector=spec.nodeName!=", 600):
                    if event["type"] in {"ADDED", "MODIFIED"}:
                        self._work.put(event["object"])
            except Exception as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                time.sleep(0.5)

    def _carry_out(self) -> None:
        while True:
            pod = self._work.get()
            try:
                self._look(pod)
            except ApiError as error:
                if error.status not in {404, 409}:
                    print(error, file=sys.stderr, flush=True)
            except OSError:
                time.sleep(0.5)
                self._work.put(pod)

    def _look(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        if not self._is_hollow(spec["nodeName"]):
            return
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            self._api.request("DELETE", path, body)
        elif pod["status"].get("phase") == "Pending" and "startTime" not in pod["status"]:
            self._api.request("PATCH", f"{path}/status", {"status": _running(spec)}, MERGE)

    def _is_hollow(self, node: str) -> bool:
        if node not in self._hollow:
            found = self._api.get_or_none(f"/api/v1/nodes/{node}")
            self._hollow[node] = found is not None and LABEL in found["metadata"]["labels"]
        return self._hollow[node]


def _running(spec: Object) -> Object:
    """The status of a Pod all of whose containers run."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kinds = {"initContainerStatuses": "initContainers", "containerStatuses": "containers"}
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        **{
            shown: [
                {
                    "name": each["name"],
                    "image": each["image"],
                    "imageID": "",
                    "containerID": f"hollow://{each['name']}",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now}},
                }
                for each in spec.get(kind, ())
            ]
            for shown, kind in kinds.items()
        },
    }


class _Log(BaseHTTPRequestHandler):
    """Answers the API server's requests for logs."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(LINE)))
        self.end_headers()
        self.wfile.write(LINE)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


def _serve_logs(controlplane: ControlPlane) -> None:
    """Serve logs in a thread and note the port in the bed's folder."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(controlplane.pki / "apiserver.crt", controlplane.pki / "apiserver.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Log)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    (controlplane.folder / PORT_FILE).write_text(str(server.server_address[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(folder: str) -> None:
    """Serve until killed."""
    controlplane = ControlPlane(Path(folder))
    _serve_logs(controlplane)
    print("ready", flush=True)
    Kubelets(controlplane).run()


if __name__ == "__main__":
    main(sys.argv[1])
