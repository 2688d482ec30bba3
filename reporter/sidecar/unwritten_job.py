"""A Job whose status must not be written: what would be patched is kept in this process."""

from collections.abc import Mapping
from typing import Any

from reporter.common.objects import items, section, text
from reporter.sidecar.job import JobApi


class UnwrittenJob:
    """Answers as the API server would whose Job it reads. After a restart nothing is left of it."""

    def __init__(self, api: JobApi) -> None:
        self._api = api
        self._kept: dict[str, Any] = {}

    def get_job(self, namespace: str, name: str, *, timeout: float = 5.0) -> dict[str, Any]:
        """Return the Job as it would be. Raises KubeError."""
        return patched(self._api.get_job(namespace, name, timeout=timeout), self._kept)

    def patch_job_status(
        self, namespace: str, name: str, body: dict[str, Any], *, timeout: float = 5.0
    ) -> dict[str, Any]:
        """Keep the patch, and return the Job as it would be. Raises KubeError."""
        self._kept = patched(self._kept, body)
        return self.get_job(namespace, name, timeout=timeout)


def patched(job: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Job with a patch of ours: annotations merged by key and conditions by type."""
    metadata, status = section(job, "metadata"), section(job, "status")
    merged = {**section(metadata, "annotations"), **section(body, "metadata", "annotations")}
    conditions = {text(c, "type"): c for c in items(status, "conditions")}
    for condition in items(section(body, "status"), "conditions"):
        kind = text(condition, "type")
        conditions[kind] = {**conditions.get(kind, {}), **condition}
    return {
        **job,
        "metadata": {
            **metadata,
            "annotations": {key: value for key, value in merged.items() if value is not None},
        },
        "status": {**status, "conditions": list(conditions.values())},
    }
