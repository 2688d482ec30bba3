"""How the tests of the Kubernetes client reach the API server."""

from typing import Any

from reporter.kube.api import KubeApi
from tests.fakekube import FakeKube

NAMESPACE = "default"


JOB = "validate"


def connect(fake: FakeKube, *, relax_x509_strict: bool = False) -> KubeApi:
    return KubeApi.connect(
        fake.server,
        ca_file=fake.ca_file,
        token_file=fake.token_file,
        relax_x509_strict=relax_x509_strict,
    )


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
