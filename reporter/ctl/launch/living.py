"""Who lives in a namespace: objects of every kind that the API server has, as it says itself."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from reporter.core.launch.names import RUN_LABEL
from reporter.core.objects import items, section, text
from reporter.core.resources import Resource
from reporter.ctl.cluster import TIMEOUT, words
from reporter.errors import KubeError, NotFound

if TYPE_CHECKING:
    from reporter.kube.reading import Reading

_AT_ONCE: Final = 8
_NAMED: Final = 3
_GIVEN: Final = {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}
"""What every namespace has."""
_NEEDED: Final = frozenset({"list", "delete"})
"""What cannot be deleted is a view of other things, such as the metrics of Pods."""


def in_the_way(reading: "Reading", namespace: str, run: str) -> str:
    """Say what else than the run lives there, or why that is not known; nothing if nothing does."""
    from reporter.kube.discovery import discover

    with closing(reading):
        try:
            offered = discover(reading.document)
        except KubeError as error:
            return f"cannot tell what else is in it: {words(error)}"
        for trouble in offered.troubles:
            return f"cannot tell what else is in it: {trouble.group}: {trouble.text}"
        kinds = [
            each
            for each in offered.resources
            if each.namespaced and each.verbs >= _NEEDED and each.kind != "Event"
        ]
        namespaced = {each.kind for each in kinds}
        found: list[str] = []
        hidden: list[str] = []

        def look(resource: Resource) -> None:
            try:
                for each in _objects(reading, resource, namespace):
                    if _lives(each, resource, run, namespaced):
                        name = text(section(each, "metadata"), "name")
                        found.append(f"{resource.kind.lower()}/{name}")
            except KubeError as error:
                hidden.append(f"{resource.name}: {words(error)}")

        with ThreadPoolExecutor(_AT_ONCE, "living") as pool:
            list(pool.map(look, kinds))
    if hidden and not found:
        return f"cannot tell what else is in it: {min(hidden)}"
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    listed = ", ".join(sorted(found)[:_NAMED])
    return f"{listed}{more} {'is' if len(found) == 1 else 'are'} in it" if found else ""


def _objects(reading: "Reading", resource: Resource, namespace: str) -> Iterator[Mapping[str, Any]]:
    from reporter.kube.reading import Ask

    more = ""
    while True:
        ask = Ask(resource, namespace, more=more, metadata_only=True)
        try:
            page = reading.page(ask, timeout=TIMEOUT)
        except NotFound:
            return  # the kind has gone meanwhile
        with closing(page):
            yield from page
            more = page.more
        if not more:
            return


def _lives(found: Mapping[str, Any], resource: Resource, run: str, namespaced: set[str]) -> bool:
    """Say whether it is there for its own sake: not ours, given, or made for another object."""
    metadata = section(found, "metadata")
    if text(section(metadata, "labels"), RUN_LABEL) == run:
        return False
    if (resource.kind, text(metadata, "name")) in _GIVEN:
        return False
    # An owner in the namespace counts itself; without it the garbage collector takes both.
    owners = {text(each, "kind") for each in items(metadata, "ownerReferences")}
    return not owners & namespaced
