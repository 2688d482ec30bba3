"""When a client of the API saw what: two watches, one for Jobs and one for Pods."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.bed.controlplane import ControlPlane

ADAPTER = "adapter"


class Seen:
    """First sight (wall clock, seconds) of final conditions and of ended adapters, by Job name."""

    def __init__(self, controlplane: ControlPlane, namespace: str) -> None:
        self.verdicts: dict[str, tuple[float, dict[str, Any], dict[str, Any]]] = {}
        self.ended: dict[str, float] = {}
        self._changed = threading.Condition()
        jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        for path, take in ((jobs, self._job), (f"/api/v1/namespaces/{namespace}/pods", self._pod)):
            thread = threading.Thread(
                target=self._follow, args=(controlplane, path, take), daemon=True
            )
            thread.start()

    def wait(self, names: list[str], seconds: float) -> None:
        """Wait until all these Jobs have a final verdict. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: set(names) <= set(self.verdicts), seconds):
                raise TimeoutError(f"no verdict: {sorted(set(names) - set(self.verdicts))}")

    def _follow(
        self, controlplane: ControlPlane, path: str, take: Callable[[float, Any], None]
    ) -> None:
        for event in controlplane.api.watch(path, seconds=1800):
            now = time.time()
            with self._changed:
                take(now, event["object"])
                self._changed.notify_all()

    def _job(self, now: float, job: Any) -> None:
        note = job["metadata"].get("annotations", {}).get("status-reporter.io/Available")
        if note is None or not json.loads(note)["final"]:
            return
        condition = next(c for c in job["status"]["conditions"] if c["type"] == "Available")
        self.verdicts.setdefault(job["metadata"]["name"], (now, condition, json.loads(note)))

    def _pod(self, now: float, pod: Any) -> None:
        for shown in pod.get("status", {}).get("containerStatuses", []):
            if shown["name"] == ADAPTER and "terminated" in shown.get("state", {}):
                name = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
                self.ended.setdefault(name, now)
