"""Where the Jobs are in an API object: the object itself, or what makes Jobs out of a template."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.core.inject.edits import Path, get
from reporter.core.objects import section, text

_WORKFLOWS: Final[Mapping[str, Path]] = {
    "Workflow": ("spec",),
    "WorkflowTemplate": ("spec",),
    "ClusterWorkflowTemplate": ("spec",),
    "CronWorkflow": ("spec", "workflowSpec"),
}
_WHOLE: Final = ("create", "apply", "replace")
"""What Argo does with a manifest that is a whole object."""


@dataclass(frozen=True, slots=True)
class FoundJob:
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


def jobs(value: Any, at: Path = ()) -> Iterator[FoundJob]:
    """Yield the Jobs of the object that is at `at`, and of all objects of a list."""
    for one, place in objects_in(get(value, at), at):
        group, kind = _type(one)
        spec, name = section(one, "spec"), _name(one)
        if (group, kind) == ("batch", "Job"):
            yield _found(f"job.batch/{name}", one, place)
        elif (group, kind) == ("batch", "CronJob") and isinstance(spec.get("jobTemplate"), Mapping):
            yield _found(f"cronjob.batch/{name}", one, place, ("spec", "jobTemplate"))
        elif (group, kind) == ("jobset.x-k8s.io", "JobSet"):
            for index, each in _listed(spec, "replicatedJobs"):
                shown = f"jobset.jobset.x-k8s.io/{name} ({text(each, 'name')})"
                yield _found(shown, one, place, ("spec", "replicatedJobs", index, "template"))


def manifests(value: Any) -> Iterator[tuple[Path, str]]:
    """Yield where Argo's workflows have manifests of whole objects as texts, and whose they are."""
    for one, place in objects_in(value):
        group, kind = _type(one)
        if group != "argoproj.io" or kind not in _WORKFLOWS:
            continue
        for path, template, name in _templates(get(one, _WORKFLOWS[kind])):
            resource = section(template, "resource")
            if text(resource, "action") in _WHOLE and text(resource, "manifest"):
                shown = f"{kind.lower()}.{group}/{_name(one)} ({name})"
                yield (*place, *_WORKFLOWS[kind], *path, "resource", "manifest"), shown


def objects_in(value: Any, place: Path = ()) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Yield the objects of a value that is at `place`, those of a list one by one, also of lists.

    `List`, `JobList` and so on are lists.
    """
    if not isinstance(value, Mapping):
        return
    listed = value.get("items")
    if text(value, "kind").endswith("List") and isinstance(listed, list):
        for at, each in enumerate(listed):
            yield from objects_in(each, (*place, "items", at))
    else:
        yield value, place


def _type(one: Mapping[str, Any]) -> tuple[str, str]:
    return text(one, "apiVersion").partition("/")[0], text(one, "kind")


def _templates(spec: Any) -> Iterator[tuple[Path, Mapping[str, Any], str]]:
    """Yield a workflow's templates with their paths and names, also those within others' steps."""
    defaults = "templateDefaults"
    yield from _with_inline(section(spec, defaults), (defaults,), defaults)
    for index, each in _listed(section(spec), "templates"):
        yield from _with_inline(each, ("templates", index), text(each, "name"))


def _with_inline(
    template: Mapping[str, Any], at: Path, name: str
) -> Iterator[tuple[Path, Mapping[str, Any], str]]:
    yield at, template, name
    steps = _steps(template.get("steps"), (*at, "steps"))
    tasks = _steps(section(template, "dag").get("tasks"), (*at, "dag", "tasks"))
    for path, step in (*steps, *tasks):
        yield from _with_inline(section(step, "inline"), (*path, "inline"), text(step, "name"))


def _steps(value: Any, at: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the steps of a list, or of a list of lists that are one after another."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _steps(each, (*at, index))
    elif isinstance(value, Mapping):
        yield at, value


def _listed(value: Mapping[str, Any], key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    found = value.get(key)
    for index, each in enumerate(found if isinstance(found, list) else []):
        if isinstance(each, Mapping):
            yield index, each


def _found(shown: str, whole: Any, at: Path, inside: Path = ()) -> FoundJob:
    metadata = section(whole, "metadata")
    labels = {**section(metadata, "labels"), **section(get(whole, inside), "metadata", "labels")}
    return FoundJob(
        shown=shown,
        name=text(metadata, "name"),
        namespace=text(metadata, "namespace"),
        labels={key: value for key, value in labels.items() if isinstance(value, str)},
        job=(*at, *inside),
        at=at,
    )


def _name(whole: Any) -> str:
    """Return an object's name for people; one that the API server will make up ends in a star."""
    metadata = section(whole, "metadata")
    return text(metadata, "name") or f"{text(metadata, 'generateName')}*"
