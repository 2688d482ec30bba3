"""Starting a run: all is checked and created, or nothing stays.

Each object is created by POST, in order. Nothing is applied over what exists: an object of that
name that this command has not made is an error, and stays as it is.
"""

import argparse
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import random
from typing import TYPE_CHECKING, Any, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.cli.interrupt import termination_too
from reporter.cli.output import tell
from reporter.common.objects import Object, View, section, text
from reporter.common.retry import next_delay
from reporter.errors import Conflict, Forbidden, KubeError, NotFound, Unavailable
from reporter.runctl.cluster_run import place_words
from reporter.runctl.expose import Access, remove_connection
from reporter.runctl.objects import own_namespace, without_namespace
from reporter.runctl.preflight import ACCOUNT, INSTEAD, advice, check
from reporter.runctl.spec import (
    CREATION,
    PLAN,
    RunSpec,
    created_by,
    display_name,
    namespace_of,
)

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_TRIES: Final = 5
_GOING: Final = 120.0  # seconds for an object of that name that is being deleted
_LOOK: Final = 0.5
_ACCOUNT_WAIT: Final = 15.0  # seconds in which a new namespace gets its account
_ACCOUNT_LOOK: Final = 0.05


class NotCreated(Exception):
    """The run cannot be started; the text says why, a line for each problem."""


@dataclass(slots=True)
class _Posted:
    """An object that the API server was asked to make; `uid` once it has said that it is there."""

    wanted: Object
    kind: str
    name: str
    namespace: str | None
    shown: str
    uid: str = ""


def start(
    api: "KubeApi", spec: RunSpec, options: argparse.Namespace, access: Access | None
) -> RunSpec | None:
    """Check and create everything; nothing if it cannot be. Nothing that was made stays then.

    SIGTERM and SIGHUP end it as Ctrl-C does: a pipeline that is cancelled, or a terminal that is
    closed, leaves nothing behind.
    """
    creation = Creation(api, spec.namespace, secrets.token_hex(8))
    made = None
    with termination_too() as tidy:
        try:
            created = _create(creation, api, spec)
            if creation.deleted():
                tell("the run was deleted meanwhile; what was created is removed")
            else:
                made = created
        except (NotCreated, KubeError) as error:
            why = words(error) if isinstance(error, KubeError) else error
            tell(f"the run cannot be started:\n  {why}")
        except KeyboardInterrupt:
            tell("interrupted; what was created is removed")
            raise
        finally:
            if made is None:
                tidy()
                _undo(creation, spec, options, access)
    return made


def _create(creation: "Creation", api: "KubeApi", spec: RunSpec) -> RunSpec:
    """Return the run as it was created. Raises NotCreated, KubeError."""
    if spec.create_namespace:
        try:
            creation.create([own_namespace(spec)])
        except NotCreated as error:
            also = check(api, spec, in_namespace=False).problems
            raise NotCreated("\n  ".join([str(error), *also])) from None
        creation.wait_for_account()
    found = check(api, spec)
    if found.problems:
        raise NotCreated("\n  ".join(found.problems))
    if not found.conditions:
        spec = replace(spec, launch=replace(spec.launch, write_conditions=False))
        tell("no permission to grant jobs/status: verdicts are not written on the Jobs")
    for remark in found.remarks:
        tell(remark)
    creation.create(without_namespace(spec))
    return spec


def _undo(
    creation: "Creation", spec: RunSpec, options: argparse.Namespace, access: Access | None
) -> None:
    where = place_words(spec.namespace, options, own=spec.create_namespace)
    rest = f"to remove the rest: status-ctl delete {spec.run}{where}"
    try:
        kept = "" if access is None else remove_connection(access.path)
        left = creation.undo()
    except KeyboardInterrupt:
        tell(rest)
        raise
    for line in filter(None, [kept, *left]):
        tell(f"not removed: {line}")
    if left:
        tell(rest)


class Creation:
    """What one command creates for a run in a namespace. `token` is random."""

    def __init__(
        self,
        api: "KubeApi",
        namespace: str,
        token: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._namespace, self._token = api, namespace, token
        self._sleep, self._clock = sleep, clock
        self._posted: list[_Posted] = []

    def create(self, wanted: Iterable[Object]) -> None:
        """Create them in this order. Raises NotCreated."""
        for each in wanted:
            shown, where = display_name(each, self._namespace), namespace_of(each, self._namespace)
            posted = _Posted(each, text(each, "kind"), View(each).name, where, shown)
            self._posted.append(posted)
            posted.uid = View(self._create(posted)).uid

    def wait_for_account(self) -> None:
        """Return when a new namespace has its account: before, every Pod is refused. KubeError."""
        end = self._clock() + _ACCOUNT_WAIT
        while True:
            try:
                self._api.get("ServiceAccount", self._namespace, ACCOUNT, timeout=TIMEOUT)
                return
            except NotFound:
                if self._clock() >= end:
                    raise
                self._sleep(_ACCOUNT_LOOK)

    def deleted(self) -> bool:
        """Return whether the plan that was made has gone: the run is being deleted.

        An unknown answer counts as no.
        """
        plan = next(each for each in self._posted if each.kind == PLAN)
        try:
            found = self._existing(plan)
        except NotFound:
            return True
        except KubeError:
            return False
        return View(found).uid != plan.uid or View(found).deleting

    def undo(self) -> list[str]:
        """Delete what was made, the last first; return what is still there and why.

        A namespace takes everything in it along, but not what is elsewhere.
        """
        left = [
            f"{each.shown}: it may have been created"
            for each in self._posted
            if not each.uid and not self._learn_uid(each)
        ]
        made = [each for each in self._posted if each.uid]
        own = any(each.kind == "Namespace" for each in made)
        for each in reversed(made):
            if own and each.namespace == self._namespace:
                continue
            try:
                self._api.delete(
                    each.kind, each.namespace, each.name, uid=each.uid, timeout=TIMEOUT
                )
            except (NotFound, Conflict):
                continue
            except KubeError as error:
                left.append(f"{each.shown}: {words(error)}")
        return left

    def _learn_uid(self, posted: _Posted) -> bool:
        """Look whether it was made, though nobody said so; return whether that is known now."""
        try:
            found = self._existing(posted)
        except NotFound:
            return True
        except KubeError:
            return False
        if created_by(found) == self._token:
            posted.uid = View(found).uid
        return True

    def _create(self, posted: _Posted) -> Object:
        """Return what was made, also by a try whose answer was lost."""
        tries, until, lost = 0, None, False
        while True:
            tries += 1
            try:
                return self._api.create(
                    posted.kind, posted.namespace, self._marked(posted.wanted), timeout=TIMEOUT
                )
            except KubeError as error:
                trouble = error
            # It may exist all the same: then the next try conflicts with it, or with a quota.
            lost = lost or isinstance(trouble, Unavailable)
            if self._waits(trouble, tries):
                continue
            conflict, existing, unseen = isinstance(trouble, Conflict), None, None
            if conflict or lost:
                try:
                    existing = self._existing(posted)
                except NotFound:
                    pass
                except KubeError as error:
                    unseen = error
            going = View(existing or {}).deleting
            if existing is not None and not going and created_by(existing) == self._token:
                return existing
            if not conflict:
                forbidden = posted.kind == "Namespace" and isinstance(trouble, Forbidden)
                why = words(trouble) + (INSTEAD if forbidden else "")
                raise self._refused(posted, why, lost=lost)
            if unseen is not None:
                if not self._waits(unseen, tries):
                    raise self._refused(posted, f"already exists ({words(unseen)})", lost=lost)
                continue
            if existing is None:  # gone meanwhile, or the server's own conflict over a quota
                if tries == _TRIES:
                    raise self._refused(posted, words(trouble), lost=False)
            elif not going:
                why = f"{words(trouble)}; {advice(posted.wanted)}"
                raise self._refused(posted, why, lost=False)
            else:  # a run of that name has just been deleted, or was refused a moment ago
                if until is None:
                    until = self._clock() + _GOING
                    tell(f"{posted.shown} is still being deleted; waiting")
                if self._clock() >= until:
                    raise self._refused(posted, "still being deleted", lost=False)
                tries = 0
            self._sleep(_LOOK)

    def _refused(self, posted: _Posted, why: str, *, lost: bool) -> NotCreated:
        """Return the error. Unless an answer was lost, there is nothing to take back."""
        if not lost:
            self._posted.pop()
        return NotCreated(f"{posted.shown}: {why}")

    def _waits(self, error: KubeError, tries: int) -> bool:
        """Wait for another try; return whether there is one."""
        if tries == _TRIES or not isinstance(error, Unavailable):
            return False
        delay = next_delay(tries, random, retry_after=error.retry_after)
        if delay is None:
            return False
        self._sleep(delay)
        return True

    def _existing(self, posted: _Posted) -> Object:
        """Return what has that name. Raises KubeError."""
        return self._api.get(posted.kind, posted.namespace, posted.name, timeout=TIMEOUT)

    def _marked(self, wanted: Object) -> dict[str, Any]:
        metadata = section(wanted, "metadata")
        annotations = {**section(metadata, "annotations"), CREATION: self._token}
        return {**wanted, "metadata": {**metadata, "annotations": annotations}}
