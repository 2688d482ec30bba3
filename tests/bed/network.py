"""The cluster network of a bed for people: Services have addresses, node ports, and names in DNS.

    python -m tests.bed.network FOLDER

Runs beside the node of the bed in FOLDER until it is killed. Every address of a Service lies on the
node's bridge and a TCP relay listens on it, so the host's packet filter stays untouched. Pods ask
the DNS server on the bridge. It looks at the cluster twice a second.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.service import relay

DOMAIN = "cluster.local"
LOOK_SECONDS = 0.5
Address = tuple[str, int]


@dataclass(frozen=True)
class Names:
    """What stands in DNS: the addresses of each name, without the dot at the end."""

    addresses: dict[str, list[str]] = field(default_factory=dict)

    def answer(self, query: bytes) -> bytes:
        """Answer a query of one question; only A records exist, and names below `DOMAIN`."""
        labels, at = [], 12
        while length := query[at]:
            labels.append(query[at + 1 : at + 1 + length].decode("ascii", "replace"))
            at += 1 + length
        (kind,) = struct.unpack_from("!H", query, at + 1)
        found = self.addresses.get(".".join(labels).lower())
        shown = found if found and kind == 1 else []
        # Response, authoritative, recursion asked for and offered; 3: there is no such name.
        flags = 0x8580 | (0 if found is not None else 3)
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(shown), 0, 0)
        records = [
            b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(address)
            for address in shown
        ]
        return head + query[12 : at + 5] + b"".join(records)


class Network:
    """Keeps relays and names in line with the Services of a cluster."""

    def __init__(self, node: Node) -> None:
        self._node, self._api = node, node.controlplane.api
        self.names = Names()
        self._backends: dict[Address, list[Address]] = {}
        self._listening: dict[Address, socket.socket] = {}

    def serve_dns(self) -> None:
        """Answer on the node's address for ever."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind((self._node.controlplane.gateway, 53))
            while True:
                query, client = server.recvfrom(4096)
                with contextlib.suppress(IndexError, struct.error, OSError):
                    server.sendto(self.names.answer(query), client)

    def look(self) -> None:
        """Bring relays and names in line with what the cluster has now."""
        slices = self._list("/apis/discovery.k8s.io/v1/endpointslices")
        wanted: dict[Address, list[Address]] = {}
        names: dict[str, list[str]] = {}
        for service in self._list("/api/v1/services"):
            metadata, spec = service["metadata"], service["spec"]
            own = [each for each in slices if _belongs(each, metadata)]
            name = f"{metadata['name']}.{metadata['namespace']}.svc.{DOMAIN}"
            address = spec.get("clusterIP", "None")
            if address == "None":
                names[name] = [a for each in own for a, _ in _ready(each)]
                for each in own:
                    names |= {f"{host}.{name}": [a] for a, host in _ready(each) if host}
                continue
            names[name] = [address]
            for port in spec["ports"]:
                backends = self._backends_of(metadata, port, own)
                wanted[address, port["port"]] = backends
                if node_port := port.get("nodePort"):
                    wanted[self._node.controlplane.gateway, node_port] = backends
        self._backends, self.names = wanted, Names(names)
        for place in self._listening.keys() - wanted.keys():
            # Without that the kernel goes on listening for the thread that waits in accept(), and
            # the address could not be used again.
            listening = self._listening.pop(place)
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for place in wanted.keys() - self._listening.keys():
            try:
                self._listen(place)
            except OSError as error:
                print(f"{place}: {error}", file=sys.stderr, flush=True)  # the next look tries again

    def _backends_of(
        self, metadata: dict[str, Any], port: dict[str, Any], own: list[Any]
    ) -> list[Address]:
        if (metadata["namespace"], metadata["name"]) == ("default", "kubernetes"):
            return [("127.0.0.1", self._node.controlplane.pods_port)]
        return [
            (address, target["port"])
            for each in own
            for target in each["ports"] or ()
            if target.get("name", "") == port.get("name", "")
            for address, _ in _ready(each)
        ]

    def _listen(self, place: Address) -> None:
        if place[0] != self._node.controlplane.gateway:
            bridge = self._node.places.bridge
            subprocess.run(
                ["ip", "addr", "replace", f"{place[0]}/32", "dev", bridge],
                capture_output=True,
                check=False,
            )
        listening = socket.create_server(place, backlog=128)
        self._listening[place] = listening
        threading.Thread(target=self._accept, args=(place, listening), daemon=True).start()

    def _accept(self, place: Address, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            backends = self._backends.get(place) or [("", 0)]
            threading.Thread(target=relay, args=(client, backends[0]), daemon=True).start()

    def _list(self, path: str) -> list[Any]:
        found: list[Any] = self._api.request("GET", path)["items"]
        return found


def _belongs(endpoints: dict[str, Any], service: dict[str, Any]) -> bool:
    metadata = endpoints["metadata"]
    label = metadata.get("labels", {}).get("kubernetes.io/service-name")
    return (metadata["namespace"], label) == (service["namespace"], service["name"])


def _ready(endpoints: dict[str, Any]) -> list[tuple[str, str]]:
    """Addresses with their host names, if they have one."""
    return [
        (each["addresses"][0], each.get("hostname", ""))
        for each in endpoints["endpoints"] or ()
        if each["conditions"].get("ready")
    ]


def main(folder: str) -> None:
    """Serve until killed. While the API server is away everything stays as it was."""
    network = Network(Node(ControlPlane(Path(folder))))
    network.look()
    threading.Thread(target=network.serve_dns, daemon=True).start()
    print("ready", flush=True)
    while True:
        time.sleep(LOOK_SECONDS)
        try:
            network.look()
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
