"""The way of a Service on a node without kube-proxy and DNS: a TCP relay on an address of the node.

Connections go to an endpoint that the cluster's own controller has found for the Service, so its
selector and its ports are tried as they stand. Pods find the address by a host alias.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Any, Self

from tests.bed.node import Node

LAST_BYTES = range(240, 255)
"""Of the node's network; no Pod gets them (see node_config.py)."""
CONNECT_SECONDS = 5.0
CHUNK = 65_536


class Service:
    """The TCP ports of one Service, reachable for Pods from `with` to its end.

    With no endpoint a connection is closed as soon as it is made.
    """

    def __init__(self, node: Node, namespace: str, name: str) -> None:
        self._controlplane, self._bridge = node.controlplane, node.places.bridge
        self._namespace, self.name = namespace, name
        self.address = ""
        self._listening: list[socket.socket] = []
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    @property
    def alias(self) -> dict[str, Any]:
        """The entry of a Pod's `hostAliases` that stands for DNS."""
        return {"ip": self.address, "hostnames": [self.name]}

    def __enter__(self) -> Self:
        path = f"/api/v1/namespaces/{self._namespace}/services/{self.name}"
        ports = self._controlplane.api.wait_for(path, bool)["spec"]["ports"]
        self.address = self._take_address()
        try:
            for port in ports:
                listening = socket.create_server((self.address, port["port"]), backlog=128)
                self._listening.append(listening)
                self._run(self._accept, listening, port["name"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for found in [*self._listening, *self._open]:
                with contextlib.suppress(OSError):
                    found.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for listening in self._listening:
            listening.close()
        self._ip("del", self.address)

    def endpoint(self, port: str) -> tuple[str, int] | None:
        """Where connections to the port of this name go now: address and number of a Pod."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices"
        query = f"?labelSelector=kubernetes.io/service-name%3D{self.name}"
        for found in self._controlplane.request("GET", path + query)["items"]:
            numbers = [p["port"] for p in found["ports"] or () if p["name"] == port]
            for endpoint in found["endpoints"] or ():
                if numbers and endpoint["conditions"].get("ready"):
                    return endpoint["addresses"][0], numbers[0]
        return None

    def _take_address(self) -> str:
        network, _, _ = self._controlplane.gateway.rpartition(".")
        for last in LAST_BYTES:
            if self._ip("add", address := f"{network}.{last}"):
                return address
        raise RuntimeError("all addresses for Services are taken")

    def _ip(self, action: str, address: str) -> bool:
        command = ["ip", "addr", action, f"{address}/32", "dev", self._bridge]
        return not subprocess.run(command, capture_output=True, check=False).returncode

    def _run(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listening: socket.socket, port: str) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            self._run(self._serve, client, port)

    def _serve(self, client: socket.socket, port: str) -> None:
        try:
            address = self.endpoint(port)
        except Exception:
            address = None  # the API server is away
        relay(client, address or ("", 0), self._open, self._lock)


def relay(
    client: socket.socket,
    address: tuple[str, int],
    connected: set[socket.socket] | None = None,
    lock: contextlib.AbstractContextManager[Any] | None = None,
) -> None:
    """Carry a connection to an address and back, until both directions have ended.

    Meanwhile both ends are among the `connected`, which `lock` guards. A client is closed at once
    where nobody listens, or the address has no port.
    """
    connected, lock = connected if connected is not None else set(), lock or threading.Lock()
    with client, contextlib.suppress(OSError):
        if not address[1]:
            return
        with socket.create_connection(address, CONNECT_SECONDS) as server:
            server.settimeout(None)
            with lock:
                connected |= {client, server}
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()
            with lock:
                connected -= {client, server}


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Carry everything in one direction, its end too."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
