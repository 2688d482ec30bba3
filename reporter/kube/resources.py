"""Kinds of objects: those that the programs name, and what a server offers of its own.

The latter is read from aggregated discovery, one document for many groups. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reporter.common.objects import Object, items, section, text

AGGREGATED: Final = "APIGroupDiscoveryList"
STALE: Final = "the server of this group does not answer; what it offers may have changed"


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """A resource in one version; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """As people write it: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """As objects have it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None) -> tuple[str, dict[str, str]]:
        """Return the collection's path and what fills its placeholders, which others have chosen.

        None means all namespaces; that of a kind that has none is left out.
        """
        path, names = "/api/{version}", {"version": self.version, "plural": self.plural}
        if self.group:
            path, names["group"] = "/apis/{group}/{version}", self.group
        if namespace is not None and self.namespaced:
            path, names["namespace"] = f"{path}/namespaces/{{namespace}}", namespace
        return f"{path}/{{plural}}", names

    def one(self, namespace: str | None, name: str, part: str = "") -> tuple[str, dict[str, str]]:
        """Return the same of one object, or of a `part` of it: a subresource."""
        path, names = self.path(namespace)
        return f"{path}/{{name}}{f'/{part}' if part else ''}", names | {"name": name}


def _kind(kind: str, group: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(group, "v1", plural, kind, namespaced)


_ACCESS = "authorization.k8s.io"
_RBAC = "rbac.authorization.k8s.io"

KINDS: Final = {
    each.kind: each
    for each in (
        _kind("ConfigMap", "", "configmaps"),
        _kind("Event", "", "events"),
        _kind("Namespace", "", "namespaces", namespaced=False),
        _kind("Node", "", "nodes", namespaced=False),
        _kind("PersistentVolumeClaim", "", "persistentvolumeclaims"),
        _kind("Pod", "", "pods"),
        _kind("Secret", "", "secrets"),
        _kind("Service", "", "services"),
        _kind("ServiceAccount", "", "serviceaccounts"),
        _kind("Deployment", "apps", "deployments"),
        _kind("StatefulSet", "apps", "statefulsets"),
        _kind("SelfSubjectAccessReview", _ACCESS, "selfsubjectaccessreviews", namespaced=False),
        _kind("LocalSubjectAccessReview", _ACCESS, "localsubjectaccessreviews"),
        _kind("CronJob", "batch", "cronjobs"),
        _kind("Job", "batch", "jobs"),
        _kind("NetworkPolicy", "networking.k8s.io", "networkpolicies"),
        _kind("ClusterRole", _RBAC, "clusterroles", namespaced=False),
        _kind("ClusterRoleBinding", _RBAC, "clusterrolebindings", namespaced=False),
        _kind("Role", _RBAC, "roles"),
        _kind("RoleBinding", _RBAC, "rolebindings"),
    )
}
NEW_EVENT: Final = _kind("Event", "events.k8s.io", "events")
"""Events are read as `Event` of the core group, which shows these too."""


@dataclass(frozen=True, slots=True, order=True)
class DiscoveryTrouble:
    """Why it is not known what a version of a group offers."""

    group: str
    version: str
    text: str


@dataclass(frozen=True, slots=True)
class Discovered:
    """Each resource once, and every version of a group that could not be looked into."""

    resources: tuple[Resource, ...]
    troubles: tuple[DiscoveryTrouble, ...]


def discovered(documents: Iterable[Object]) -> Discovered:
    """Read APIGroupDiscoveryLists: each resource in the version that the server prefers, sorted."""
    found: dict[tuple[str, str], Resource] = {}
    troubles = []
    for group in (each for document in documents for each in items(document, "items")):
        name = text(section(group, "metadata"), "name")
        for version in items(group, "versions"):  # the preferred one first
            called = text(version, "version")
            for each in items(version, "resources"):
                plural, kind = text(each, "resource"), text(section(each, "responseKind"), "kind")
                namespaced = text(each, "scope") == "Namespaced"
                made = Resource(name, called, plural, kind, namespaced, _verbs(each))
                found.setdefault((name, plural), made)
            if text(version, "freshness") == "Stale":
                troubles.append(DiscoveryTrouble(name, called, STALE))
    return Discovered(tuple(found[each] for each in sorted(found)), tuple(sorted(troubles)))


def _verbs(found: Object) -> frozenset[str]:
    verbs = found.get("verbs")
    listed = verbs if isinstance(verbs, list) else ()
    return frozenset(each for each in listed if isinstance(each, str))
