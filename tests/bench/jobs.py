"""Jobs for measuring: what deploy/ ships, with a shell script as the adapter."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from tests.bed.controlplane import ControlPlane
from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
REPORTER = "status-reporter"


class Jobs:
    """Makes Jobs in one namespace from the example of one form."""

    def __init__(self, controlplane: ControlPlane, namespace: str, form: str) -> None:
        self._controlplane, self.namespace = controlplane, namespace
        made = controlplane.kubectl("kustomize", str(DEPLOY / "examples" / form))
        documents = list(yaml.safe_load_all(made))
        self._job = next(found for found in documents if found["kind"] == "Job")
        self.rights = yaml.safe_dump_all(d for d in documents if d["kind"] != "Job")

    def create_namespace(self) -> None:
        """Make the namespace with the restricted profile and the rights that deploy/ ships."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        body = {"metadata": {"name": self.namespace, "labels": labels}}
        self._controlplane.request("POST", "/api/v1/namespaces", body)
        apply = ("apply", "--namespace", self.namespace, "--filename", "-")
        self._controlplane.kubectl(*apply, input=self.rights)

    def create(self, name: str, script: str, **environ: str) -> None:
        """Create a Job whose adapter runs `script`; `environ` goes to the reporter."""
        job = copy.deepcopy(self._job)
        job["metadata"] = {"name": name}
        pod = job["spec"]["template"]["spec"]
        pod |= {"nodeName": Node.name, "terminationGracePeriodSeconds": 5}
        for container in pod.get("initContainers", []) + pod["containers"]:
            container["imagePullPolicy"] = "Never"
            if container["name"] == REPORTER:
                container["image"] = PRODUCT_IMAGE
                given = [{"name": key, "value": value} for key, value in environ.items()]
                container["env"] += [*self._controlplane.service_env(), *given]
            else:
                container |= {"image": BUSYBOX_IMAGE, "command": ["sh", "-c", script]}
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        self._controlplane.request("POST", path, job)

    def delete(self, name: str) -> None:
        """Delete a Job and its Pod."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
        self._controlplane.request("DELETE", f"{path}?propagationPolicy=Background")

    def pod(self, name: str) -> Any:
        """Return the Job's only Pod, or None."""
        query = f"labelSelector=batch.kubernetes.io/job-name={name}"
        path = f"/api/v1/namespaces/{self.namespace}/pods?{query}"
        found = self._controlplane.request("GET", path)["items"]
        return found[0] if found else None
