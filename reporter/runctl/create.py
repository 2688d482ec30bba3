"""Creating the objects of a run: each by POST, in order, and away again if one of them fails.

Nothing is applied over what exists: an object of that name that this command has not made is an
error, and stays as it is.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import random
from typing import TYPE_CHECKING, Any, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.common.objects import section, text
from reporter.common.retry import next_delay
from reporter.errors import Conflict, Forbidden, KubeError, NotFound, Unavailable
from reporter.run.names import RUN_LABEL
from reporter.runctl.cluster_rights import PLAN
from reporter.runctl.search import OWN_NAMESPACE

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

CREATION: Final = "status-reporter.io/creation"
"""A random value in an annotation, by which the command recognises its own objects."""
NOT_NAMESPACED: Final = frozenset({"Namespace", "ClusterRole", "ClusterRoleBinding"})
_TRIES: Final = 5
_GOING: Final = 120.0  # seconds for an object of that name that is being deleted
_LOOK: Final = 0.5
INSTEAD: Final = "; -n uses a namespace that exists"

Object = Mapping[str, Any]


class NotCreated(Exception):
    """An object could not be created; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was created; `namespace` is None where it has none."""

    kind: str
    namespace: str | None
    name: str
    uid: str
    shown: str


def place(found: Object, namespace: str) -> str | None:
    """Return the namespace of an object of a run in `namespace`; None where it has none."""
    if text(found, "kind") in NOT_NAMESPACED:
        return None
    return text(section(found, "metadata"), "namespace") or namespace


def shown(found: Object, namespace: str = "") -> str:
    """Return kind and name as other commands print them, and where it is if that is elsewhere."""
    metadata = section(found, "metadata")
    name = f"{text(found, 'kind').lower()}/{text(metadata, 'name')}"
    own = text(metadata, "namespace")
    return f"{name} in namespace {own}" if own and namespace and own != namespace else name


def advice(wanted: Object) -> str:
    """Say what to do where an object of that name exists."""
    metadata = section(wanted, "metadata")
    own = OWN_NAMESPACE.format(run=section(metadata, "labels").get(RUN_LABEL))
    if text(wanted, "kind") == "Namespace" and text(metadata, "name") != own:
        return "leave out --create-namespace to use it"
    return "choose another --name, or delete the run that uses it"


class Creation:
    """What one command creates in a namespace. `token` is random."""

    def __init__(
        self,
        api: "KubeApi",
        namespace: str,
        token: str,
        *,
        tell: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random,
    ) -> None:
        self._api, self._namespace, self._token = api, namespace, token
        self._tell, self._sleep, self._clock, self._rng = tell, sleep, clock, rng
        self.made: list[Made] = []
        self._unsure: Object | None = None  # nobody could tell whether it was made

    def create(self, objects: Sequence[Object]) -> None:
        """Create them in this order. Raises NotCreated."""
        for each in objects:
            self.made.append(self._create(each))

    def deleted(self) -> bool:
        """Return whether the plan that was made has gone: the run is being deleted.

        An unknown answer counts as no.
        """
        for each in self.made:
            if each.kind == PLAN:
                try:
                    found = self._api.get(PLAN, each.namespace, each.name, timeout=TIMEOUT)
                except NotFound:
                    return True
                except KubeError:
                    return False
                metadata = section(found, "metadata")
                return text(metadata, "uid") != each.uid or "deletionTimestamp" in metadata
        return False

    def undo(self) -> list[str]:
        """Delete what was made, the last first; return what is still there and why.

        A namespace takes everything in it along, but not what is elsewhere.
        """
        if self._unsure is not None:
            self._note_if_there(self._unsure)
        own = any(each.kind == "Namespace" for each in self.made)
        going = [each for each in self.made if not own or each.namespace != self._namespace]
        kept = []
        if self._unsure is not None:
            kept.append(f"{shown(self._unsure, self._namespace)}: it may have been created")
        for each in reversed(going):
            try:
                self._api.delete(
                    each.kind, each.namespace, each.name, uid=each.uid, timeout=TIMEOUT
                )
            except (NotFound, Conflict):
                continue
            except KubeError as error:
                kept.append(f"{each.shown}: {words(error)}")
        self.made.clear()
        return kept

    def _create(self, wanted: Object) -> Made:
        try:
            return self._tried(wanted)
        except KeyboardInterrupt:
            self._note_if_there(wanted)  # also of an earlier try, whose answer was lost
            raise

    def _tried(self, wanted: Object) -> Made:
        kind, name = text(wanted, "kind"), shown(wanted, self._namespace)
        where, body = place(wanted, self._namespace), self._marked(wanted)
        tries, until, lost = 0, None, False
        while True:
            tries += 1
            try:
                return self._mine(self._api.create(kind, where, body, timeout=TIMEOUT))
            except Conflict as error:
                try:
                    standing = self._standing(wanted)
                except NotFound:  # gone meanwhile, or the server's own conflict over a quota
                    if tries == _TRIES:
                        raise NotCreated(f"{name}: {words(error)}") from None
                    self._sleep(_LOOK)
                    continue
                except KubeError as unseen:
                    if not self._waits(unseen, tries):
                        self._unsure = wanted if lost else None
                        raise NotCreated(f"{name}: already exists ({words(unseen)})") from None
                    continue
                if not text(section(standing, "metadata"), "deletionTimestamp"):
                    if not self._is_ours(standing):
                        raise NotCreated(f"{name}: {words(error)}; {advice(wanted)}") from None
                    return self._mine(standing)
                # A run of that name has just been deleted, or was refused a moment ago.
                if until is None:
                    until = self._clock() + _GOING
                    self._tell(f"{name} is still being deleted; waiting")
                if self._clock() >= until:
                    raise NotCreated(f"{name}: still being deleted") from None
                tries = 0
                self._sleep(_LOOK)
            except KubeError as error:
                # It may exist all the same: then the next try conflicts with it, or with a quota.
                lost = lost or isinstance(error, Unavailable)
                if self._waits(error, tries):
                    continue
                if lost and (made := self._if_there(wanted)) is not None:
                    return made
                instead = INSTEAD if kind == "Namespace" and isinstance(error, Forbidden) else ""
                raise NotCreated(f"{name}: {words(error)}{instead}") from None

    def _waits(self, error: KubeError, tries: int) -> bool:
        """Wait for another try; return whether there is one."""
        if tries == _TRIES or not isinstance(error, Unavailable):
            return False
        delay = next_delay(tries, self._rng, retry_after=error.retry_after)
        if delay is None:
            return False
        self._sleep(delay)
        return True

    def _standing(self, wanted: Object) -> Object:
        """Return what has that name. Raises KubeError."""
        kind, name = text(wanted, "kind"), text(section(wanted, "metadata"), "name")
        return self._api.get(kind, place(wanted, self._namespace), name, timeout=TIMEOUT)

    def _mine(self, found: Object) -> Made:
        metadata = section(found, "metadata")
        name = shown(found, self._namespace)
        kind, where = text(found, "kind"), place(found, self._namespace)
        return Made(kind, where, text(metadata, "name"), text(metadata, "uid"), name)

    def _note_if_there(self, wanted: Object) -> None:
        """What may have been made without a word has to go with the rest."""
        made = self._if_there(wanted)
        if made is not None:
            self.made.append(made)

    def _if_there(self, wanted: Object) -> Made | None:
        """Return what was made without a word; nothing if it was not, or nobody can tell."""
        self._unsure = wanted  # also after Ctrl-C while it is looked for
        try:
            found = self._standing(wanted)
        except NotFound:
            found = None
        except KubeError:
            return None
        self._unsure = None
        return self._mine(found) if found is not None and self._is_ours(found) else None

    def _is_ours(self, found: Object) -> bool:
        return text(section(section(found, "metadata"), "annotations"), CREATION) == self._token

    def _marked(self, wanted: Object) -> dict[str, Any]:
        metadata = section(wanted, "metadata")
        annotations = {**section(metadata, "annotations"), CREATION: self._token}
        return {**wanted, "metadata": {**metadata, "annotations": annotations}}
