"""The cluster network of a bed: relays follow the Services."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

from tests.bed.network import Network
from tests.ports import free_port

HANG = 60.0  # seconds; only a bound
HERE = "127.0.0.1"


def service(port: int) -> Any:
    metadata = {"name": "run", "namespace": "default"}
    return {"metadata": metadata, "spec": {"clusterIP": HERE, "ports": [{"port": port}]}}


def endpoints(port: int) -> Any:
    labels = {"kubernetes.io/service-name": "run"}
    return {
        "metadata": {"name": "run-x", "namespace": "default", "labels": labels},
        "ports": [{"port": port}],
        "endpoints": [{"addresses": [HERE], "conditions": {"ready": True}}],
    }


def test_an_address_is_used_again_by_a_later_service() -> None:
    """The cluster gives free addresses away; the thread of the one before waits in accept()."""
    with socket.create_server((HERE, 0)) as backend:
        port, services = free_port(), list[Any]()
        slices = [endpoints(backend.getsockname()[1])]

        def request(method: str, path: str) -> Any:
            return {"items": services if path.endswith("/services") else slices}

        controlplane = SimpleNamespace(gateway=HERE, port=0, api=SimpleNamespace(request=request))
        network = Network(SimpleNamespace(controlplane=controlplane))  # type: ignore[arg-type]
        for _ in range(3):
            services[:] = [service(port)]
            network.look()
            with socket.create_connection((HERE, port), HANG):
                backend.accept()[0].close()
            services.clear()
            network.look()
