"""Taking a run out of the cluster: first the aggregator, then all that has the run's label.

Level-based: what is listed is deleted, until nothing is listed any more. So it may be interrupted
and repeated, and what somebody made meanwhile goes too.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.common.objects import section, text
from reporter.errors import Conflict, Forbidden, KubeError, NotFound
from reporter.run.names import belongs, own_grace, selector
from reporter.runctl.aggregator_pod import EVERY_RUN
from reporter.runctl.cluster_rights import PLAN, Beyond
from reporter.runctl.create import CREATION, NOT_NAMESPACED, place, shown
from reporter.runctl.namespace import in_the_way
from reporter.runctl.run_objects import CREATED_BY

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

PATIENCE = 120.0
_PAUSE = 0.25
_QUIET = 10.0  # seconds after which it is said what is waited for
_GRACE: Final = 5
"""Seconds of grace for an aggregator: what it has still to store is deleted with it.

One that is only just starting has no signal handler yet, and would use up all of its usual grace.
"""
_AT_ONCE = 8
_LOCK: Final = PLAN
"""The plan is the last to go: while it is there, nobody starts another run of that name."""
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
_CREATED: Final = ("StatefulSet", *(each for each in _KINDS if each != "Pod"))
"""Kinds of what `run` creates."""


@dataclass(slots=True)
class Times:
    """How time is told and passed."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Removal:
    """One run that is removed, within `patience` seconds.

    Rights in a namespace that may be gone and cannot be seen count as left, unless `unseen_too`.
    """

    def __init__(
        self,
        api: "KubeApi",
        namespace: str,
        run: str,
        *,
        tell: Callable[[str], None],
        patience: float = PATIENCE,
        times: Times | None = None,
        unseen_too: bool = False,
    ) -> None:
        self._api, self._namespace, self._run = api, namespace, run
        self._times = times or Times()
        self._tell, self._quiet = tell, self._times.clock() + _QUIET
        self._end = self._times.clock() + patience
        self._refused: dict[str, str] = {}
        self._unread: dict[str, str] = {}
        self._beyond = Beyond(api, namespace, run)
        self._unseen_too = unseen_too
        self.removed: dict[str, int] = {}
        """How many objects of each kind there were."""
        self._seen: set[tuple[str, str]] = set()
        self._drawn: set[str] = set()
        """What the commands that have created the plan have drawn at random."""

    def aggregator(self) -> list[str]:
        """Remove the aggregator, so that nobody creates behind our back; return what stays."""
        own = f"{selector(self._run)},{EVERY_RUN}"
        return self._until_gone(
            lambda: [
                *self._listed("StatefulSet"),
                *self._one("Job", self._run),
                *self._listed("Pod", own, grace=_GRACE),
            ]
        )

    def rest(self) -> list[str]:
        """Remove everything else; return what stays and why."""
        return (
            self._until_gone(
                # Nobody keeps the rights that a snapshot had.
                lambda: [
                    *self._noted(self._beyond.listed()),
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
        if text(section(found, "metadata", "annotations"), CREATED_BY) != self._run:
            return []
        name = f"namespace/{self._namespace}"
        if why := in_the_way(self._api.reading(), self._namespace, self._run):
            return [f"{name}: {why}"]
        return self._until_gone(lambda: self._one("Namespace", self._namespace))

    def unseen(self) -> list[str]:
        """Return where rights may remain in namespaces that may be gone, and cannot be seen."""
        return [f"{what}: cannot be seen: {why}" for what, why in self._beyond.unsure.items()]

    def _until_gone(self, listed: Callable[[], list["_Found"]]) -> list[str]:
        while True:
            self._unread = {}
            try:
                found, trouble = listed(), ""
            except KubeError as error:
                found, trouble = [], words(error)
            if not found and not trouble:
                unread = self._beyond.unread | self._unread
                left = [f"{what}: {why}" for what, why in unread.items()]
                return left if self._unseen_too else left + self.unseen()
            with ThreadPoolExecutor(_AT_ONCE, "delete") as pool:
                for turn in _Turn:
                    listed_now = (each for each in found if each.turn is turn)
                    list(pool.map(self._delete, (each for each in listed_now if not each.deleting)))
            if self._times.clock() >= self._end:
                return [trouble] if trouble else [self._why(each) for each in found]
            if self._times.clock() >= self._quiet and found:
                self._quiet = self._end
                self._tell(f"waiting: {self._why(found[0])}")
            self._times.sleep(_PAUSE)

    def _plan(self) -> list["_Found"]:
        found = self._listed(_LOCK)
        self._drawn |= {each.drawn for each in found if each.drawn}
        return found

    def _created_meanwhile(self) -> list["_Found"]:
        """Return what a `run` has created that had not ended before we looked.

        When it has created everything it looks for the plan: if that was still there, all the rest
        can be seen now. By its name alone it may be of a run that has the name now.
        """
        if not self._drawn:
            return []
        listed = [
            *self._beyond.listed(),
            *(
                (kind, each)
                for kind in _CREATED
                for each in self._api.list_all(
                    kind, self._namespace, selector(self._run), timeout=TIMEOUT
                )
            ),
        ]
        return self._noted((kind, each) for kind, each in listed if _drawn(each) in self._drawn)

    def _listed(self, kind: str, labelled: str = "", grace: int | None = None) -> list["_Found"]:
        labelled = labelled or selector(self._run)
        listed = self._api.list_all(kind, self._namespace, labelled, timeout=TIMEOUT)
        try:
            return self._noted(((kind, each) for each in listed), grace)
        except Forbidden as error:
            self._unread[f"{kind.lower()}s"] = words(error)
            return []

    def _one(self, kind: str, name: str) -> list["_Found"]:
        where = None if kind in NOT_NAMESPACED else self._namespace
        try:
            found = self._api.get(kind, where, name, timeout=TIMEOUT)
        except NotFound:
            return []
        return self._noted([(kind, found)])

    def _noted(
        self, listed: Iterable[tuple[str, Mapping[str, Any]]], grace: int | None = None
    ) -> list["_Found"]:
        kept = [
            _Found(kind, each, self._namespace, grace)
            for kind, each in listed
            if belongs(each, self._run, self._namespace)
        ]
        for each in kept:
            if (each.kind, each.uid) not in self._seen:
                self._seen.add((each.kind, each.uid))
                self.removed[each.kind] = self.removed.get(each.kind, 0) + 1
        return kept

    def _delete(self, found: "_Found") -> None:
        kind, where, name = found.kind, found.place, found.name
        try:
            self._api.delete(kind, where, name, uid=found.uid, grace=found.grace, timeout=TIMEOUT)
        except (NotFound, Conflict):
            return
        except KubeError as error:
            self._refused[found.shown] = words(error)

    def _why(self, found: "_Found") -> str:
        refused = self._refused.get(found.shown)
        return f"{found.shown}: {found.held_by() or refused or 'still there'}"


def _drawn(found: Mapping[str, Any]) -> str:
    return text(section(found, "metadata", "annotations"), CREATION)


class _Turn(Enum):
    """In which order objects are deleted.

    Pods that get less time than usual go before the garbage collector deletes them: no kubelet
    takes back the time it has given. But an aggregator whose StatefulSet is there would come back.
    """

    PLUGIN = 0
    OTHER = 1
    AGGREGATOR = 2


class _Found:
    """An object that is still there; `place` is its namespace.

    `grace` is what a Pod gets, in seconds; without it, what a plugin's Pod says itself.
    """

    def __init__(
        self, kind: str, found: Mapping[str, Any], namespace: str, grace: int | None
    ) -> None:
        found = {**found, "kind": kind}  # lists do not say it of each
        self.place, self.shown = place(found, namespace), shown(found, namespace)
        self._metadata = section(found, "metadata")
        self._node = text(section(found, "spec"), "nodeName") if kind == "Pod" else ""
        self.kind, self.drawn = kind, _drawn(found)
        self.name, self.uid = text(self._metadata, "name"), text(self._metadata, "uid")
        self.deleting = bool(text(self._metadata, "deletionTimestamp"))
        # The rest of a plugin's period is for an upload, and nobody takes one any more.
        self.grace = (grace or own_grace(found)) if kind == "Pod" else None
        self.turn = _Turn.OTHER
        if self.grace is not None:
            self.turn = _Turn.AGGREGATOR if grace else _Turn.PLUGIN

    def held_by(self) -> str:
        """Say what keeps an object that is being deleted."""
        if not self.deleting:
            return ""
        if finalizers := self._metadata.get("finalizers"):
            return f"waits for its finalizers ({', '.join(map(str, finalizers))})"
        return f"is being deleted; its node is {self._node}" if self._node else "is being deleted"
