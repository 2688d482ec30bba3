"""What `deploy/` ships, on the real node: an aggregator with its volume, its Service and its Jobs.

Applied as shipped but for what the bed lacks: a scheduler, a registry, DNS and the service network.
"""

from __future__ import annotations

import copy
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import yaml

from tests.bed.controlplane import ControlPlane
from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE
from tests.bed.service import Service

Object = dict[str, Any]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAME, POD, CONTAINER = "status-aggregator", "status-aggregator-0", "kube-sonobuoy"
STATUS, RUN_STATUS = "sonobuoy.hept.io/status", "status-reporter.io/run-status"
EXPORTED = 'print(open("/data/export/secrets.yaml").read())'
ASK = "import urllib.request as r;print(r.urlopen('http://127.0.0.1:8081/status').read().decode())"
BOUND = 120.0
"""Nothing takes so long unless it hangs."""


def kustomized(controlplane: ControlPlane, folder: Path) -> list[Object]:
    """What kustomize makes of a folder."""
    return list(yaml.safe_load_all(controlplane.kubectl("kustomize", str(folder))))


def with_components(
    controlplane: ControlPlane, folder: Path, form: str, jobs: Iterable[Object]
) -> list[Object]:
    """Jobs with the reporter of a form and its link, by the components of deploy/."""
    (folder / "jobs.yaml").write_text(yaml.safe_dump_all(jobs))
    components = [
        os.path.relpath(DEPLOY / "components" / name, folder) for name in (form, "aggregator-link")
    ]
    document = {"resources": ["jobs.yaml"], "components": components}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return kustomized(controlplane, folder)


class Deployed:
    """An aggregator in a namespace of its own, under the restricted Pod security profile.

    `plan` replaces the example's; without `rights` its Role is left out.
    """

    claim = f"data-{POD}"

    def __init__(
        self, node: Node, folder: Path, *, plan: Object | None = None, rights: bool = True
    ) -> None:
        self.node, self.controlplane, self.api = node, node.controlplane, node.controlplane.api
        self.namespace = f"run-{uuid.uuid4().hex[:6]}"
        self.volume = folder / self.namespace
        self.service = Service(node, self.namespace, NAME)
        example = kustomized(self.controlplane, DEPLOY / "examples" / "run")
        self.jobs = {
            found["metadata"]["name"]: found for found in example if found["kind"] == "Job"
        }
        self.others = [
            found
            for found in example
            if found["kind"] != "Job"
            and (rights or found["metadata"]["name"] != NAME or "Role" not in found["kind"])
        ]
        if plan is not None:
            (holder,) = (found for found in self.others if found["kind"] == "ConfigMap")
            holder["data"]["plan.json"] = json.dumps(plan)
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        """Make the namespace, the volume and the way to the Service; start nothing."""
        try:
            self._prepare()
        except BaseException:
            self._parts.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    def _prepare(self) -> None:
        request = self.controlplane.request
        labels = dict.fromkeys(
            (f"pod-security.kubernetes.io/{mode}" for mode in ("enforce", "warn")), "restricted"
        )
        made = {"metadata": {"name": self.namespace, "labels": labels}}
        request("POST", "/api/v1/namespaces", made)
        self._parts.callback(self._delete)
        for name in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            self.api.wait_for(f"/api/v1/namespaces/{self.namespace}/{name}", bool)
        self.volume.mkdir(parents=True)
        request("POST", "/api/v1/persistentvolumes", self._persistent_volume())
        (service,) = (found for found in self.others if found["kind"] == "Service")
        self.apply([service])
        self._parts.enter_context(self.service)

    def _persistent_volume(self) -> Object:
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [Node.name]}
        claim = {"namespace": self.namespace, "name": self.claim}
        return {
            "metadata": {"name": self.namespace},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": claim,
                "local": {"path": str(self.volume)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }

    def _delete(self) -> None:
        request = self.controlplane.request
        request("DELETE", f"/api/v1/namespaces/{self.namespace}")
        request("DELETE", f"/api/v1/namespaces/{self.namespace}/pods?gracePeriodSeconds=1")
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self.api.wait_for(pods, lambda found: not found or not found["items"], BOUND)
        if self.api.get_or_none(f"/api/v1/persistentvolumes/{self.namespace}"):
            request("DELETE", f"/api/v1/persistentvolumes/{self.namespace}")

    # What is applied

    def fitted(self, found: Object) -> Object:
        """An object as the bed can run it."""
        found = copy.deepcopy(found)
        if found["kind"] not in {"Job", "StatefulSet", "Pod"}:
            return found
        spec = found["spec"] if found["kind"] == "Pod" else found["spec"]["template"]["spec"]
        spec |= {"nodeName": Node.name, "hostAliases": [self.service.alias]}
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            container["imagePullPolicy"] = "Never"
            if "busybox" in container["image"]:
                container["image"] = BUSYBOX_IMAGE
            else:
                container["image"] = PRODUCT_IMAGE
                container["env"] += self.controlplane.service_env()
        return found

    def apply(self, objects: Iterable[Object]) -> None:
        """Apply them here; a warning is an error."""
        text = yaml.safe_dump_all([self.fitted(found) for found in objects])
        self.kubectl("apply", "--warnings-as-errors", "--filename", "-", input=text)

    def hand_out(self) -> None:
        """Make Secrets of the certificates, as the example says."""
        text = self.exec("python3", "-c", EXPORTED)
        self.kubectl("apply", "--filename", "-", input=text)

    def start(self) -> None:
        """Start the aggregator, wait until it is ready, and hand the certificates out."""
        self.apply(self.others)
        self.wait_ready()
        self.hand_out()

    # What is seen

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002
        """The output of kubectl in this namespace."""
        return self.controlplane.kubectl("--namespace", self.namespace, *args, input=input)

    def exec(self, *command: str) -> str:
        """The output of a command in the aggregator's container."""
        return self.kubectl("exec", POD, "--", *command)

    @property
    def pod_path(self) -> str:
        """Where the aggregator's Pod is in the API."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{POD}"

    def wait_ready(self, other_than: str = "") -> Object:
        """The aggregator's Pod once it is ready; `other_than` is the UID of an earlier one."""

        def ready(pod: Object | None) -> bool:
            if pod is None or pod["metadata"]["uid"] == other_than:
                return False
            conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
            return conditions.get("Ready") == "True"

        found: Object = self.api.wait_for(self.pod_path, ready, BOUND)
        return found

    def status(self) -> Object:
        """The run's status, asked from inside the Pod."""
        found: Object = json.loads(self.exec("python3", "-c", ASK))
        return found

    def wait_status(self, wanted: Callable[[dict[str, Object]], Any]) -> Object:
        """The status once its entries, by key, are as wanted."""
        end = time.monotonic() + BOUND
        while True:
            found = self.status()
            if wanted({entry["key"]: entry for entry in found["plugins"]}):
                return found
            assert time.monotonic() < end, json.dumps(found, indent=1)
            time.sleep(0.3)

    def follow(self) -> list[tuple[Object, Object]]:
        """Both annotations as they changed, from the first to that of a final run."""
        shown: list[tuple[Object, Object]] = []

        def final(pod: Object | None) -> bool:
            notes = (pod or {}).get("metadata", {}).get("annotations", {})
            if STATUS in notes:
                now = json.loads(notes[STATUS]), json.loads(notes[RUN_STATUS])
                if not shown or shown[-1] != now:
                    shown.append(now)
            return bool(shown and shown[-1][1]["final"])

        self.api.wait_for(self.pod_path, final, BOUND)
        return shown

    def log(self, pod: str = POD, container: str = CONTAINER) -> list[Object]:
        """What a container has logged, in all its runs."""
        lines, restart = list[Object](), 0
        while found := self.node.logs(self.namespace, pod, container, restart):
            lines += [json.loads(line.text) for line in found]
            restart += 1
        return lines

    def pod_of(self, job: str) -> Object:
        """The Pod of a Job."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=job-name%3D{job}"
        found: Object = self.api.wait_for(path, lambda pods: pods["items"], BOUND)["items"][0]
        return found

    def wait_job(self, name: str) -> dict[str, Object]:
        """The conditions of a Job that has ended."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"

        def ended(job: Object) -> bool:
            kinds = {condition["type"] for condition in job["status"].get("conditions", [])}
            return bool({"Complete", "Failed"} & kinds)

        found = self.api.wait_for(path, ended, BOUND)
        return {condition["type"]: condition for condition in found["status"]["conditions"]}

    def wait_pod_ended(self, name: str) -> dict[str, int]:
        """The exit codes of a Pod's containers once all have ended."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
        ended = self.api.wait_for(
            path, lambda pod: pod["status"].get("phase") in {"Succeeded", "Failed"}, BOUND
        )
        status = ended["status"]
        both = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
        return {found["name"]: found["state"]["terminated"]["exitCode"] for found in both}
