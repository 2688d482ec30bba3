"""The controllers and kubelets of a fake cluster: each Job gets a Pod, and its containers run.

What becomes of a Pod is told by a function for its plugin, which gets the Pod and changes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

from reporter.run.names import key_of
from reporter.run.plan import GLOBAL, Key
from tests.fakekube import FakeKube
from tests.fakekube.store import stamp

Object = dict[str, Any]
Fate = Callable[[Object], None]


def now() -> str:
    return stamp(datetime.now(UTC))


def _statuses(pod: Object, state: Object) -> None:
    for kind, shown in (
        ("initContainers", "initContainerStatuses"),
        ("containers", "containerStatuses"),
    ):
        pod["status"][shown] = [
            {"name": each["name"], "state": dict(state), "restartCount": 0}
            for each in pod["spec"].get(kind, [])
        ]


def runs(pod: Object) -> None:
    """All its containers run."""
    key = key_of(pod)
    pod["spec"]["nodeName"] = key.node if key and key.node != GLOBAL else "node1"
    pod["status"]["phase"] = "Running"
    _statuses(pod, {"running": {"startedAt": now()}})


def ends(pod: Object, code: int = 1, message: str = "it broke") -> None:
    """All its containers have ended."""
    runs(pod)
    pod["status"]["phase"] = "Failed" if code else "Succeeded"
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "message": message,
        "startedAt": now(),
        "finishedAt": now(),
    }
    _statuses(pod, {"terminated": ended})


def waits(reason: str, message: str = "") -> Fate:
    """Its containers wait on a node."""

    def fate(pod: Object) -> None:
        pod["spec"]["nodeName"] = "node1"
        _statuses(pod, {"waiting": {"reason": reason, "message": message}})

    return fate


def unscheduled(message: str) -> Fate:
    """No node takes it."""

    def fate(pod: Object) -> None:
        refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        pod["status"]["conditions"] = [refusal | {"message": message}]

    return fate


class Cluster:
    """Watches a FakeKube for Jobs. `begun` is called with each new Pod's key."""

    def __init__(
        self,
        fake: FakeKube,
        fates: dict[str, Fate] | None = None,
        begun: Callable[[Key], None] = lambda key: None,
    ) -> None:
        self.fake, self.fates, self.begun = fake, fates or {}, begun
        self.refusals: dict[str, str] = {}
        """By plugin, why the API server does not take its Pods."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with self.fake.changed:
            self.fake.changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        place = 0
        while not self._stop.is_set():
            with self.fake.changed:
                events = self.fake.store.events[place:]
                place += len(events)
                if not events:
                    self.fake.changed.wait(0.05)
            for _, kind, found in events:
                if kind == "ADDED" and found["kind"] == "Job":
                    self._take(found)

    def _take(self, job: Object) -> None:
        key = key_of(job)
        assert key is not None
        if key.plugin in self.refusals:
            self.refuse(job, self.refusals[key.plugin])
            return
        pod = self.pod_of(job)
        self.fates.get(key.plugin, runs)(pod)
        self.fake.store.create("Pod", pod)
        self.begun(key)

    def pod_of(self, job: Object) -> Object:
        """Return the Pod that the Job controller makes, still Pending."""
        meta, template = job["metadata"], job["spec"]["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
        return {
            "metadata": {
                "name": f"{meta['name']}-x7k2p",
                "namespace": meta["namespace"],
                "labels": dict(template["metadata"]["labels"]),
                "annotations": dict(template["metadata"].get("annotations", {})),
                "ownerReferences": [owner | {"name": meta["name"], "uid": meta["uid"]}],
            },
            "spec": dict(template["spec"]),
            "status": {"phase": "Pending", "startTime": now()},
        }

    def refuse(self, job: Object, message: str) -> None:
        """Tell that its Pod was refused."""
        meta = job["metadata"]
        event = {
            "metadata": {"name": f"{meta['name']}.1", "namespace": meta["namespace"]},
            "involvedObject": {
                "kind": "Job",
                "name": meta["name"],
                "namespace": meta["namespace"],
                "uid": meta["uid"],
            },
            "reason": "FailedCreate",
            "message": message,
            "type": "Warning",
            "lastTimestamp": now(),
        }
        self.fake.store.create("Event", event)
