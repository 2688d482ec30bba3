"""The test bed itself: a real Job runs, fails and is killed; an end leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bed import leftovers
from tests.bed.api import ApiError
from tests.bed.controlplane import ControlPlane
from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import Node

RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def adapter_job(script: str, *, name: str = "job", **container: Any) -> dict[str, Any]:
    """A Job of one busybox Pod without retries, as the restricted profile wants it."""
    adapter = {
        "name": "adapter",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "securityContext": RESTRICTED,
        "command": ["sh", "-c", script],
        **container,
    }
    pod = {
        "nodeName": Node.name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [adapter],
    }
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    return {"metadata": {"name": name}, "spec": spec}


def run_to_failure(controlplane: ControlPlane, namespace: str, job: dict[str, Any]) -> Any:
    """Create the Job, wait until it has failed and return its Pod."""
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    controlplane.request("POST", jobs, job)
    controlplane.api.wait_for(f"{jobs}/{job['metadata']['name']}", has_condition("Failed"))
    return controlplane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"][0]


def has_condition(kind: str) -> Callable[[Any], bool]:
    """Whether an object's status has the condition as True."""

    def check(found: Any) -> bool:
        conditions = found.get("status", {}).get("conditions", [])
        return any(c["type"] == kind and c["status"] == "True" for c in conditions)

    return check


def terminated(pod: Any) -> Any:
    """The end of a Pod's only container."""
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


@pytest.mark.cluster
def test_server_and_kubectl_have_the_built_version(controlplane: ControlPlane) -> None:
    """What runs is what was built."""
    version = controlplane.request("GET", "/version")["gitVersion"]
    assert version == "v1.34.4"
    assert f"Server Version: {version}" in controlplane.kubectl("version")


@pytest.mark.cluster
def test_audit_counts_the_requests_of_a_service_account(
    controlplane: ControlPlane, namespace: str
) -> None:
    """A refused request with a service account's token is in the audit log, the admin's are not."""
    token = controlplane.create_token(namespace, "default")
    path = f"/api/v1/namespaces/{namespace}/pods"
    user = f"system:serviceaccount:{namespace}:default"
    controlplane.request("GET", path)
    with pytest.raises(ApiError) as refused:
        controlplane.token_api(token).request("GET", path)
    assert refused.value.status == 403
    seen = [
        (event["user"]["username"], event["verb"], event["responseStatus"]["code"])
        for event in controlplane.audit_events()
        if event["requestURI"] == path
    ]
    assert seen == [(user, "list", 403)]


@pytest.mark.cluster
def test_apiserver_comes_back_with_its_data_on_the_same_port(
    controlplane: ControlPlane, namespace: str
) -> None:
    """An outage refuses connections and loses nothing."""
    path = f"/api/v1/namespaces/{namespace}"
    before = controlplane.request("GET", path)["metadata"]["uid"], controlplane.url
    controlplane.stop_apiserver()
    with pytest.raises(ConnectionRefusedError):
        controlplane.request("GET", path)
    controlplane.start_apiserver()
    after = controlplane.request("GET", path)["metadata"]["uid"], controlplane.url
    assert after == before


@pytest.mark.node
def test_job_whose_pod_exits_3_has_failed(
    controlplane: ControlPlane, node: Node, namespace: str
) -> None:
    """A real Job, a real container, its real exit code."""
    pod = run_to_failure(controlplane, namespace, adapter_job("exit 3"))
    assert terminated(pod)["exitCode"] == 3
    assert terminated(pod)["reason"] == "Error"


@pytest.mark.node
def test_container_over_its_memory_limit_is_oom_killed(
    controlplane: ControlPlane, node: Node, namespace: str
) -> None:
    """The kernel kills it and the kubelet says so."""
    limits = {"limits": {"memory": "32Mi"}}
    job = adapter_job("exec tail /dev/zero", resources=limits)
    pod = run_to_failure(controlplane, namespace, job)
    assert terminated(pod)["reason"] == "OOMKilled"
    assert terminated(pod)["exitCode"] == 137


@pytest.mark.node
def test_pod_reaches_the_api_server_and_its_output_has_nanoseconds(
    controlplane: ControlPlane, node: Node, namespace: str
) -> None:
    """The given address leads from the bridge network to the server; logs carry exact times."""
    connect = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null"
    job = adapter_job(f"echo before; {connect} && echo reached; exit 1")
    job["spec"]["template"]["spec"]["containers"][0]["env"] = controlplane.service_env()
    began = time.time_ns()
    pod = run_to_failure(controlplane, namespace, job)["metadata"]["name"]
    lines = node.logs(namespace, pod, "adapter")
    assert [line.text for line in lines] == ["before", "reached"]
    assert began < lines[0].time_ns < lines[1].time_ns < time.time_ns()
    assert controlplane.kubectl("-n", namespace, "logs", pod) == "before\nreached\n"


@pytest.mark.node
def test_usage_tells_memory_and_cpu_of_a_running_container(
    controlplane: ControlPlane, node: Node, namespace: str
) -> None:
    """Peak memory and CPU time are the main process's own; an ended one has none."""
    work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; sleep 600 & wait"
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    controlplane.request("POST", jobs, adapter_job(work))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    found = controlplane.api.wait_for(pods, lambda seen: seen["items"])["items"][0]
    name = found["metadata"]["name"]
    end = time.monotonic() + 60
    while not node.logs(namespace, name, "adapter") and time.monotonic() < end:
        time.sleep(0.1)
    controlplane.api.wait_for(f"{pods}/{name}", lambda pod: pod["status"].get("phase") == "Running")
    usage = node.usage(namespace, name, "adapter")
    assert 500_000 < usage.peak_bytes < 20_000_000
    assert usage.cpu_seconds > 0.02
    with pytest.raises(LookupError):
        node.usage(namespace, name, "sidecar")


@pytest.mark.node
def test_product_image_runs_as_its_own_user_with_a_read_only_root(
    controlplane: ControlPlane, node: Node, namespace: str, product_image: str
) -> None:
    """The image from the Dockerfile starts under the restricted profile without a given user."""
    report = "import os, reporter; print(os.getuid(), os.access('/', os.W_OK)); os._exit(4)"
    security = {key: value for key, value in RESTRICTED.items() if key != "runAsUser"}
    job = adapter_job("", image=product_image, securityContext=security)
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["python3", "-c", report]
    pod = run_to_failure(controlplane, namespace, job)
    lines = node.logs(namespace, pod["metadata"]["name"], "adapter")
    assert [line.text for line in lines] == ["65532 False"]
    assert terminated(pod)["exitCode"] == 4


@pytest.mark.node
def test_second_node_beside_the_first_leaves_nothing_when_it_ends(folder: Path, node: Node) -> None:
    """No process, mount, bridge or control group stays, though a Pod ignored SIGTERM."""
    with ControlPlane(folder, pods=True) as controlplane:
        second = Node(controlplane)
        with second:
            stubborn = adapter_job("trap '' TERM; sleep 600 & wait; wait")
            controlplane.request("POST", "/apis/batch/v1/namespaces/default/jobs", stubborn)
            path = "/api/v1/namespaces/default/pods"
            controlplane.api.wait_for(
                path, lambda seen: [p for p in seen["items"] if p["status"]["phase"] == "Running"]
            )
            places = second.places
            assert leftovers.mounts_below(places.state)
            assert leftovers.processes(places.cgroup)
    assert leftovers.mounts_below(places.state, folder) == []
    assert leftovers.processes(places.cgroup) == set()
    assert not Path("/sys/class/net", places.bridge).exists()
    assert not places.state.exists()
    assert not controlplane.running
    assert node.controlplane.api.get_or_none(f"/api/v1/nodes/{Node.name}")
