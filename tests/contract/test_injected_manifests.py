"""What `inject` makes of manifests of all shapes is valid to the letter for a real API server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reporter.common.kubernetes_yaml import split
from reporter.inject.container import Wishes
from reporter.inject.editing import read
from reporter.inject.jobs import get, jobs
from reporter.inject.stream import injected
from reporter.verdict.facts import Form
from tests.bed.api import ApiError
from tests.bed.controlplane import ControlPlane
from tests.contract.labelled_jobs import RESTRICTED
from tests.manifests.collected import NAMELESS, SHAPES, UNCHANGED
from tests.manifests.generated import COUNT, generated

pytestmark = pytest.mark.cluster

REST = {"Job": "jobs", "CronJob": "cronjobs"}
WISHES = [
    Wishes("registry.example/status-reporter:1"),
    Wishes("registry.example/status-reporter:1", Form.CLASSIC, aggregator="status-aggregator"),
]


def everything(labels: Any) -> bool:
    return True


def batch_objects(stream: str) -> Iterator[dict[str, Any]]:
    """Yield Jobs and CronJobs; of other kinds the Jobs that they make."""
    for piece in split(stream.removeprefix("\ufeff")):
        value = read(piece).value
        for found in jobs(value):
            job = get(value, found.job)
            if job.get("kind") == "Job":
                yield job
            elif found.shown.startswith("cronjob"):
                yield get(value, found.job[:-2])
            else:
                metadata = {"name": "inner", **(job.get("metadata") or {})}
                yield {"apiVersion": "batch/v1", "kind": "Job", **job, "metadata": metadata}


def dry_run(controlplane: ControlPlane, namespace: str, stream: str) -> int:
    """Create everything, but not really. Return how many objects there were."""
    count = 0
    for value in batch_objects(stream):
        path = f"/apis/batch/v1/namespaces/{namespace}/{REST[value['kind']]}"
        metadata = {**value["metadata"], "namespace": namespace}
        query = "dryRun=All&fieldValidation=Strict&fieldManager=test"
        controlplane.request("POST", f"{path}?{query}", {**value, "metadata": metadata})
        count += 1
    return count


@pytest.mark.parametrize("wishes", WISHES, ids=["native", "classic with an aggregator"])
def test_collected_shapes(controlplane: ControlPlane, namespace: str, wishes: Wishes) -> None:
    """The shapes are valid before, and with the reporter in them."""
    count = 0
    for name, stream in SHAPES.items():
        before = dry_run(controlplane, namespace, stream)
        made = injected(stream, wishes, everything)
        unchanged = UNCHANGED | NAMELESS if wishes.aggregator else UNCHANGED
        assert (name in unchanged) == (made.text == stream), name
        assert before == dry_run(controlplane, namespace, made.text), name
        count += before
    assert count > len(SHAPES)


def test_generated_streams(controlplane: ControlPlane, namespace: str) -> None:
    """The same for streams that nobody has thought of."""
    count = 0
    for seed in range(COUNT):
        stream = generated(seed)
        before = dry_run(controlplane, namespace, stream)
        made = injected(stream, WISHES[seed % 2], everything)
        assert before == dry_run(controlplane, namespace, made.text), seed
        count += before
    assert count > COUNT


def test_a_cpu_limit_keeps_the_class_of_a_pod_and_a_quota(
    controlplane: ControlPlane, namespace: str
) -> None:
    """The class is the API server's own word; a quota on limits.cpu wants a limit of everyone."""
    base = f"/api/v1/namespaces/{namespace}"
    whole = {"limits": {"cpu": "1", "memory": "64Mi"}}
    adapter = {"name": "main", "image": "i", "securityContext": RESTRICTED, "resources": whole}
    spec = {"restartPolicy": "Never", "containers": [adapter]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    stream = json.dumps(job | {"spec": {"template": {"spec": spec}}})

    def create(limit: str) -> Any:
        made = injected(stream, replace(WISHES[0], cpu_limit=limit), everything)
        template = json.loads(made.text)["spec"]["template"]
        pod = {"metadata": {"name": "j", "labels": {"job-name": "j"}}, "spec": template["spec"]}
        return controlplane.request("POST", f"{base}/pods?dryRun=All", pod)["status"]["qosClass"]

    assert ("Burstable", "Guaranteed") == (create(""), create("500m"))
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"limits.cpu": "4"}}}
    controlplane.request("POST", f"{base}/resourcequotas", quota)
    controlplane.api.wait_for(
        f"{base}/resourcequotas/q", lambda seen: seen["status"].get("hard"), seconds=60
    )
    with pytest.raises(ApiError, match=r"must specify limits\.cpu for: status-reporter"):
        create("")
    assert "Guaranteed" == create("500m")
