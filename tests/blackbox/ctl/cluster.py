"""A kubeconfig for the fake API server, and the aggregator's Pod on it."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.fakekube import FakeKube, make_job, make_pod

RUN_ANNOTATION, STATUS_ANNOTATION = "status-reporter.io/run-status", "sonobuoy.hept.io/status"
LABEL = {"sonobuoy-component": "aggregator"}


def labels(run: str) -> dict[str, str]:
    """Return the labels of everything that belongs to a run."""
    return {
        "app.kubernetes.io/part-of": "status-reporter",
        "app.kubernetes.io/managed-by": "status-reporter",
        "status-reporter.io/run": run,
    }


def kubeconfig(path: Path, fake: FakeKube, *, namespace: str = "", **user: Any) -> Path:
    """Write one with two contexts: `here`, the current one, and `nowhere`."""
    context = {"cluster": "fake", "user": "me"} | ({"namespace": namespace} if namespace else {})
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [
            {
                "name": "fake",
                "cluster": {"server": fake.server, "certificate-authority": fake.ca_file},
            },
            {"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}},
        ],
        "contexts": [
            {"name": "here", "context": context},
            {"name": "nowhere", "context": {"cluster": "gone", "user": "me"}},
        ],
        "users": [{"name": "me", "user": user or {"token": fake.read_token()}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def add_aggregator(
    fake: FakeKube,
    status: str = "running",
    *plugins: dict[str, Any],
    run: dict[str, Any] | None = None,
    name: str = "status-aggregator-0",
    namespace: str = "default",
    launched: str = "",
    listens: int | None = None,
    tls: bool = False,
    **fields: Any,
) -> None:
    """Put the aggregator's Pod there, with its annotations.

    `launched` is the name of the run that it was launched for; `listens` the port of this machine
    where its status listener is, which speaks TLS or not.
    """
    shown = {"plugins": list(plugins) or None, "status": status, "tar-info": {"name": ""}}
    annotations = {STATUS_ANNOTATION: json.dumps(shown)}
    if run is not None:
        annotations[RUN_ANNOTATION] = json.dumps(run)
    made = make_pod(make_job(namespace=namespace), name=name, annotations=annotations, **fields)
    made["metadata"]["labels"] = LABEL | (labels(launched) if launched else {})
    if listens is not None:
        probe = {
            "httpGet": {"path": "/readyz", "port": "status"} | ({"scheme": "HTTPS"} if tls else {})
        }
        made["spec"]["containers"][0] |= {
            "ports": [{"name": "status", "containerPort": 8081}],
            "readinessProbe": probe,
        }
        fake.forwards[namespace, name, 8081] = listens
    fake.create_pod(made)


def plugin(name: str, node: str = "global", status: str = "running", verdict: str = "") -> Any:
    """Return an element of the annotation's `plugins`."""
    return {
        "plugin": name,
        "node": node,
        "status": status,
        "result-status": verdict,
        "result-counts": None,
    }
