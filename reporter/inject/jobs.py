"""Where the Jobs are in an API object: the object itself, or what makes Jobs out of a template."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reporter.common.objects import section, text
from reporter.inject.edits import Path, get


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
