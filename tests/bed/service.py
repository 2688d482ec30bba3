"""The way of a Service on a node without kube-proxy and DNS: a TCP relay on the node's gateway.

Connections to the gateway go to an endpoint that the cluster's own controller has found for the
Service, so its selector and its ports are tried as they stand. Pods find the gateway by a host
alias (`alias`).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Self

from tests.bed.controlplane import ControlPlane

CONNECT_SECONDS = 5.0
CHUNK = 65_536


class Service:
    """The TCP ports of one Service, on the gateway's address from `start` to the end.

    With no endpoint a connection is closed as soon as it is made.
    """

    def __init__(self, controlplane: ControlPlane, namespace: str, name: str) -> None:
        self._controlplane, self._namespace, self.name = controlplane, namespace, name
        self._listening: list[socket.socket] = []
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    @property
    def alias(self) -> dict[str, Any]:
        """The entry of a Pod's `hostAliases` that stands for DNS."""
        return {"ip": self._controlplane.gateway, "hostnames": [self.name]}

    def __enter__(self) -> Self:
        path = f"/api/v1/namespaces/{self._namespace}/services/{self.name}"
        found = self._controlplane.api.wait_for(path, bool)
        for port in found["spec"]["ports"]:
            address = (self._controlplane.gateway, port["port"])
            listening = socket.create_server(address, backlog=128)
            self._listening.append(listening)
            self._run(self._accept, listening, port["name"])
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

    def endpoint(self, port: str) -> tuple[str, int] | None:
        """Where connections to this port go now: address and port of a Pod."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices"
        query = f"?labelSelector=kubernetes.io/service-name%3D{self.name}"
        for found in self._controlplane.request("GET", path + query)["items"]:
            numbers = [p["port"] for p in found["ports"] or () if p["name"] == port]
            for endpoint in found["endpoints"] or ():
                if numbers and endpoint["conditions"].get("ready"):
                    return endpoint["addresses"][0], numbers[0]
        return None

    def _run(self, work: Any, *arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self, listening: socket.socket, port: str) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            self._run(self._serve, client, port)

    def _serve(self, client: socket.socket, port: str) -> None:
        with client:
            try:
                address = self.endpoint(port)
                if address is None:
                    return
                server = socket.create_connection(address, CONNECT_SECONDS)
            except Exception:
                # The API server, or the Pod, is away.
                return
            with server:
                server.settimeout(None)
                with self._lock:
                    self._open |= {client, server}
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()
                with self._lock:
                    self._open -= {client, server}


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Carry everything in one direction, its end too."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
