"""What the tests of the Kubernetes client ask for."""

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
