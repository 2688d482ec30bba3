"""What the tests of the Kubernetes client ask for."""

from typing import Any

NAMESPACE = "default"
JOB = "validate"


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
