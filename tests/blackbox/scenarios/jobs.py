"""Test Jobs made from what deploy/ ships: only the adapter and the times are the test's own."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tests.bed.controlplane import ControlPlane
from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE

Object = dict[str, Any]

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
ADAPTER, REPORTER = "adapter", "status-reporter"
FORMS = ("native", "classic")
RESULT = "/results/adapter-result.json"


def writes(status: str = "success", reason: str = "Checked", message: str = "All is well") -> str:
    """The shell command that writes a result in one go, by a rename."""
    text = json.dumps({"status": status, "reason": reason, "message": message})
    return f"echo '{text}' >{RESULT}.tmp && mv {RESULT}.tmp {RESULT}"


def container(pod: Object, name: str) -> Object:
    """The container `name` of a Pod's spec, wherever it stands."""
    everyone = [*pod.get("initContainers", []), *pod["containers"]]
    return next(c for c in everyone if c["name"] == name)


def beside(pod: Object, name: str, script: str, **fields: Any) -> Object:
    """A further container like the adapter, that mounts nothing."""
    return {**copy.deepcopy(container(pod, ADAPTER)), **_shell(script), "name": name} | {
        "volumeMounts": [],
        **fields,
    }


def make_job(
    controlplane: ControlPlane,
    form: str,
    name: str,
    script: str,
    *,
    settings: Mapping[str, str] | None = None,
    grace: int = 30,
) -> Object:
    """The example Job of `deploy/` in one form, whose adapter runs `script`.

    It names the test bed's node, and the reporter gets the way to its API server, which a cluster
    gives by itself. A grace period of 30 s is what Kubernetes gives.
    """
    job = copy.deepcopy(_shipped(controlplane, form)["Job"])
    job["metadata"]["name"] = name
    del job["spec"]["activeDeadlineSeconds"]
    pod: Object = job["spec"]["template"]["spec"]
    pod |= {"nodeName": Node.name, "terminationGracePeriodSeconds": grace}
    adapter, reporter = container(pod, ADAPTER), container(pod, REPORTER)
    adapter |= _shell(script)
    reporter |= {"image": PRODUCT_IMAGE, "imagePullPolicy": "Never"}
    reporter["env"] += controlplane.service_env()
    reporter["env"] += [{"name": key, "value": value} for key, value in (settings or {}).items()]
    return job


def rights(controlplane: ControlPlane) -> list[Object]:
    """The ServiceAccount, the Role and its binding, as shipped."""
    shipped = _shipped(controlplane, "native")
    return [copy.deepcopy(shipped[kind]) for kind in ("ServiceAccount", "Role", "RoleBinding")]


def _shell(script: str) -> Object:
    return {
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        # Kubernetes replaces $(NAME) and $$ in commands; the shell has to see what was written.
        "command": ["sh", "-c", script.replace("$", "$$")],
    }


@lru_cache
def _shipped(controlplane: ControlPlane, form: str) -> dict[str, Object]:
    """The objects of an example by their kind."""
    text = controlplane.kubectl("kustomize", str(DEPLOY / "examples" / form))
    return {found["kind"]: found for found in yaml.safe_load_all(text)}
