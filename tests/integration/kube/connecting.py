"""What the tests of the Kubernetes client ask for."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch

NAMESPACE = "default"
JOB = "validate"
POD = "pod"


def condition(message: str = "words") -> dict[str, Any]:
    now = "2030-01-01T12:00:00Z"
    element = {
        "type": "Available",
        "status": "True",
        "reason": "AllGood",
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    }
    return {"status": {"conditions": [element]}}


def read(api: KubeApi, name: str = JOB, *, timeout: float = 5.0) -> dict[str, Any]:
    """The Job, as the sidecar may read it."""
    return api.get("Job", NAMESPACE, name, part="status", timeout=timeout)


def write(api: KubeApi, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Patch the Job's status as the sidecar does."""
    return api.patch("Job", NAMESPACE, JOB, body or condition(), part="status")


def watch(api: KubeApi, **more: Any) -> Watch:
    """Watch the Pod."""
    return api.watch("Pod", NAMESPACE, field_selector=f"metadata.name={POD}", **more)


@contextmanager
def full_backlog() -> Iterator[str]:
    """An address on which TCP connects hang: Linux drops packets that do not fit its backlog."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield f"https://127.0.0.1:{full.getsockname()[1]}"


@contextmanager
def mute_peer() -> Iterator[str]:
    """An address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        yield f"https://127.0.0.1:{mute.getsockname()[1]}"
