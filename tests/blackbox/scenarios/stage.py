"""Where scenarios run: namespaces that differ in the reporter's rights, several Jobs at a time."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from tests.bed.node import Node
from tests.blackbox.scenarios.jobs import Object, rights
from tests.blackbox.scenarios.recorder import Recorder
from tests.blackbox.scenarios.run import Run, play
from tests.blackbox.scenarios.scenario import Scenario

JOB_STATUS = {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get", "patch"]}
SERVICE = "service-named-metrics"
"""The shipped rights, and a Service whose name makes the kubelet set METRICS_PORT."""
ROLES: dict[str, list[Object] | None] = {
    "shipped": None,
    SERVICE: None,
    "pods-refused": [JOB_STATUS],
    "go": [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
        JOB_STATUS | {"verbs": ["get", "update", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    ],
}
"""The rules of the Role in each kind of namespace; nothing: those that deploy/ ships."""


class Stage:
    """A node with a recorder. Runs are started in the order of asking, `at_once` at a time."""

    def __init__(self, node: Node, at_once: int = 8) -> None:
        self.node, self.controlplane = node, node.controlplane
        self.recorder = Recorder(self.controlplane.api, node)
        self._pool = ThreadPoolExecutor(at_once, "scenario")
        self._namespaces: dict[str, str] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.recorder.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        for name in self._namespaces.values():
            self.controlplane.request("DELETE", f"/api/v1/namespaces/{name}")
        self.recorder.__exit__(*details)

    def namespace(self, role: str = "shipped") -> str:
        """The namespace for a role, under the restricted Pod security profile."""
        with self._lock:
            if role not in self._namespaces:
                self._namespaces[role] = self._make_namespace(role)
            return self._namespaces[role]

    def new_run(self, name: str, role: str = "shipped") -> Run:
        """A run without a Job yet; its name has to be new."""
        return Run(self.node, self.recorder, self.namespace(role), name)

    def play(self, scenario: Scenario, form: str, suffix: str = "") -> tuple[Run, Future[None]]:
        """Play a scenario when its turn comes."""
        run = self.new_run(f"{scenario.name}-{form}{suffix}", scenario.role)
        return run, self._pool.submit(play, run, scenario, form)

    def play_all(
        self, cases: Iterable[tuple[Scenario, str]]
    ) -> dict[tuple[str, str], tuple[Run, Future[None]]]:
        """Play many, found again by the scenario's name and form."""
        return {(case.name, form): self.play(case, form) for case, form in cases}

    def _make_namespace(self, role: str) -> str:
        name = f"{role}-{uuid.uuid4().hex[:6]}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        request = self.controlplane.request
        request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        # A Pod that mounts it before it is there waits for the kubelet's next try.
        trust = f"/api/v1/namespaces/{name}/configmaps/kube-root-ca.crt"
        self.controlplane.api.wait_for(trust, bool)
        if role == SERVICE:
            service = {"metadata": {"name": "metrics"}, "spec": {"ports": [{"port": 9090}]}}
            request("POST", f"/api/v1/namespaces/{name}/services", service)
        for found in rights(self.controlplane):
            if found["kind"] == "Role" and (rules := ROLES[role]) is not None:
                found["rules"] = rules
            request("POST", _collection(found, name), found)
        return name


def _collection(found: dict[str, Any], namespace: str) -> str:
    version = found["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{found['kind'].lower()}s"
