"""deploy/ through the real kustomize and past the real API server."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.bed.controlplane import ControlPlane
from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import Node

pytestmark = pytest.mark.cluster

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
EXAMPLES = sorted(path.name for path in (DEPLOY / "examples").iterdir())
OBJECTS = {"classic": 4, "native": 4, "run": 13, "run-as-job": 15}


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_accepted_under_the_restricted_profile(
    controlplane: ControlPlane, namespace: str, tmp_path: Path, example: str
) -> None:
    """Every object is valid to the letter, and no Pod security warning comes with it.

    The one that brings its namespace is tried in another: a dry run does not make it.
    """
    folder = DEPLOY / "examples" / example
    if example == "run-as-job":
        folder = shutil.copytree(folder, tmp_path / example)
        (folder / "url").write_text("https://store.example/results?signature=x")
    made = controlplane.kubectl("kustomize", str(folder))
    found = [each for each in yaml.safe_load_all(made) if each["kind"] != "Namespace"]
    made = yaml.safe_dump_all(found).replace("status-reporter-example", namespace)
    # Enforcing looks at Pods alone; a warning looks at the Pods that a Job would make.
    controlplane.kubectl(
        "label", "namespace", namespace, "pod-security.kubernetes.io/warn=restricted"
    )
    apply = ("apply", "--namespace", namespace, "--dry-run=server", "--validate=strict")

    answer = controlplane.kubectl(*apply, "--warnings-as-errors", "--filename", "-", input=made)

    assert OBJECTS[example] == len(answer.splitlines()), answer


def test_plain_manifests_are_accepted_after_sed(controlplane: ControlPlane, namespace: str) -> None:
    """What somebody without kustomize applies is valid to the letter and restricted too."""
    controlplane.kubectl(
        "label", "namespace", namespace, "pod-security.kubernetes.io/warn=restricted"
    )
    texts = [path.read_text() for path in sorted((DEPLOY / "plain").iterdir())]
    made = "---\n".join(texts).replace("<namespace>", namespace)
    made = made.replace("<status-reporter-image>", "registry.example.org/status-reporter:1")
    apply = ("apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors")

    answer = controlplane.kubectl(*apply, "--filename", "-", input=made)

    assert 5 == len(answer.splitlines()), answer


def test_an_administrator_of_a_namespace_grants_the_role(
    controlplane: ControlPlane, namespace: str
) -> None:
    """With the ClusterRole that a cluster administrator applies once; without it not."""
    lead = f"system:serviceaccount:{namespace}:lead"
    bound = ("--clusterrole=admin", f"--serviceaccount={namespace}:lead", "-n", namespace)
    controlplane.kubectl("create", "rolebinding", "lead", *bound)
    base, wider = DEPLOY / "base" / "role.yaml", DEPLOY / "base" / "clusterrole.yaml"

    def refused() -> set[tuple[str, str]]:
        """The rights that lead may not grant; the Role is there when there are none."""
        create = ("create", "--as", lead, "-n", namespace, "--filename", str(base))
        try:
            controlplane.kubectl(*create)
        except subprocess.CalledProcessError as error:
            said = "".join(error.__notes__)
            assert "attempting to grant RBAC permissions not currently held" in said, said
            return set(re.findall(r'Resources:\["(.*?)"\], Verbs:\["(.*?)"\]', said))
        return set()

    assert {("jobs/status", "patch"), ("events", "create")} == refused()
    controlplane.kubectl("apply", "--filename", str(wider))
    try:
        # The role admin and the authorizer follow with a delay of their own.
        end = time.monotonic() + 60
        while (left := refused()) and time.monotonic() < end:
            time.sleep(0.1)
        assert set() == left
    finally:
        # Other tests are about the role admin as Kubernetes has it.
        controlplane.kubectl("delete", "--filename", str(wider))
        admin = "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin"
        controlplane.api.wait_for(admin, lambda found: "events.k8s.io" not in str(found["rules"]))


def test_the_monitoring_kit_is_accepted(controlplane: ControlPlane, namespace: str) -> None:
    """What needs no operator; the rest of it is there as well."""
    folder = DEPLOY / "monitoring"
    made = [
        each
        for part in (folder, folder / "kube-state-metrics")
        for each in yaml.safe_load_all(controlplane.kubectl("kustomize", str(part)))
    ]
    known = [each for each in made if not each["apiVersion"].startswith("monitoring.coreos.com/")]
    apply = ("apply", "--namespace", namespace, "--dry-run=server", "--validate=strict")
    text = yaml.safe_dump_all(known).replace("namespace: monitoring", f"namespace: {namespace}")

    answer = controlplane.kubectl(*apply, "--warnings-as-errors", "--filename", "-", input=text)

    assert (6, 5) == (len(answer.splitlines()), len(made) - len(known)), answer


@pytest.mark.parametrize(
    ("form", "containers"), [("native", "initContainers"), ("classic", "containers")]
)
def test_reporter_is_added_first(
    controlplane: ControlPlane, tmp_path: Path, form: str, containers: str
) -> None:
    """Before the Job's own containers: the kubelet starts them in order, and pulls can hang."""
    job = yaml.safe_load((DEPLOY / "examples" / form / "job.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    pod["initContainers"] = [{"name": "prepare", "image": "prepare"}]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    (tmp_path / "component").mkdir()
    for file in (DEPLOY / "components" / form).iterdir():
        (tmp_path / "component" / file.name).write_text(file.read_text())
    (tmp_path / "kustomization.yaml").write_text("resources: [job.yaml]\ncomponents: [component]\n")

    made = yaml.safe_load(controlplane.kubectl("kustomize", str(tmp_path)))

    names = [container["name"] for container in made["spec"]["template"]["spec"][containers]]
    own = [container["name"] for container in pod[containers]]
    assert ["status-reporter", *own] == names


def test_a_job_without_the_label_is_left_alone(controlplane: ControlPlane, tmp_path: Path) -> None:
    """Only a Job that asks for a reporter gets one."""
    job = yaml.safe_load((DEPLOY / "examples" / "native" / "job.yaml").read_text())
    del job["metadata"]["labels"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    (tmp_path / "component").mkdir()
    for file in (DEPLOY / "components" / "native").iterdir():
        (tmp_path / "component" / file.name).write_text(file.read_text())
    (tmp_path / "kustomization.yaml").write_text("resources: [job.yaml]\ncomponents: [component]\n")

    made = yaml.safe_load(controlplane.kubectl("kustomize", str(tmp_path)))

    assert job == made


@pytest.mark.node
@pytest.mark.parametrize(
    ("form", "containers"), [("native", "initContainers"), ("classic", "containers")]
)
def test_example_reports_its_result(
    controlplane: ControlPlane,
    product_image: str,
    namespace: str,
    form: str,
    containers: str,
) -> None:
    """Applied as shipped, but for the images and the way to the API, the Job tells its result."""
    made = controlplane.kubectl("kustomize", str(DEPLOY / "examples" / form))
    objects = list(yaml.safe_load_all(made))
    (job,) = (found for found in objects if found["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]
    reporter, adapter = pod[containers][0], pod["containers"][-1]
    # No scheduler, no registry, no service network on the bed.
    pod["nodeName"] = Node.name
    reporter["image"] = product_image
    reporter["env"] += controlplane.service_env()
    adapter["image"] = BUSYBOX_IMAGE
    for container in (reporter, adapter):
        container["imagePullPolicy"] = "Never"

    controlplane.kubectl(
        "apply", "--namespace", namespace, "--filename", "-", input=yaml.safe_dump_all(objects)
    )

    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{job['metadata']['name']}"
    ended = controlplane.api.wait_for(path, lambda found: found["status"].get("completionTime"))
    conditions = {found["type"]: found for found in ended["status"]["conditions"]}
    assert ("True", "Greeted", "Hello from the adapter") == tuple(
        conditions["Available"][field] for field in ("status", "reason", "message")
    )
