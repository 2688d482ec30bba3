"""A real node as root on Linux: containerd, a bridge network and a kubelet of its own.

What lives here: start, stop, and looks at the containers from outside. The host's own containerd,
networks and control groups stay untouched; several beds can run at the same time.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from tests.bed import binaries, containers, images, leftovers, node_config
from tests.bed.containers import LogLine, Usage
from tests.bed.controlplane import NODES, POD_GATEWAYS, ControlPlane
from tests.bed.node_config import CNI_BIN, Places
from tests.bed.processes import Program
from tests.ports import free_port

NODE, SECOND = NODES
PROJECT = Path(__file__).resolve().parents[2]
NEEDED = ("containerd", "ctr", "runc", "ip", "umount")
SLOTS = Path("/run/status-reporter-bed")
PODS_END_SECONDS = 60.0
IMAGE_KNOWN_SECONDS = 20.0


def why_not() -> str | None:
    """The reason why a node is not possible here, or None."""
    if platform.system() != "Linux":
        return "a node needs Linux"
    if os.geteuid() != 0:
        return "a node needs root"
    missing = [name for name in NEEDED if not shutil.which(name)]
    missing += [str(f) for f in (images.BUSYBOX, CNI_BIN / "bridge") if not f.is_file()]
    if missing:
        return f"a node needs {', '.join(missing)}: run tests/bed/setup.sh"
    return None


class Node:
    """The node `node1` of a control plane (made with `pods=True`), files in its folder.

    An object made for the folder of a running bed can use and stop it. With `services` Services
    and their names work as in any cluster; only one bed of a machine can have that. A `second` node
    is `node2`; it starts after the first and stops before it. Its taint keeps out the Pods that do
    not ask for it.
    """

    name = NODE

    def __init__(
        self, controlplane: ControlPlane, *, services: bool = False, second: bool = False
    ) -> None:
        self.folder = controlplane.folder
        self.controlplane, self._second = controlplane, second
        if second:
            self.name, self.folder = SECOND, controlplane.folder / SECOND
        self._containerd = Program(self.folder, "containerd")
        self._kubelet = Program(self.folder, "kubelet")
        self._network = Program(self.folder, "network")
        self._services = services
        self._slot_file = self.folder / "slot"
        if self._slot_file.exists():
            self._take(int(self._slot_file.read_text()))

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it is Ready; RuntimeError with the end of a log otherwise."""
        if reason := why_not():
            raise binaries.BedUnavailable(reason)
        binaries.program("kubelet")
        self.folder.mkdir(exist_ok=True)
        lock = self._lock_slot()
        try:
            self._start_containerd(lock)
            for name, write in (
                (images.PAUSE_IMAGE, images.write_pause_image),
                (images.BUSYBOX_IMAGE, images.write_busybox_image),
            ):
                with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
                    write(Path(archive.name))
                    self.import_image(Path(archive.name), name)
            if self._services and not self._second:
                self._start_network()
            leftovers.make_cgroup(self.places.cgroup)
            self.start_kubelet(keep=(lock,))
        finally:
            os.close(lock)

    def stop(self) -> None:
        """End it and leave nothing: Pods, processes, mounts, network, control groups.

        Safe to repeat, after half a start, and after a crash of whoever started it.
        """
        if not self._slot_file.exists():
            return
        if not self.places.owned():
            # The machine was started anew and another bed has the number now.
            self._slot_file.unlink()
            return
        if not self._second:
            self.controlplane.stop_controllers()
        if self._kubelet.pid is not None and self._containerd.pid is not None:
            self._end_pods()
        self._kubelet.stop()
        self._network.stop()
        leftovers.kill_cgroup(self.places.cgroup)
        leftovers.kill_shims(self.places.socket)
        self._containerd.stop()
        leftovers.remove_shim_sockets(self.places.state)
        leftovers.unmount_below(self.places.state, self.folder)
        leftovers.delete_link(self.places.bridge)
        leftovers.remove_cgroup(self.places.cgroup)
        leftovers.remove_log_links(self.places.pod_logs)
        for folder in (self.places.state, self.places.images, self.places.kubelet):
            if folder.exists():
                shutil.rmtree(folder)
        self._slot_file.unlink()

    def start_kubelet(self, keep: tuple[int, ...] = ()) -> None:
        """Start the kubelet, also after `stop_kubelet`, and wait until the node is Ready."""
        self._kubelet.start(
            [
                str(binaries.program("kubelet")),
                f"--config={self.places.kubelet_config}",
                f"--kubeconfig={self.controlplane.folder / f'{self.name}-kubeconfig'}",
                f"--root-dir={self.places.kubelet}",
                f"--cert-dir={self.places.kubelet / 'pki'}",
                f"--hostname-override={self.name}",
                f"--node-ip={self.places.gateway}",
                *(["--register-with-taints=bed/second=here:NoSchedule"] if self._second else []),
                "--v=1",
            ],
            keep=keep,
        )
        self._kubelet.wait_ready(self._is_ready)

    def stop_kubelet(self) -> None:
        """Kill only the kubelet; its containers go on."""
        self._kubelet.stop(signal.SIGKILL)

    def import_image(self, archive: Path, name: str) -> None:
        """Make an OCI archive with one image known to the node as `name`; a newer one replaces."""
        with tempfile.NamedTemporaryFile(suffix=".tar") as named:
            images.write_named(archive, name, Path(named.name))
            self._ctr("image", "import", "--snapshotter", "overlayfs", named.name)
        # containerd tells its Kubernetes side by an event; until then the kubelet sees no image.
        end = time.monotonic() + IMAGE_KNOWN_SECONDS
        known = images.image_id(archive)
        while known not in self._ctr("image", "ls", "--quiet").split():
            if time.monotonic() > end:
                raise RuntimeError(f"containerd imported {name}, but its Kubernetes side did not")
            time.sleep(0.05)

    def container_pid(self, namespace: str, pod: str, container: str) -> int:
        """The process id on this machine of a running container's main process."""
        status = self._container_status(namespace, pod, container)
        container_id = status["containerID"].removeprefix("containerd://")
        for line in self._ctr("task", "ls").splitlines()[1:]:
            task, pid, *_ = line.split()
            if task == container_id:
                return int(pid)
        raise LookupError(f"{namespace}/{pod}/{container} has no running process")

    def usage(self, namespace: str, pod: str, container: str) -> Usage:
        """What the main process of a running container took so far; LookupError if it ended."""
        pid = self.container_pid(namespace, pod, container)
        if (usage := containers.process_usage(pid)) is None:
            raise LookupError(f"{namespace}/{pod}/{container} has just ended")
        return usage

    def logs(self, namespace: str, pod: str, container: str, restart: int = 0) -> list[LogLine]:
        """What a container of an existing Pod wrote, from its `restart`-th run, oldest first."""
        found = self.controlplane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}")
        folder = self.places.pod_logs / f"{namespace}_{pod}_{found['metadata']['uid']}"
        try:
            text = (folder / container / f"{restart}.log").read_text(errors="replace")
        except FileNotFoundError:
            return []
        return containers.log_lines(text)

    def _take(self, slot: int) -> None:
        ca_file = self.controlplane.ca_file
        self.places = Places.of(self.folder, SLOTS / str(slot), slot, ca_file)
        if not self._second:
            self.controlplane.gateway = self.places.gateway

    def _lock_slot(self) -> int:
        """A number no other living node has: its programs inherit the lock and keep it."""
        SLOTS.mkdir(parents=True, exist_ok=True)
        for slot in range(len(POD_GATEWAYS)):
            lock = os.open(SLOTS / f"{slot}.lock", os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            self._slot_file.write_text(str(slot))
            self._take(slot)
            self.places.own()
            return lock
        raise RuntimeError(f"{len(POD_GATEWAYS)} nodes run already; see python -m tests.bed down")

    def _start_containerd(self, lock: int) -> None:
        leftovers.delete_link(self.places.bridge)
        node_config.write(
            self.places, free_port(), services=self._services, dns=self.controlplane.gateway
        )
        # A bridge without an address of its own takes one of its ports': it would change as Pods
        # come and go, and the others would send to the old one until they ask again.
        hardware = f"0a:58:0a:f4:{self.places.slot:02x}:01"
        for action in (
            ("add", "name", self.places.bridge, "address", hardware, "type", "bridge"),
            ("set", self.places.bridge, "up"),
        ):
            subprocess.run(["ip", "link", *action], check=True)
        address = f"{self.places.gateway}/24"
        subprocess.run(["ip", "addr", "add", address, "dev", self.places.bridge], check=True)
        self._containerd.start(
            ["containerd", "--config", str(self.places.containerd_config)], keep=(lock,)
        )
        self._containerd.wait_ready(lambda: self._try_ctr("version"))

    def _start_network(self) -> None:
        command = [sys.executable, "-m", "tests.bed.network", str(self.folder)]
        self._network.log.unlink(missing_ok=True)
        self._network.start(command, env=os.environ | {"PYTHONPATH": str(PROJECT)})
        self._network.wait_ready(lambda: "ready" in self._network.log.read_text())

    def _is_ready(self) -> bool:
        node = self.controlplane.api.get_or_none(f"/api/v1/nodes/{self.name}") or {}
        conditions = node.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def _end_pods(self) -> None:
        """Delete all its Pods and wait until the runtime has neither a task nor a network left."""
        query = f"/api/v1/pods?fieldSelector=spec.nodeName={self.name}"
        try:
            for item in self.controlplane.request("GET", query)["items"]:
                name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
                path = f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=1"
                self.controlplane.request("DELETE", path)
        except Exception as error:
            print(f"the Pods are killed instead of deleted: {error}")
            return
        end = time.monotonic() + PODS_END_SECONDS
        while time.monotonic() < end:
            tasks = self._ctr("task", "ls", "-q").split()
            if not tasks and not leftovers.mounts_below(self.places.state):
                return
            time.sleep(0.1)

    def _container_status(self, namespace: str, pod: str, container: str) -> Any:
        """What the API shows of a container of a Pod, once it shows it as started.

        On a busy machine a container has done much before the kubelet says so.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        spec = self.controlplane.request("GET", path)["spec"]
        if container not in {
            each["name"] for each in [*spec["containers"], *spec.get("initContainers", [])]
        }:
            raise LookupError(f"{namespace}/{pod} has no container {container}")

        def started(found: Any) -> Any:
            status = (found or {}).get("status", {})
            for kind in ("containerStatuses", "initContainerStatuses"):
                for entry in status.get(kind, []):
                    if entry["name"] == container and entry.get("containerID"):
                        return entry
            return None

        return started(self.controlplane.api.wait_for(path, started))

    def _ctr(self, *args: str | Path) -> str:
        command = ["ctr", "--address", str(self.places.socket), "--namespace", "k8s.io", *args]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"ctr {' '.join(map(str, args))}: {done.stderr.strip()}")
        return done.stdout

    def _try_ctr(self, *args: str) -> bool:
        try:
            self._ctr(*args)
        except RuntimeError:
            return False
        return True
