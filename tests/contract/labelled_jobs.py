"""Jobs that ask for a reporter by label, and what `status-ctl inject` makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bed.controlplane import ControlPlane

ADMISSION = Path(__file__).resolve().parents[2] / "deploy" / "admission"
IMAGE = "registry.example.org/team/status-reporter:0.1.0"
OURS = ("status-reporter-certificates", "status-reporter-results", "status-reporter-token")
"""The names of our volumes."""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def plain(form: str, deadline: int | None, **more: Any) -> dict[str, Any]:
    """A labelled Job without a reporter."""
    adapter = {"name": "work", "image": "x", **more.pop("adapter", {})}
    spec_of = {"template": {"spec": {"restartPolicy": "Never", "containers": [adapter], **more}}}
    metadata = {"name": "nightly", "labels": {"status-reporter.io/inject": form}}
    timed = {} if deadline is None else {"activeDeadlineSeconds": deadline}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": timed | spec_of,
    }


def changed() -> list[dict[str, Any]]:
    """Jobs that get a reporter, one of each situation."""
    cache = {"name": "cache", "mountPath": "/cache"}
    return [
        plain("native", 600),
        plain("native", 50),
        plain("native", 5),
        plain("classic", None),
        plain(
            "native",
            None,
            activeDeadlineSeconds=120,
            adapter={"volumeMounts": [cache]},
            volumes=[{"name": "cache", "emptyDir": {}}],
            initContainers=[{"name": "setup", "image": "x"}],
        ),
        plain("native", 600, adapter={"securityContext": RESTRICTED}),
        plain(
            "classic",
            600,
            adapter={"securityContext": RESTRICTED},
            securityContext={"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
        ),
    ]


def left_alone() -> list[dict[str, Any]]:
    """Jobs that do not."""
    results = {"name": "results", "mountPath": "/results"}
    other = {"name": "other", "image": "x"}
    return [
        plain("disabled", None),
        plain("native", 1),
        plain("native", 600, activeDeadlineSeconds=1),
        plain("native", None, containers=[{"name": "work", "image": "x"}, other]),
        plain(
            "native",
            None,
            adapter={"volumeMounts": [results]},
            volumes=[{"name": "results", "emptyDir": {}}],
        ),
        plain("native", None, hostNetwork=True),
        plain("native", None, adapter={"securityContext": {"runAsUser": 1000}}),
        plain("native", None, adapter={"securityContext": {"runAsGroup": 1000}}),
        plain("native", None, securityContext={"runAsUser": 0}),
        plain("native", None, os={"name": "windows"}),
        plain("classic", None, nodeSelector={"kubernetes.io/os": "windows"}),
        *(plain("native", None, volumes=[{"name": name, "emptyDir": {}}]) for name in OURS),
        plain("native", None, initContainers=[{"name": "status-reporter", "image": "x"}]),
        plain(
            "native",
            None,
            initContainers=[other | {"env": [{"name": "REPORTER_FORM", "value": "native"}]}],
        ),
    ]


def injected(value: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """Return what `status-ctl inject` makes of it."""
    file = tmp_path / "job.json"
    file.write_text(json.dumps(value))
    script = str(ADMISSION.parents[1] / "cmd" / "status-ctl.py")
    done = subprocess.run(
        [sys.executable, script, "inject", "-f", str(file), "--image", IMAGE],
        capture_output=True,
        check=True,
        timeout=60,
    )
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def as_created(bed: ControlPlane, namespace: str, value: dict[str, Any]) -> dict[str, Any]:
    """Create it as a dry run; return what it becomes, but for what is new each time."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs?dryRun=All"
    made: dict[str, Any] = bed.request("POST", path, value)
    for metadata in (made["metadata"], made["spec"]["template"]["metadata"]):
        for name in ("uid", "namespace", "creationTimestamp", "managedFields"):
            metadata.pop(name, None)
        for name in ("controller-uid", "batch.kubernetes.io/controller-uid"):
            metadata.get("labels", {}).pop(name, None)
    del made["spec"]["selector"]
    return made
