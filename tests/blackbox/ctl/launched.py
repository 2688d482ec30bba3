"""What a cluster's controllers do for a run that is created on the fake API server."""

from __future__ import annotations

import json
import threading
from typing import Any, Self

from tests.blackbox.ctl.cluster import RUN_ANNOTATION, STATUS_ANNOTATION
from tests.fakekube import FakeKube, Rule, make_job, make_pod
from tests.fakekube.answers import ApiError

RUN_LABEL = "status-reporter.io/run"
VIEW = (
    Rule(("get", "list"), ("configmaps",)),
    Rule(("get", "list"), ("jobs",), groups=("batch",)),
    Rule(("get", "list"), ("statefulsets",), groups=("apps",)),
)
"""What the role `view` lets a person read of a run."""


class Controllers:
    """Gives namespaces their account, and aggregators their Pod, ready and with `annotations`.

    Without `ready` the Pod is as the API server makes it. It has `ended`, if that is an exit code,
    and so has the Job. Services for access from outside have the port `exposed` of this machine; a
    load balancer never gets an address.
    """

    def __init__(self, fake: FakeKube, *, ready: bool = True, exposed: int | None = None) -> None:
        self._fake, self._ready, self._exposed = fake, ready, exposed
        self.annotations: dict[str, str] = {}
        self.ended: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._fake.noted()
        self._thread.join()

    def _work(self) -> None:
        store = self._fake.store
        while not self._stop.is_set():
            with self._fake.changed:
                for found in store.find("Namespace", None):
                    account = {"metadata": {"name": "default", "namespace": name_of(found)}}
                    self._create("ServiceAccount", account)
                for found in store.find("Job", None):
                    self._create("Pod", self._pod(found))
                    if self.ended is not None and "conditions" not in found.get("status", {}):
                        meta = found["metadata"]
                        store.update("Job", meta["namespace"], meta["name"], self._over)
                for found in store.find("Service", None):
                    self._allot(found)
                self._fake.changed.wait(0.05)

    def _create(self, kind: str, wanted: dict[str, Any]) -> None:
        try:
            self._fake.store.create(kind, wanted)
        except ApiError:
            return  # it is there

    def _allot(self, service: dict[str, Any]) -> None:
        spec, meta = service.get("spec", {}), service["metadata"]
        if spec.get("type") != "NodePort" or "nodePort" in spec["ports"][0]:
            return
        ports = [spec["ports"][0] | {"nodePort": self._exposed}]
        spec = spec | {"ports": ports}
        self._fake.store.update(
            "Service", meta["namespace"], meta["name"], lambda found: found | {"spec": spec}
        )

    def _over(self, job: dict[str, Any]) -> dict[str, Any]:
        kind = "Failed" if self.ended else "Complete"
        conditions = [{"type": kind, "status": "True", "message": "the Pod has ended"}]
        return job | {"status": {"conditions": conditions}}

    def _pod(self, owner: dict[str, Any]) -> dict[str, Any]:
        meta = owner["metadata"]
        pod = make_pod(
            make_job(namespace=meta["namespace"]),
            name=f"{meta['name']}-x7d2k",
            annotations=dict(self.annotations),
        )
        pod["metadata"].pop("uid", None)
        pod["metadata"]["labels"] = dict(owner["spec"]["template"]["metadata"]["labels"])
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"]}
            | {"uid": meta["uid"], "controller": True}
        ]
        pod["status"]["hostIP"] = "127.0.0.1"
        if self._ready:
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        if self.ended is not None:
            state = {"terminated": {"exitCode": self.ended}}
            pod["status"] = {
                "phase": "Failed" if self.ended else "Succeeded",
                "containerStatuses": [{"name": "kube-sonobuoy", "state": state}],
            }
        return pod


def name_of(found: dict[str, Any]) -> str:
    """Return an object's name."""
    return str(found["metadata"]["name"])


def shown(status: str, *plugins: dict[str, Any], final: bool = True, **more: Any) -> dict[str, str]:
    """Return the annotations of an aggregator whose run is like this."""
    ours = {"run": "first", "status": status, "final": final, "result_status": "", **more}
    theirs = {"plugins": list(plugins) or None, "status": status, "tar-info": {"name": ""}}
    return {STATUS_ANNOTATION: json.dumps(theirs), RUN_ANNOTATION: json.dumps(ours)}


def standing(fake: FakeKube, run: str) -> list[str]:
    """Return what has the run's label, as KIND/NAME."""
    return sorted(
        f"{kind}/{name}"
        for kind, _, name in list(fake.store._objects)
        for found in [fake.store._objects[kind, _, name]]
        if found["metadata"].get("labels", {}).get(RUN_LABEL) == run
    )
