"""A Job with a reporter that nothing is wrong with, and what can be done to it."""

from collections.abc import Callable, Mapping
from typing import Any

from reporter.inject.command import variables
from reporter.lint.case import Finding, World
from reporter.lint.jobs import read_jobs
from reporter.lint.rights import Rights
from reporter.lint.rules import findings
from reporter.sidecar.settings import Settings

Change = Callable[[dict[str, Any]], Any]


def field(path: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def reporter(form: str = "native", **more: Any) -> dict[str, Any]:
    """The container as deploy/components have it."""
    native = {"restartPolicy": "Always"} if form == "native" else {}
    env = {
        "REPORTER_FORM": {"value": form},
        "JOB_NAME": field("metadata.labels['job-name']"),
        "JOB_NAMESPACE": field("metadata.namespace"),
        "POD_NAME": field("metadata.name"),
    }
    return {
        "name": "status-reporter",
        "image": "status-reporter",
        "env": [{"name": name, **source} for name, source in env.items()],
        "resources": {"limits": {"memory": "64Mi"}},
        "volumeMounts": [
            {"name": "results", "mountPath": "/results", "readOnly": True},
            {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        **native,
        **more,
    }


def job(form: str = "native") -> dict[str, Any]:
    """A Job of this form that has no findings."""
    adapter = {"name": "adapter", "volumeMounts": [{"name": "results", "mountPath": "/results"}]}
    native = form == "native"
    pod = {
        "restartPolicy": "Never",
        "serviceAccountName": "checks",
        "automountServiceAccountToken": False,
        "initContainers": [reporter()] if native else [],
        "containers": [adapter] if native else [reporter("classic"), adapter],
        "volumes": [{"name": "results", "emptyDir": {}}, {"name": "token", "projected": {}}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "nightly", "namespace": "team"},
        "spec": {"activeDeadlineSeconds": 600, "backoffLimit": 0, "template": {"spec": pod}},
    }


def cron_job(inner: dict[str, Any]) -> dict[str, Any]:
    """The CronJob that makes such Jobs."""
    template = {"spec": inner["spec"]}
    return inner | {"kind": "CronJob", "spec": {"schedule": "@daily", "jobTemplate": template}}


def job_set(inner: dict[str, Any], *replicas: int | None) -> dict[str, Any]:
    """The JobSet `nightly` of parts `part0`, `part1`..., each such a Job so many times."""
    parts = [
        {"name": f"part{at}", "template": {"spec": inner["spec"]}}
        | ({} if count is None else {"replicas": count})
        for at, count in enumerate(replicas)
    ]
    version = "jobset.x-k8s.io/v1alpha2"
    return inner | {"kind": "JobSet", "apiVersion": version, "spec": {"replicatedJobs": parts}}


def pod_of(value: dict[str, Any]) -> dict[str, Any]:
    return value["spec"]["template"]["spec"]


def own(value: dict[str, Any]) -> dict[str, Any]:
    """The reporter's container."""
    everyone = [*pod_of(value)["initContainers"], *pod_of(value)["containers"]]
    return next(each for each in everyone if each["name"] == "status-reporter")


def env(**values: Any) -> Change:
    """Set variables of the reporter; None takes one away."""

    def change(value: dict[str, Any]) -> None:
        container = own(value)
        kept = [each for each in container["env"] if each["name"] not in values]
        added = [
            {"name": name, **(given if isinstance(given, dict) else {"value": given})}
            for name, given in values.items()
            if given is not None
        ]
        container["env"] = kept + added

    return change


def spec(**values: Any) -> Change:
    """Set fields of the Job's spec."""
    return lambda value: value["spec"].update(values)


def pod(**values: Any) -> Change:
    """Set fields of the Pod's spec."""
    return lambda value: pod_of(value).update(values)


def container(**values: Any) -> Change:
    """Set fields of the reporter's container."""
    return lambda value: own(value).update(values)


def all_of(*changes: Change) -> Change:
    """Do one after the other."""
    return lambda value: [change(value) for change in changes]


def lint(
    value: Mapping[str, Any], *objects: dict[str, Any], denied: Any = None, elsewhere: str = ""
) -> list[Finding]:
    """Apply all rules to a Job; `objects` are the others of the files."""
    (read,) = read_jobs(value, (), elsewhere)
    kinds: dict[str, list[Any]] = {}
    for each in objects:
        kinds.setdefault(each["kind"], []).append(each)
    return findings(read, World(Settings.complaints, Rights(kinds), denied or {}, variables()))


def ids(found: list[Finding]) -> list[str]:
    return [each.rule.id for each in found]
