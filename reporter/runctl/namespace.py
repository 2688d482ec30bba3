"""Who lives in a namespace: objects of every kind that the API server has, as it says itself."""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.common.objects import items, section, text
from reporter.errors import KubeError, NotFound
from reporter.kube.resources import Resource
from reporter.run.names import belongs

if TYPE_CHECKING:
    from reporter.kube.reading import Reading

_AT_ONCE: Final = 8
_NAMED: Final = 3
_GIVEN: Final = re.compile(
    r"serviceaccounts/(default|builder|deployer)"
    r"|configmaps/(kube-root-ca\.crt|openshift-service-ca\.crt|istio-ca-root-cert)"
    r"|secrets/(default|builder|deployer)-(dockercfg|token)-[a-z0-9]{5}"
    r"|rolebindings\.(rbac\.authorization\.k8s\.io|authorization\.openshift\.io)/system:.+"
)
"""What every namespace has: in Kubernetes, in OpenShift, with Istio."""
_NEEDED: Final = frozenset({"list", "delete"})
"""What cannot be deleted is a view of other things, such as the metrics of Pods."""


def in_the_way(reading: "Reading", namespace: str, run: str) -> str:
    """Say what else than the run lives there, or why that is not known; nothing if nothing does."""
    with closing(reading):
        try:
            offered = reading.discover()
        except KubeError as error:
            return f"cannot tell what else is in it: {words(error)}"
        for trouble in offered.troubles:
            return f"cannot tell what else is in it: {trouble.group}: {trouble.text}"
        kinds = [
            each
            for each in offered.resources
            if each.namespaced and each.verbs >= _NEEDED and each.kind != "Event"
        ]
        namespaced = {(each.group, each.kind) for each in kinds}
        found: list[str] = []
        hidden: list[str] = []

        def look(resource: Resource) -> None:
            try:
                for each in _objects(reading, resource, namespace):
                    if belongs(each, run, namespace):
                        continue
                    if _lives(each, resource, namespaced):
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

    try:
        yield from reading.every(Ask(resource, namespace, metadata_only=True), timeout=TIMEOUT)
    except NotFound:
        return  # the kind has gone meanwhile


def _lives(found: Mapping[str, Any], resource: Resource, namespaced: set[tuple[str, str]]) -> bool:
    """Say whether it is there for its own sake: not given, nor made for another object.

    `namespaced` has group and kind of what can be in a namespace.
    """
    metadata = section(found, "metadata")
    if _GIVEN.fullmatch(f"{resource.name}/{text(metadata, 'name')}"):
        return False
    # An owner in the namespace counts itself; without it the garbage collector takes both.
    owners = {
        (text(each, "apiVersion").rpartition("/")[0], text(each, "kind"))
        for each in items(metadata, "ownerReferences")
    }
    return not owners & namespaced
