"""What the scheduler and the Job controller really say of a plugin's Job and its Pod.

The launcher decides by these words, because it may read neither nodes nor quotas.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from reporter.launch.job import job
from reporter.launch.seen import read_event, read_pod
from reporter.launch.situation import Row
from reporter.run.definition import Definition
from reporter.run.launch_file import Launch, RunLocation
from reporter.run.names import entry_name
from reporter.run.plan import Key, Plugin
from tests.bed import binaries
from tests.bed.controlplane import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

BOUND = 60.0
ALONE = [{"key": "else", "operator": "Exists"}]
"""A toleration of its own: such a plugin does not tolerate everything."""


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with a scheduler and three nodes without kubelets, one of them cordoned."""
    if reason := binaries.why_not():
        pytest.skip(reason)
    with ControlPlane(tmp_path_factory.mktemp("scheduled"), scheduler=True) as running:
        for name in ("cordoned", "free", "third"):
            add_node(running, name, unschedulable=name == "cordoned")
        yield running


@pytest.fixture
def there(scheduled: ControlPlane) -> str:
    """A namespace of its own."""
    return add_namespace(scheduled, {})


def add_node(cluster: ControlPlane, name: str, *, unschedulable: bool) -> None:
    """A Node object that is Ready and has room for small Pods."""
    cluster.request(
        "POST",
        "/api/v1/nodes",
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}},
            "spec": {"unschedulable": unschedulable},
        },
    )
    room = {"cpu": "1", "memory": "1Gi", "pods": "9"}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
    cluster.api.request(
        "PATCH",
        f"/api/v1/nodes/{name}/status",
        {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}},
        "application/merge-patch+json",
    )


def add_namespace(cluster: ControlPlane, labels: dict[str, str]) -> str:
    """Return the name of a new one whose default account is there."""
    made = cluster.request(
        "POST", "/api/v1/namespaces", {"metadata": {"generateName": "words-", "labels": labels}}
    )
    name = str(made["metadata"]["name"])
    cluster.api.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    return name


def limit(cluster: ControlPlane, namespace: str, hard: dict[str, str]) -> None:
    """Set a quota and wait until it is in force."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    cluster.request("POST", path, {"metadata": {"name": "none"}, "spec": {"hard": hard}})
    cluster.api.wait_for(f"{path}/none", lambda quota: (quota.get("status") or {}).get("hard"))


def launched(key: Key, namespace: str, **spec: Any) -> tuple[dict[str, Any], Launch]:
    """The Job of an entry, as the launcher makes it, and what the launcher is told."""
    container = {"name": "main", "image": "nowhere.invalid/a:1"} | spec.pop("container", {})
    per_node = key.node != "global"
    definition = Definition(
        key.plugin,
        "Node" if per_node else "Job",
        "done-file",
        {"spec": {"containers": [container], "serviceAccountName": "default"} | spec},
    )
    plugin = Plugin(key.plugin, (key.node,) if per_node else ())
    launch = Launch("nowhere.invalid/ours:1", "default", (definition,))
    place = RunLocation("r", namespace, None, "https://r:8080")
    return job(place, launch, plugin, key, index=0, timeout=60), launch


def seen_pod(cluster: ControlPlane, key: Key, namespace: str, **spec: Any) -> Any:
    """Create an entry's Job and return what is read of its Pod once the scheduler has spoken."""
    made, launch = launched(key, namespace, **spec)
    cluster.request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", made)
    selector = f"labelSelector=batch.kubernetes.io/job-name%3D{entry_name('r', key)}"
    path = f"/api/v1/namespaces/{namespace}/pods?{selector}"
    shown = cluster.api.wait_for(path, spoken, BOUND)
    return read_pod(shown["items"][0], launch)


def spoken(pods: Any) -> bool:
    """Whether the scheduler has said something of the Pod."""
    return any(
        condition["type"] == "PodScheduled"
        for pod in pods["items"]
        for condition in pod["status"].get("conditions", ())
    )


NODES = {
    "it is gone": ("gone", {}, Row.NODE),
    "it is cordoned, which the plugin does not tolerate": (
        "cordoned",
        {"tolerations": ALONE},
        Row.NODE,
    ),
    "it has no room": (
        "free",
        {"container": {"resources": {"requests": {"cpu": "64"}}}},
        Row.SCHEDULING,
    ),
    "its labels do not fit any more": (
        "free",
        {"nodeSelector": {"disk": "ssd"}},
        Row.SCHEDULING,
    ),
    "a claim is missing": (
        "free",
        {"volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "absent"}}]},
        Row.SCHEDULING,
    ),
}


@pytest.mark.parametrize("case", NODES.values(), ids=NODES)
def test_the_node_of_an_entry(scheduled: ControlPlane, there: str, case: Any) -> None:
    """Only of a node that is gone or cordoned nothing is to be hoped."""
    node, spec, kind = case

    pod = seen_pod(scheduled, Key("disk", node), there, **spec)

    assert ("Unschedulable", kind) == (pod.trouble.reason, pod.trouble.row), pod.trouble
    assert f"Pod {pod.name} is pending: it cannot be scheduled (0/3 " in pod.trouble.text


@pytest.mark.parametrize("node", ["free", "cordoned"])
def test_a_plugin_that_tolerates_everything_is_scheduled(
    scheduled: ControlPlane, there: str, node: str
) -> None:
    """Also on a cordoned node: that is where facts are wanted."""
    pod = seen_pod(scheduled, Key("disk", node), there)

    assert (None, node) == (pod.trouble, pod.node)


def test_a_plugin_for_the_whole_cluster_finds_no_node(scheduled: ControlPlane, there: str) -> None:
    pod = seen_pod(scheduled, Key("check", "global"), there, nodeSelector={"disk": "ssd"})

    assert Row.SCHEDULING == pod.trouble.row


REFUSED: dict[str, tuple[dict[str, str], dict[str, str], dict[str, Any], str]] = {
    "a quota": ({}, {"pods": "0"}, {}, "exceeded quota: none"),
    "Pod Security": (
        {"pod-security.kubernetes.io/enforce": "baseline"},
        {},
        {"hostNetwork": True},
        'violates PodSecurity "baseline',
    ),
    "a missing account": (
        {},
        {},
        {"serviceAccountName": "absent"},
        "error looking up service account",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_pod_is_refused(scheduled: ControlPlane, case: Any) -> None:
    """The Job is accepted, and only its Event has the words."""
    labels, hard, spec, words = case
    namespace = add_namespace(scheduled, labels)
    if hard:
        limit(scheduled, namespace, hard)
    made, _ = launched(Key("check", "global"), namespace, **spec)

    accepted = scheduled.request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", made)

    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector=reason%3DFailedCreate"
    shown = scheduled.api.wait_for(path, lambda events: events["items"], BOUND)
    refusal = read_event(shown["items"][0])
    assert refusal is not None
    assert accepted["metadata"]["uid"] == refusal.job_uid
    assert words in refusal.message
