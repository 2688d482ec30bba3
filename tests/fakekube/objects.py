"""Realistic Jobs and Pods in both forms of the reporter, in the shape the API server shows them."""

from collections.abc import Mapping
from typing import Any, Literal

Object = dict[str, Any]

CREATED = "2030-01-01T12:00:00Z"
STARTED = "2030-01-01T12:00:02Z"
JOB_UID = "11111111-1111-4111-8111-111111111111"
POD_UID = "22222222-2222-4222-8222-222222222222"

ADAPTER = "adapter"
REPORTER = "status-reporter"


def waiting(reason: str = "PodInitializing", message: str | None = None) -> Object:
    """Return a container state."""
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def running(started_at: str = STARTED) -> Object:
    """Return a container state."""
    return {"running": {"startedAt": started_at}}


def terminated(
    exit_code: int = 0,
    reason: str | None = None,
    *,
    message: str | None = None,
    started_at: str = STARTED,
    finished_at: str = "2030-01-01T12:00:30Z",
) -> Object:
    """Return a container state; the reason is Completed or Error by the exit code unless said."""
    found = {
        "exitCode": exit_code,
        "reason": reason or ("Error" if exit_code else "Completed"),
        "startedAt": started_at,
        "finishedAt": finished_at,
        "containerID": f"containerd://{'0' * 64}",
    }
    return {"terminated": found | ({"message": message} if message else {})}


def make_job(name: str = "validate", namespace: str = "default", *, uid: str = JOB_UID) -> Object:
    """Return a running Job with one active Pod."""
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "generation": 1,
            "creationTimestamp": CREATED,
            "labels": dict(labels),
        },
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 0,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "template": {"metadata": {"labels": labels}, "spec": _spec("native", "Never")},
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "TerminatingOrFailed",
        },
        "status": {
            "startTime": CREATED,
            "active": 1,
            "terminating": 0,
            "uncountedTerminatedPods": {},
            "ready": 0,
        },
    }


def make_pod(
    job: Object,
    *,
    form: Literal["native", "classic"] = "native",
    adapter_state: Object | None = None,
    last_state: Object | None = None,
    restarts: int = 0,
    restart_policy: Literal["Never", "OnFailure"] = "Never",
    phase: str = "Running",
    name: str | None = None,
    uid: str = POD_UID,
    created: str = CREATED,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Return a Pod of the Job whose adapter is in `adapter_state` (running unless said)."""
    owner = job["metadata"]
    state = adapter_state or running()
    adapter = _status(ADAPTER, state, last_state, restarts)
    reporter = _status(REPORTER, running(CREATED), None, 0)
    meta = {
        "name": name or f"{owner['name']}-x7k2p",
        "generateName": f"{owner['name']}-",
        "namespace": owner["namespace"],
        "uid": uid,
        "creationTimestamp": created,
        "labels": dict(job["spec"]["template"]["metadata"]["labels"]),
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": owner["name"],
                "uid": owner["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "finalizers": ["batch.kubernetes.io/job-tracking"],
    }
    if annotations:
        meta["annotations"] = dict(annotations)
    ready = "running" in state
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": _spec(form, restart_policy) | {"nodeName": "node1"},
        "status": {
            "phase": phase,
            "conditions": [
                _condition("PodReadyToStartContainers", True),
                _condition("Initialized", True),
                _condition("Ready", ready, "ContainersNotReady"),
                _condition("ContainersReady", ready, "ContainersNotReady"),
                _condition("PodScheduled", True),
            ],
            "hostIP": "10.0.0.1",
            "podIP": "10.244.0.7",
            "startTime": created,
            **(
                {"initContainerStatuses": [reporter], "containerStatuses": [adapter]}
                if form == "native"
                else {"containerStatuses": [adapter, reporter]}
            ),
            "qosClass": "Burstable",
        },
    }


def _spec(form: str, restart_policy: str) -> Object:
    mount = {"name": "results", "mountPath": "/results"}
    adapter = {"name": ADAPTER, "image": "example/adapter:1", "volumeMounts": [dict(mount)]}
    reporter = {
        "name": REPORTER,
        "image": "localhost/status-reporter:dev",
        "volumeMounts": [mount | {"readOnly": True}],
    }
    containers = (
        {"initContainers": [reporter | {"restartPolicy": "Always"}], "containers": [adapter]}
        if form == "native"
        else {"containers": [reporter, adapter]}
    )
    return {
        "volumes": [{"name": "results", "emptyDir": {}}],
        **containers,
        "restartPolicy": restart_policy,
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "status-reporter",
    }


def _status(name: str, state: Object, last: Object | None, restarts: int) -> Object:
    return {
        "name": name,
        "state": state,
        "lastState": last or {},
        "ready": "running" in state,
        "restartCount": restarts,
        "image": f"example/{name}:1",
        "imageID": "",
        "started": "running" in state,
    }


def _condition(kind: str, true: bool, reason: str = "") -> Object:
    found = {
        "type": kind,
        "status": "True" if true else "False",
        "lastProbeTime": None,
        "lastTransitionTime": CREATED,
    }
    return found if true else found | {"reason": reason}
