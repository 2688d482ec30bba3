"""Runs of which only a part is there, as after a `run` or a `delete` that was killed.

The ConfigMap is created first and deleted last, the namespace that a run makes even before and
after it. Only their metadata is read: a plan can have a megabyte.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reporter.cli.cluster import TIMEOUT
from reporter.common.objects import moment, section, text
from reporter.errors import Forbidden, NotFound
from reporter.kube.resources import Resource
from reporter.run.names import PART_OF, RUN_LABEL
from reporter.runctl.spec import CREATED_BY, EVERY_RUN

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_PLANS: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_MADE: Final = ",".join([*(f"{key}={value}" for key, value in PART_OF.items()), RUN_LABEL])

Metadata = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """Something of a run; `created_at` is Unix seconds, `going` whether it is being deleted."""

    namespace: str
    run: str
    created_at: float | None
    going: bool


def traces(api: "KubeApi", namespace: str | None) -> Iterator[Trace]:
    """Yield plans and namespaces of runs; `namespace` None means all. Raises KubeError.

    A user without permission to see them sees none.
    """
    from reporter.kube.reading import Ask

    with closing(api.reading()) as reading:
        plans = Ask(_PLANS, namespace, metadata_only=True, label_selector=EVERY_RUN)
        try:
            for found in reading.every(plans, timeout=TIMEOUT):
                metadata = section(found, "metadata")
                run = text(section(metadata, "labels"), RUN_LABEL)
                yield _trace(metadata, text(metadata, "namespace"), run)
        except Forbidden:
            pass
        try:
            if namespace is not None:
                made = [api.get("Namespace", None, namespace, timeout=TIMEOUT)]
            else:
                every = Ask(_NAMESPACES, metadata_only=True, label_selector=_MADE)
                made = list(reading.every(every, timeout=TIMEOUT))
        except (Forbidden, NotFound):
            return
        for found in made:
            metadata = section(found, "metadata")
            if run := text(section(metadata, "annotations"), CREATED_BY):
                yield _trace(metadata, text(metadata, "name"), run)


def _trace(metadata: Metadata, namespace: str, run: str) -> Trace:
    created = moment(metadata, "creationTimestamp")
    return Trace(namespace, run, created, "deletionTimestamp" in metadata)
