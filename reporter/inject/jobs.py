"""Where the Jobs are in an API object: the object itself, or what makes Jobs out of a template."""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from reporter.common.objects import Object, Place, section, text
from reporter.inject.hooks import Hook, hook_of


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A Job, or a template of Jobs: `job` leads to its `metadata` and `spec`.

    `at` leads to the object that it is, or is a part of. `shown` is its name for people,
    `namespace` is empty where the manifest has none. `inherited` are the labels of what makes it,
    `hook` says when Helm creates that.
    """

    shown: str
    name: str
    namespace: str
    inherited: Mapping[str, str]
    hook: Hook
    job: Place
    at: Place


def get(value: Any, place: Place) -> Any:
    """Return what is at a place; None where nothing is."""
    for step in place:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def put(value: Any, place: Place, new: Any) -> Any:
    """Return a value with another part; the two share all the rest."""
    if not place:
        return new
    made = copy(value)
    made[place[0]] = put(value[place[0]], place[1:], new)
    return made


def jobs(value: Any) -> Iterator[FoundJob]:
    """Yield the Jobs of an object, and of all objects of a list."""
    for one, place in objects_in(value):
        group, kind = text(one, "apiVersion").partition("/")[0], text(one, "kind")
        spec, name = section(one, "spec"), name_of(one)
        if (group, kind) == ("batch", "Job"):
            yield _found(f"job.batch/{name}", one, place)
        elif (group, kind) == ("batch", "CronJob") and isinstance(spec.get("jobTemplate"), Mapping):
            yield _found(f"cronjob.batch/{name}", one, place, ("spec", "jobTemplate"))
        elif (group, kind) == ("jobset.x-k8s.io", "JobSet"):
            parts = spec.get("replicatedJobs")
            for at, each in enumerate(parts if isinstance(parts, list) else ()):
                if isinstance(each, Mapping):
                    shown = f"jobset.jobset.x-k8s.io/{name} ({text(each, 'name')})"
                    yield _found(shown, one, place, ("spec", "replicatedJobs", at, "template"))


def objects_in(value: Any, place: Place = ()) -> Iterator[tuple[Object, Place]]:
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


def name_of(whole: Object) -> str:
    """Return an object's name for people; one that the API server will make up ends in a star."""
    metadata = section(whole, "metadata")
    return text(metadata, "name") or f"{text(metadata, 'generateName')}*"


def labels_of(job: Any, found: FoundJob) -> dict[str, str]:
    """Return the labels of a Job, which count before those of what makes it."""
    own = {**found.inherited, **section(job, "metadata", "labels")}
    return {key: value for key, value in own.items() if isinstance(value, str)}


def _found(shown: str, whole: Object, at: Place, inside: Place = ()) -> FoundJob:
    metadata = section(whole, "metadata")
    return FoundJob(
        shown=shown,
        name=text(metadata, "name"),
        namespace=text(metadata, "namespace"),
        inherited=section(metadata, "labels") if inside else {},
        hook=hook_of(whole),
        job=(*at, *inside),
        at=at,
    )
