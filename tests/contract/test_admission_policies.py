"""deploy/admission, asked of the real API server: which Jobs it refuses, and what it says.

Everything but the policies, their namespaces and accounts is a dry run.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed.api import ApiError
from tests.bed.controlplane import ControlPlane
from tests.contract.labelled_jobs import (
    ADMISSION,
    as_created,
    changed,
    injected,
    left_alone,
    plain,
)
from tests.unit.lint.manifests import (
    Change,
    all_of,
    container,
    cron_job,
    env,
    field,
    job,
    pod_of,
    reporter,
    spec,
)

pytestmark = pytest.mark.cluster

LABEL = "test.status-reporter.io/admission"


def policies(file: str) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all((ADMISSION / file).read_text())


class Admission:
    """A namespace that the policies of some files are bound to, and no other."""

    def __init__(self, bed: ControlPlane, *files: str, actions: Sequence[str] = ()) -> None:
        self.namespace = f"admission-{uuid.uuid4().hex[:8]}"
        self._bed = bed
        self._paths = [f"/api/v1/namespaces/{self.namespace}"]
        meta = {"name": self.namespace, "labels": {LABEL: self.namespace}}
        bed.request("POST", "/api/v1/namespaces", {"metadata": meta})
        selector = {"namespaceSelector": {"matchLabels": {LABEL: self.namespace}}}
        for each in (made for file in files for made in policies(file)):
            each["metadata"]["name"] += f".{self.namespace}"
            plural = each["kind"].lower() + "s"
            if each["kind"].endswith("Binding"):
                each["spec"]["policyName"] += f".{self.namespace}"
                each["spec"]["matchResources"] = selector
                if "validationActions" in each["spec"]:
                    each["spec"]["validationActions"] = actions
            path = f"/apis/{each['apiVersion']}/{plural.replace('policys', 'policies')}"
            bed.request("POST", path, each)
            self._paths.append(f"{path}/{each['metadata']['name']}")

    def end(self) -> None:
        for path in self._paths:
            self._bed.request("DELETE", path)

    def created(self, value: dict[str, Any]) -> dict[str, Any]:
        """Create it as a dry run; return what it becomes, but for what is new each time."""
        return as_created(self._bed, self.namespace, value)

    def refusal(self, value: dict[str, Any]) -> str:
        """Create it as a dry run; return why it is refused, or nothing."""
        plural = "cronjobs" if value["kind"] == "CronJob" else "jobs"
        path = f"/apis/batch/v1/namespaces/{self.namespace}/{plural}?dryRun=All"
        value["metadata"]["namespace"] = self.namespace
        try:
            self._bed.request("POST", path, value)
        except ApiError as error:
            return str(error)
        return ""


def valid(form: str, *changes: Change) -> dict[str, Any]:
    """A Job that the API server accepts, with these changes."""
    value = job(form)
    spec_of = pod_of(value)
    spec_of["volumes"][1]["projected"] = {"sources": []}
    for each in [*spec_of["initContainers"], *spec_of["containers"]]:
        each["image"] = "x"
    all_of(*changes)(value)
    for each in [*spec_of["initContainers"], *spec_of["containers"]]:
        each.setdefault("image", "x")
    return value


def wait_for(ready: Callable[[], object], seconds: float = 60) -> None:
    """Return once it is so: the API server follows policies and rights with a delay of its own."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def reversed_containers(value: dict[str, Any]) -> None:
    pod_of(value)["containers"].reverse()


def another_reporter(value: dict[str, Any]) -> None:
    pod_of(value)["containers"].insert(0, reporter("classic", name="second"))


def alone(value: dict[str, Any]) -> None:
    del pod_of(value)["containers"][1:]


def nothing(_: dict[str, Any]) -> None:
    """Change nothing."""


def knows_its_job(value: dict[str, Any]) -> None:
    """Give the adapter, which is the last container, the variables that a reporter has."""
    names = ("JOB_NAME", "JOB_NAMESPACE", "POD_NAME")
    pod_of(value)["containers"][-1]["env"] = [{"name": name, "value": "x"} for name in names]


SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
REFUSED = [
    ("native", container(restartPolicy=None), "needs restartPolicy: Always"),
    ("classic", reversed_containers, "list the reporter first"),
    ("native", spec(activeDeadlineSeconds=300), "must be less than activeDeadlineSeconds"),
    ("native", env(MAX_WAIT_TIME_SECONDS="600"), "must be less than activeDeadlineSeconds"),
    ("native", env(POD_NAME=None), "needs JOB_NAME, JOB_NAMESPACE and POD_NAME"),
    ("native", env(MAX_WAIT_TIME_SECONDS="5m"), "must be a positive integer"),
    ("native", env(MAX_WAIT_TIME_SECONDS="0"), "must be a positive integer"),
    ("native", env(CONDITION_TYPE="Complete"), "not be a condition of Kubernetes' own"),
    ("native", another_reporter, "its own CONDITION_TYPE"),
    ("classic", env(REPORTER_FORM="native"), "REPORTER_FORM is not the form"),
    ("native", env(REPORTER_FORM="classic"), "REPORTER_FORM is not the form"),
    (
        "native",
        container(livenessProbe={"httpGet": {"path": "/livez", "port": 9464}}),
        "a liveness probe can kill",
    ),
    ("classic", alone, "no container besides the reporter"),
]
ACCEPTED = [
    ("native", nothing),
    ("classic", nothing),
    ("native", knows_its_job),
    ("classic", knows_its_job),
    ("native", all_of(knows_its_job, container(name="verdict"))),
    ("native", env(MAX_WAIT_TIME_SECONDS="599", CONDITION_TYPE="")),
    ("native", env(MAX_WAIT_TIME_SECONDS=SECRET, CONDITION_TYPE=SECRET)),
    ("native", all_of(spec(activeDeadlineSeconds=None), env(MAX_WAIT_TIME_SECONDS="$(WAIT)"))),
    (
        "native",
        all_of(env(JOB_NAME=None), container(envFrom=[{"configMapRef": {"name": "c"}}])),
    ),
    ("native", env(JOB_NAME=field("metadata.labels['batch.kubernetes.io/job-name']"))),
    ("native", all_of(another_reporter, env(CONDITION_TYPE="Other"))),
    (
        "native",
        lambda value: pod_of(value).update(
            initContainers=[{"name": "other", "livenessProbe": None}]
        ),
    ),
]


@pytest.fixture(scope="module")
def denying(controlplane: ControlPlane) -> Iterator[Admission]:
    """The policy, once it is applied."""
    admission = Admission(controlplane, "validate.yaml", actions=["Deny"])
    bad = valid("native", spec(activeDeadlineSeconds=1))
    try:
        wait_for(lambda: admission.refusal(bad))
        yield admission
    finally:
        admission.end()


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_what_is_refused(denying: Admission, kind: str) -> None:
    """Each mistake with its own words, in the Job and in what makes it."""
    for form, change, words in REFUSED:
        value = valid(form, change)
        value = cron_job(value) if kind == "CronJob" else value

        assert words in denying.refusal(value), words


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_what_is_not_refused(denying: Admission, kind: str) -> None:
    """What is right, what cannot be seen, and what has no reporter."""
    for at, (form, change) in enumerate(ACCEPTED):
        value = valid(form, change)
        value = cron_job(value) if kind == "CronJob" else value

        assert "" == denying.refusal(value), at


def test_an_account_without_the_right(controlplane: ControlPlane) -> None:
    """Refused where the binding says so; the rights count that the account has by then."""
    admission = Admission(controlplane, "validate-rights.yaml", actions=["Deny"])
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{admission.namespace}"
    deploy = ADMISSION.parent / "base"
    try:
        wait_for(lambda: admission.refusal(valid("native")))
        assert "no permission to get and patch jobs/status" in admission.refusal(valid("native"))
        assert "no permission to get and patch jobs/status" in admission.refusal(
            cron_job(valid("native"))
        )
        unconcerned = valid("native")
        pod_of(unconcerned)["initContainers"] = []
        assert "" == admission.refusal(unconcerned)

        role = yaml.safe_load((deploy / "role.yaml").read_text())
        binding = yaml.safe_load((deploy / "rolebinding.yaml").read_text())
        binding["subjects"][0] |= {"name": "checks", "namespace": admission.namespace}
        controlplane.request("POST", f"{rbac}/roles", role)
        controlplane.request("POST", f"{rbac}/rolebindings", binding)

        wait_for(lambda: not admission.refusal(valid("native")))
        assert "" == admission.refusal(cron_job(valid("native")))
        # The API server fills in the name before the policy sees the Job.
        by_the_older_name = valid("native")
        pod_of(by_the_older_name)["serviceAccount"] = "checks"
        del pod_of(by_the_older_name)["serviceAccountName"]
        assert "" == admission.refusal(by_the_older_name)
        assert "" == admission.refusal(cron_job(by_the_older_name))
    finally:
        admission.end()


def test_the_mutating_policy_does_what_inject_does(
    controlplane: ControlPlane, tmp_path: Path
) -> None:
    """The same Job, whether its manifest was changed or it was changed on its way in."""
    situations = changed()
    untouched = [as_created(controlplane, "default", value) for value in left_alone()]
    admission = Admission(controlplane, "mutate.yaml")
    try:
        wait_for(
            lambda: (
                "status-reporter.io/injected"
                in admission.created(situations[0])["metadata"].get("annotations", {})
            )
        )
        for value in situations:
            assert admission.created(injected(value, tmp_path)) == admission.created(value)
        assert untouched == [admission.created(value) for value in left_alone()]
    finally:
        admission.end()


def test_a_labelled_job_that_has_no_reporter(controlplane: ControlPlane, tmp_path: Path) -> None:
    """Told where no policy has added it; a warning, for the Job can run without one."""
    words = "the Job has the label status-reporter.io/inject but no reporter"
    *_, binding = policies("validate.yaml")
    assert ["Warn"] == binding["spec"]["validationActions"]
    disabled, *others = left_alone()
    with_reporter = others[-2:]
    unlabelled = plain("native", None)
    del unlabelled["metadata"]["labels"]
    admission = Admission(controlplane, "validate.yaml", "mutate.yaml", actions=["Deny"])
    try:
        wait_for(lambda: words in admission.refusal(plain("native", 1)))
        wait_for(lambda: not admission.refusal(changed()[0]))
        for value in [*others[:-2], plain("nativ", None), plain("", None)]:
            assert words in admission.refusal(value)
        made = [injected(value, tmp_path) for value in changed()]
        for value in [disabled, unlabelled, *with_reporter, *changed(), *made]:
            assert words not in admission.refusal(value)
        assert "" == admission.refusal(cron_job(plain("native", 1)))
    finally:
        admission.end()
