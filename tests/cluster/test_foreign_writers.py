"""Another writer changes conditions of its own on the Job while we write ours: nothing is lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reporter.errors import Conflict
from reporter.kube.api import KubeApi
from reporter.sidecar.job import JobCondition
from reporter.verdict import rows
from reporter.verdict.condition import Attempt, Statement
from tests.bed.controlplane import ControlPlane

WRITES = 200
STRATEGIC = "application/strategic-merge-patch+json"


def make_job(controlplane: ControlPlane, namespace: str) -> str:
    """A suspended Job, so that its controller writes once and then rests; its path."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "adapter", "image": "none"}]}
    job = {"metadata": {"name": "shared"}, "spec": {"suspend": True, "template": {"spec": pod}}}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    controlplane.request("POST", path, job)
    controlplane.api.wait_for(f"{path}/shared", lambda seen: seen["status"].get("conditions"))
    return f"{path}/shared"


def statement(number: int) -> Statement:
    """A report that differs from the one before in every field."""
    report = rows.Report("R", ("True", "False")[number % 2], f"Round{number}", f"round {number}")
    attempt = Attempt(pod="shared-x", pod_uid="1", created_at=0.0, waiting_since_at=0.0)
    return Statement(report, final=False, attempt=attempt, evidence={}, wall=time.time())


def our_writes(api: KubeApi, namespace: str, done: threading.Event, written: list[int]) -> None:
    """Write as fast as the server takes it, as the loop does: read, write, on a conflict anew."""
    sink = JobCondition(api, namespace, "shared", "Available")
    number = 0
    while not done.is_set():
        sink.read()
        try:
            sink.write(statement(number))
        except Conflict:
            continue
        written.append(number)
        number += 1


def foreign_patch(number: int) -> dict[str, Any]:
    """A condition as other controllers write theirs: no version, no regard for us."""
    status = ("True", "False")[number // 3 % 2]
    condition = {"type": "Foreign", "status": status, "reason": "Other", "message": str(number)}
    return {"status": {"conditions": [condition]}}


@pytest.mark.cluster
def test_foreign_conditions_changed_200_times_while_we_write_none_lost(
    controlplane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Every one of its writes stands until its next one, and the controller's stand all along."""
    path = make_job(controlplane, namespace)
    (tmp_path / "token").write_text(reporter_token(controlplane, namespace))
    api = KubeApi.connect(
        controlplane.url, ca_file=str(controlplane.ca_file), token_file=str(tmp_path / "token")
    )
    done, written = threading.Event(), list[int]()
    ours = threading.Thread(target=our_writes, args=(api, namespace, done, written))
    seen: list[tuple[str, str]] = []
    begun = controlplane.request("GET", path)["metadata"]["resourceVersion"]
    ours.start()
    try:
        for number in range(WRITES):
            controlplane.request("PATCH", f"{path}/status", foreign_patch(number), STRATEGIC)
    finally:
        done.set()
        ours.join()
        api.close()
    last = controlplane.request("GET", path)["metadata"]["resourceVersion"]
    collection = f"{path.rpartition('/')[0]}?resourceVersion={begun}"
    for event in controlplane.api.watch(collection, seconds=10):
        conditions = {c["type"]: c for c in event["object"]["status"]["conditions"]}
        assert "True" == conditions["Suspended"]["status"]
        if "Foreign" in conditions:
            seen.append((conditions["Foreign"]["message"], conditions["Foreign"]["status"]))
        if event["object"]["metadata"]["resourceVersion"] == last:
            break

    expected = [(str(n), ("True", "False")[n // 3 % 2]) for n in range(WRITES)]
    changes = [one for i, one in enumerate(seen) if i == 0 or one != seen[i - 1]]
    assert expected == changes
    assert len(written) > WRITES / 10
    print(f"{len(written)} writes of ours beside {WRITES} of another writer")


def reporter_token(controlplane: ControlPlane, namespace: str) -> str:
    """A token that may do what the shipped Role allows."""
    rules = [{"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get", "patch"]}]
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    role = {"metadata": {"name": "reporter"}, "rules": rules}
    controlplane.request("POST", f"{roles}/roles", role)
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "reporter"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reporter"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    controlplane.request("POST", f"{roles}/rolebindings", binding)
    return controlplane.create_token(namespace, "default")
