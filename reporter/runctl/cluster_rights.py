"""What a run has beyond its namespace: the rights of a snapshot.

Most people have no permission to search the whole cluster for it, and most runs have nothing there.
So the run's plan names the places, and that something cannot be seen counts only in these.
"""

from typing import TYPE_CHECKING, Any, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.common.objects import section, text
from reporter.errors import Forbidden, NotFound
from reporter.run.names import CLUSTER, ELSEWHERE, NAMESPACE_LABEL, selector

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

PLAN: Final = "ConfigMap"
_IN_THE_CLUSTER: Final = ("ClusterRoleBinding", "ClusterRole")
_IN_NAMESPACES: Final = ("RoleBinding", "Role")

KindAndObject = tuple[str, dict[str, Any]]
"""Kind and object."""


class Beyond:
    """Looks for what one run has beyond its namespace.

    `unread` says where something may be and cannot be seen, and why; `unsure` says the same of
    namespaces that may also be gone. Both are what the last look found.
    """

    def __init__(self, api: "KubeApi", namespace: str, run: str) -> None:
        self._api, self._namespace, self._run = api, namespace, run
        self._labels = f"{selector(run)},{NAMESPACE_LABEL}={namespace}"
        self._named: list[str] | None = None
        self.unread: dict[str, str] = {}
        self.unsure: dict[str, str] = {}

    def listed(self) -> list[KindAndObject]:
        """Return what is there. Raises KubeError where it may be asked again."""
        found: list[KindAndObject] = []
        self.unread, self.unsure = {}, {}
        for kind in _IN_THE_CLUSTER:
            try:
                found += self._list(kind, None)
            except Forbidden as error:
                if CLUSTER in self._places():
                    self.unread[f"{kind.lower()}s"] = words(error)
        for kind in _IN_NAMESPACES:
            try:
                found += self._list(kind, None)
            except Forbidden:
                for place in self._places():
                    found += self._there(kind, place) if place != CLUSTER else []
        return found

    def _there(self, kind: str, namespace: str) -> list[KindAndObject]:
        try:
            return self._list(kind, namespace)
        except Forbidden as error:
            # An administrator of a namespace loses the sight of it with the namespace.
            if (there := self._exists(namespace)) is not False:
                unseen = self.unread if there else self.unsure
                unseen[f"{kind.lower()}s in namespace {namespace}"] = words(error)
            return []

    def _exists(self, namespace: str) -> bool | None:
        """Return whether the namespace is there, None where that is not told."""
        try:
            self._api.get("Namespace", None, namespace, timeout=TIMEOUT)
        except NotFound:
            return False
        except Forbidden:
            return None
        return True

    def _list(self, kind: str, namespace: str | None) -> list[KindAndObject]:
        listed = self._api.list_all(kind, namespace, self._labels, timeout=TIMEOUT)
        return [(kind, each) for each in listed]

    def _places(self) -> list[str]:
        """Return where the plan says that the run has something. It goes last."""
        if self._named is None:
            try:
                plan = self._api.get(PLAN, self._namespace, self._run, timeout=TIMEOUT)
            except (NotFound, Forbidden):
                plan = {}
            said = text(section(plan, "metadata", "annotations"), ELSEWHERE)
            self._named = list(filter(None, said.split(",")))
        return self._named
