"""Where the Jobs are in an API object: the object itself, or what makes Jobs out of a template."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.core.inject.edits import Path, get
from reporter.core.objects import section, text

_WORKFLOWS: Final = {
    "Workflow": ("spec", "templates"),
    "WorkflowTemplate": ("spec", "templates"),
    "ClusterWorkflowTemplate": ("spec", "templates"),
    "CronWorkflow": ("spec", "workflowSpec", "templates"),
}
_WHOLE: Final = ("create", "apply", "replace")
"""What Argo does with a manifest that is a whole object."""


@dataclass(frozen=True, slots=True)
class Found:
    """A Job, or a template of Jobs: `job` leads to its `metadata` and `spec`.

    `at` leads to the object that it is, or is a part of. `shown` is its name for people,
    `namespace` is empty where the manifest has none.
    """

    shown: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    job: Path
    at: Path

    @property
    def pod(self) -> Path:
        """Where the spec of its Pods is."""
        return (*self.job, "spec", "template", "spec")


def jobs(value: Any, at: Path = ()) -> Iterator[Found]:
    """Yield the Jobs of an object, and of all objects of a list."""
    one = get(value, at)
    for path in _members(one, at):
        yield from jobs(value, path)
    group, kind = _type(one)
    spec, name = section(one, "spec"), _name(one)
    if (group, kind) == ("batch", "Job"):
        yield _found(f"job.batch/{name}", value, at)
    elif (group, kind) == ("batch", "CronJob") and isinstance(spec.get("jobTemplate"), Mapping):
        yield _found(f"cronjob.batch/{name}", value, at, ("spec", "jobTemplate"))
    elif (group, kind) == ("jobset.x-k8s.io", "JobSet"):
        for index, each in _listed(spec, "replicatedJobs"):
            shown = f"jobset.jobset.x-k8s.io/{name} ({text(each, 'name')})"
            yield _found(shown, value, at, ("spec", "replicatedJobs", index, "template"))


def manifests(value: Any, at: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield where Argo's workflows have manifests of whole objects as texts, and whose they are."""
    one = get(value, at)
    for path in _members(one, at):
        yield from manifests(value, path)
    group, kind = _type(one)
    if group != "argoproj.io" or kind not in _WORKFLOWS:
        return
    *way, last = _WORKFLOWS[kind]
    for index, template in _listed(section(one, *way), last):
        resource = section(template, "resource")
        if text(resource, "action") in _WHOLE and text(resource, "manifest"):
            shown = f"{kind.lower()}.{group}/{_name(one)} ({text(template, 'name')})"
            yield (*at, *way, last, index, "resource", "manifest"), shown


def _members(one: Any, at: Path) -> Iterator[Path]:
    """Yield where the objects of a list are: `List`, `JobList` and so on."""
    if isinstance(one, Mapping) and text(one, "kind").endswith("List"):
        for index, _ in _listed(one, "items"):
            yield (*at, "items", index)


def _type(one: Any) -> tuple[str, str]:
    if not isinstance(one, Mapping):
        return "", ""
    return text(one, "apiVersion").partition("/")[0], text(one, "kind")


def _listed(value: Mapping[str, Any], key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    found = value.get(key)
    for index, each in enumerate(found if isinstance(found, list) else []):
        if isinstance(each, Mapping):
            yield index, each


def _found(shown: str, value: Any, at: Path, inside: Path = ()) -> Found:
    whole, job = get(value, at), (*at, *inside)
    inner = get(value, job)
    metadata = section(whole, "metadata")
    labels = {**section(metadata, "labels"), **section(inner, "metadata", "labels")}
    return Found(
        shown=shown,
        name=text(metadata, "name"),
        namespace=text(metadata, "namespace"),
        labels={key: value for key, value in labels.items() if isinstance(value, str)},
        job=job,
        at=at,
    )


def _name(whole: Any) -> str:
    """Return an object's name for people; one that the API server will make up ends in a star."""
    metadata = section(whole, "metadata")
    return text(metadata, "name") or f"{text(metadata, 'generateName')}*"
