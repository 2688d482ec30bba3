"""Jobs for measuring, in a namespace of their own with the rights that deploy/ ships."""

from __future__ import annotations

from typing import Any

import yaml

from tests.bed.controlplane import ControlPlane
from tests.blackbox.scenarios.jobs import make_job, rights


class Jobs:
    """Makes Jobs of one form in one namespace."""

    def __init__(self, controlplane: ControlPlane, namespace: str, form: str) -> None:
        self._controlplane, self.namespace, self._form = controlplane, namespace, form

    def create_namespace(self) -> None:
        """Make the namespace with the restricted profile and the rights."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        body = {"metadata": {"name": self.namespace, "labels": labels}}
        self._controlplane.request("POST", "/api/v1/namespaces", body)
        apply = ("apply", "--namespace", self.namespace, "--filename", "-")
        self._controlplane.kubectl(*apply, input=yaml.safe_dump_all(rights(self._controlplane)))

    def create(self, name: str, script: str, **environ: str) -> None:
        """Create a Job whose adapter runs `script`; `environ` goes to the reporter."""
        job = make_job(self._controlplane, self._form, name, script, settings=environ, grace=5)
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
