"""The files a node starts with: containerd's, the network's and the kubelet's configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from tests.bed.controlplane import POD_GATEWAYS
from tests.bed.images import PAUSE_IMAGE

SERVICES = "10.96.0.0/16"  # as in controlplane.py
PODS = "10.244.0.0/16"  # of all nodes
CNI_BIN = Path("/usr/lib/cni")
EVICTION_SIGNALS = ("imagefs.available", "memory.available", "nodefs.available")


@dataclass(frozen=True)
class Places:
    """Where the parts of one node lie; `state` is short, because socket paths have a limit."""

    slot: int
    state: Path
    config: Path
    images: Path
    kubelet: Path
    pod_logs: Path
    ca_file: Path

    @classmethod
    def of(cls, folder: Path, state: Path, slot: int, ca_file: Path) -> Self:
        return cls(
            slot,
            state,
            folder / "node",
            folder / "containerd",
            folder / "kubelet",
            folder / "pod-logs",
            ca_file,
        )

    def own(self) -> None:
        """Note in the host's folder for this number whose it is."""
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "owner").write_text(str(self.config))

    def owned(self) -> bool:
        """Whether the number is (still) this bed's."""
        owner = self.state / "owner"
        return owner.is_file() and owner.read_text() == str(self.config)

    @property
    def bridge(self) -> str:
        return f"srbed{self.slot}"

    @property
    def gateway(self) -> str:
        return POD_GATEWAYS[self.slot]

    @property
    def cgroup(self) -> str:
        return f"srbed{self.slot}"

    @property
    def socket(self) -> Path:
        return self.state / "containerd.sock"

    @property
    def containerd_config(self) -> Path:
        return self.config / "containerd.toml"

    @property
    def kubelet_config(self) -> Path:
        return self.config / "kubelet.yaml"


def write(places: Places, kubelet_port: int, *, services: bool = False, dns: str = "") -> None:
    """Write all configuration and make the folders it names.

    `services` says that the first node's bridge has the addresses of Services; `dns` is its own
    address, where queries are answered.
    """
    for folder in (places.config / "cni", places.images, places.state, places.pod_logs):
        folder.mkdir(parents=True, exist_ok=True)
    places.kubelet.mkdir(exist_ok=True)
    places.containerd_config.write_text(_containerd(places))
    network = places.config / "cni" / "10-bed.conflist"
    network.write_text(json.dumps(_network(places, services=services), indent=1))
    # No name server: a lookup fails at once instead of leaving the machine.
    (places.config / "resolv.conf").write_text("")
    kubelet = _kubelet(places, kubelet_port)
    if services:
        kubelet |= {"clusterDNS": [dns], "clusterDomain": "cluster.local"}
    places.kubelet_config.write_text(yaml.safe_dump(kubelet))


def _containerd(places: Places) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{places.images}"
state = "{places.state}/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
]
[grpc]
address = "{places.socket}"
[debug]
level = "warn"
[{cri}]
sandbox_image = "{PAUSE_IMAGE}"
disable_tcp_service = true
netns_mounts_under_state_dir = true
# Without CAP_SYS_RESOURCE a sandbox could not lower its OOM score and would die.
restrict_oom_score_adj = true
[{cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false
Root = "{places.state}/runc"
[{cri}.cni]
bin_dir = "{CNI_BIN}"
conf_dir = "{places.config}/cni"
"""


def _network(places: Places, *, services: bool) -> dict[str, object]:
    """A bridge the node made itself (isGateway would switch on the host's IP forwarding)."""
    routes = [{"dst": where, "gw": places.gateway} for where in (SERVICES, PODS)]
    return {
        "cniVersion": "1.0.0",
        "name": places.bridge,
        "plugins": [
            {
                "type": "bridge",
                "bridge": places.bridge,
                "isGateway": False,
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(places.state / "addresses"),
                    "routes": routes if services else [],
                    "ranges": [
                        [
                            {
                                "subnet": f"10.244.{places.slot}.0/24",
                                "rangeStart": f"10.244.{places.slot}.2",
                                # The rest is for Services (see service.py).
                                "rangeEnd": f"10.244.{places.slot}.239",
                            }
                        ]
                    ],
                },
            }
        ],
    }


def _kubelet(places: Places, port: int) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": places.gateway,
        "port": port,
        "healthzPort": 0,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(places.ca_file)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{places.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{places.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "evictionHard": dict.fromkeys(EVICTION_SIGNALS, "0%"),
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "podLogsDir": str(places.pod_logs),
        "resolvConf": str(places.config / "resolv.conf"),
        "volumePluginDir": str(places.kubelet / "volume-plugins"),
        # The node's own chains would be written into the host's iptables.
        "makeIPTablesUtilChains": False,
        "maxPods": 200,
        "serializeImagePulls": False,
        "enableControllerAttachDetach": False,
    }
