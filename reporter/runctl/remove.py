"""Taking a run out of the cluster: first the aggregator, then all that has the run's label.

Level-based: what is listed is deleted, until nothing is listed any more. So it may be interrupted
and repeated, and what somebody made meanwhile goes too.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.cli.output import tell
from reporter.common.objects import Object, View, section, text
from reporter.errors import Conflict, Forbidden, KubeError, NotFound
from reporter.kube.resources import Resource
from reporter.run.names import (
    CLUSTER,
    ELSEWHERE,
    NAMESPACE_LABEL,
    belongs,
    own_grace,
    selector,
)
from reporter.runctl.follow import Deadline
from reporter.runctl.spec import (
    CREATED_BY,
    EVERY_RUN,
    PLAN,
    created_by,
    display_name,
    namespace_of,
)

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_PAUSE: Final = 0.25
_QUIET: Final = 10.0  # seconds after which it is said what is waited for
_GRACE: Final = 5
"""Seconds of grace for an aggregator: what it has still to store is deleted with it.

One that is only just starting has no signal handler yet, and would use up all of its usual grace.
"""
_AT_ONCE: Final = 8
_KINDS: Final = (
    "Job",
    "Pod",
    "Secret",
    "Service",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "RoleBinding",
    "Role",
    "ServiceAccount",
)
_CREATED: Final = tuple(each for each in _KINDS if each != "Pod")
"""Kinds of what `run` creates."""
_CLUSTER_RIGHTS: Final = ("ClusterRoleBinding", "ClusterRole")
_RIGHTS: Final = (*_CLUSTER_RIGHTS, "RoleBinding", "Role")
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


class Removal:
    """One run that is removed, until the deadline.

    Rights in a namespace that may be gone and cannot be seen count as left, unless `unseen_too`.
    """

    def __init__(
        self,
        api: "KubeApi",
        namespace: str,
        run: str,
        deadline: Deadline,
        *,
        unseen_too: bool = False,
    ) -> None:
        self._api, self._namespace, self._run = api, namespace, run
        self._deadline, self._told = deadline, False
        self._refused: dict[str, str] = {}
        self._unread: dict[str, str] = {}
        self._rights, self._unseen_too = RightsElsewhere(api, namespace, run), unseen_too
        self._seen: dict[str, str] = {}  # kinds by UID
        self._creations: set[str] = set()
        """What the commands that have created the plan have drawn at random."""

    @property
    def removed(self) -> Mapping[str, int]:
        """How many objects of each kind there were."""
        return Counter(self._seen.values())

    def aggregator(self) -> list[str]:
        """Remove the aggregator, so that nobody creates behind our back; return what stays."""
        own = f"{selector(self._run)},{EVERY_RUN}"
        return self._until_gone(
            lambda: [
                *self._listed("Job", own),
                *self._listed("Pod", own, grace=_GRACE),
            ]
        )

    def rest(self) -> list[str]:
        """Remove everything else; return what stays and why."""
        return (
            self._until_gone(
                # Nobody keeps the rights that a snapshot had.
                lambda: [
                    *self._noted(self._rights.listed()),
                    *(each for kind in _KINDS for each in self._listed(kind)),
                ]
            )
            or self._until_gone(self._plan)
            or self._until_gone(self._created_meanwhile)
        )

    def namespace(self) -> list[str]:
        """Remove the namespace if `run` has made it and nothing else lives in it.

        Return what stays; nothing also where the namespace is not the run's.
        """
        try:
            found = self._api.get("Namespace", None, self._namespace, timeout=TIMEOUT)
        except KubeError:
            return []  # a user without permission to see it did not make it
        if text(View(found).annotations, CREATED_BY) != self._run:
            return []
        name = f"namespace/{self._namespace}"
        if why := _in_the_way(self._api, self._namespace, self._run):
            return [f"{name}: {why}"]
        return self._until_gone(self._own_namespace)

    def unseen(self) -> list[str]:
        """Return where rights may remain in namespaces that may be gone, and cannot be seen."""
        return [f"{what}: cannot be seen: {why}" for what, why in self._rights.unsure.items()]

    def _until_gone(self, listed: Callable[[], list["_Found"]]) -> list[str]:
        while True:
            self._unread = {}
            try:
                found, trouble = listed(), ""
            except KubeError as error:
                found, trouble = [], words(error)
            if not found and not trouble:
                unread = self._rights.unread | self._unread
                left = [f"{what}: {why}" for what, why in unread.items()]
                return left if self._unseen_too else left + self.unseen()
            with ThreadPoolExecutor(_AT_ONCE, "delete") as pool:
                # Pods that get less time than usual go before their Job, with which the garbage
                # collector deletes them: no kubelet takes back the time it has given. An aggregator
                # does not come back meanwhile: its Job waits 10 s.
                for short in (True, False):
                    turn = [each for each in found if (each.grace is not None) == short]
                    list(pool.map(self._delete, (each for each in turn if not each.deleting)))
            if self._deadline.over():
                return [trouble] if trouble else [self._why(each) for each in found]
            if self._deadline.elapsed >= _QUIET and found and not self._told:
                self._told = True
                tell(f"waiting: {self._why(found[0])}")
            self._deadline.sleep(_PAUSE)

    def _plan(self) -> list["_Found"]:
        found = self._listed(PLAN)
        self._creations |= {created_by(each.view.found) for each in found} - {""}
        return found

    def _created_meanwhile(self) -> list["_Found"]:
        """Return what a `run` has created that had not ended before we looked.

        When it has created everything it looks for the plan: if that was still there, all the rest
        can be seen now. By its name alone it may be of a run that has the name now.
        """
        if not self._creations:
            return []
        listed = [
            *self._rights.listed(),
            *(each for kind in _CREATED for each in self._list(kind, selector(self._run))),
        ]
        return self._noted(each for each in listed if created_by(each) in self._creations)

    def _listed(self, kind: str, labelled: str = "", grace: int | None = None) -> list["_Found"]:
        try:
            return self._noted(self._list(kind, labelled or selector(self._run)), grace)
        except Forbidden as error:
            self._unread[f"{kind.lower()}s"] = words(error)
            return []

    def _list(self, kind: str, labelled: str) -> Iterator[Object]:
        for each in self._api.list_all(kind, self._namespace, labelled, timeout=TIMEOUT):
            yield {**each, "kind": kind}  # lists do not say it of each

    def _own_namespace(self) -> list["_Found"]:
        try:
            found = self._api.get("Namespace", None, self._namespace, timeout=TIMEOUT)
        except NotFound:
            return []
        return self._noted([{**found, "kind": "Namespace"}])

    def _noted(self, listed: Iterable[Object], grace: int | None = None) -> list["_Found"]:
        kept = [
            _Found(each, self._namespace, grace)
            for each in listed
            if belongs(each, self._run, self._namespace)
        ]
        self._seen |= {each.uid: each.kind for each in kept}
        return kept

    def _delete(self, found: "_Found") -> None:
        try:
            self._api.delete(
                found.kind,
                found.namespace,
                found.view.name,
                uid=found.uid,
                grace=found.grace,
                timeout=TIMEOUT,
            )
        except (NotFound, Conflict):
            return
        except KubeError as error:
            self._refused[found.shown] = words(error)

    def _why(self, found: "_Found") -> str:
        refused = self._refused.get(found.shown)
        return f"{found.shown}: {found.held_by() or refused or 'still there'}"


class _Found:
    """An object that is still there.

    `grace` is what a Pod gets, in seconds; without it, what a plugin's Pod says itself.
    """

    def __init__(self, found: Object, namespace: str, grace: int | None) -> None:
        self.view, self.kind = View(found), text(found, "kind")
        self.namespace, self.shown = namespace_of(found, namespace), display_name(found, namespace)
        self.uid, self.deleting = self.view.uid, self.view.deleting
        # The rest of a plugin's period is for an upload, and nobody takes one any more.
        self.grace = (grace or own_grace(found)) if self.kind == "Pod" else None

    def held_by(self) -> str:
        """Say what keeps an object that is being deleted."""
        if not self.deleting:
            return ""
        if finalizers := self.view.metadata.get("finalizers"):
            return f"waits for its finalizers ({', '.join(map(str, finalizers))})"
        node = text(section(self.view.found, "spec"), "nodeName")
        return f"is being deleted; its node is {node}" if node else "is being deleted"


class RightsElsewhere:
    """Looks for what a run has beyond its namespace: the rights of a snapshot.

    Most people have no permission to search the whole cluster for it, and most runs have nothing
    there. So the run's plan names the places, and that something cannot be seen counts only there.

    `unread` says where something may be and cannot be seen, and why; `unsure` says the same of
    namespaces that may also be gone. Both are what the last look found.
    """

    def __init__(self, api: "KubeApi", namespace: str, run: str) -> None:
        self._api, self._namespace, self._run = api, namespace, run
        self._labels = f"{selector(run)},{NAMESPACE_LABEL}={namespace}"
        self._named: list[str] | None = None
        self.unread: dict[str, str] = {}
        self.unsure: dict[str, str] = {}

    def listed(self) -> list[Object]:
        """Return what is there. Raises KubeError where it may be asked again."""
        found: list[Object] = []
        self.unread, self.unsure = {}, {}
        for kind in _RIGHTS:
            try:
                found += self._list(kind, None)
            except Forbidden as error:
                for where in self._places():
                    if where != CLUSTER and kind not in _CLUSTER_RIGHTS:
                        found += self._there(kind, where)
                    elif where == CLUSTER and kind in _CLUSTER_RIGHTS:
                        self.unread[f"{kind.lower()}s"] = words(error)
        return found

    def _there(self, kind: str, namespace: str) -> list[Object]:
        try:
            return self._list(kind, namespace)
        except Forbidden as error:
            # An administrator of a namespace loses the sight of it with the namespace.
            unseen = self.unread
            try:
                self._api.get("Namespace", None, namespace, timeout=TIMEOUT)
            except NotFound:
                return []
            except Forbidden:
                unseen = self.unsure
            unseen[f"{kind.lower()}s in namespace {namespace}"] = words(error)
            return []

    def _list(self, kind: str, namespace: str | None) -> list[Object]:
        listed = self._api.list_all(kind, namespace, self._labels, timeout=TIMEOUT)
        return [{**each, "kind": kind} for each in listed]

    def _places(self) -> list[str]:
        """Return where the plan says that the run has something. It goes last."""
        if self._named is None:
            try:
                plan = self._api.get(PLAN, self._namespace, self._run, timeout=TIMEOUT)
            except (NotFound, Forbidden):
                plan = {}
            said = text(View(plan).annotations, ELSEWHERE)
            self._named = list(filter(None, said.split(",")))
        return self._named


def _in_the_way(api: "KubeApi", namespace: str, run: str) -> str:
    """Say what else than the run is in its namespace, or why that is not known.

    Objects of every kind that the API server has, as it says itself.
    """
    try:
        offered = api.discover()
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
            for each in api.list_all(resource, namespace, metadata_only=True, timeout=TIMEOUT):
                if not belongs(each, run, namespace) and _is_own(each, resource, namespaced):
                    name = View(each).name
                    found.append(f"{resource.kind.lower()}/{name}")
        except NotFound:
            pass  # the kind has gone meanwhile
        except KubeError as error:
            hidden.append(f"{resource.name}: {words(error)}")

    with ThreadPoolExecutor(_AT_ONCE, "namespace") as pool:
        list(pool.map(look, kinds))
    if hidden and not found:
        return f"cannot tell what else is in it: {min(hidden)}"
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    listed = ", ".join(sorted(found)[:_NAMED])
    return f"{listed}{more} {'is' if len(found) == 1 else 'are'} in it" if found else ""


def _is_own(found: Object, resource: Resource, namespaced: set[tuple[str, str]]) -> bool:
    """Say whether it is there for its own sake: not given, nor made for another object.

    `namespaced` has group and kind of what can be in a namespace.
    """
    view = View(found)
    if _GIVEN.fullmatch(f"{resource.name}/{view.name}"):
        return False
    # An owner in the namespace counts itself; without it the garbage collector takes both.
    owners = {
        (text(each, "apiVersion").rpartition("/")[0], text(each, "kind")) for each in view.owners
    }
    return not owners & namespaced
