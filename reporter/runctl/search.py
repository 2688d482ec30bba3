"""The search for a run in the user's cluster: its aggregator's Pod, what makes that, its plan.

A run whose Pod moves or is still to come is told from one that was deleted.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reporter.cli import cluster
from reporter.cli.exits import CannotTell
from reporter.common.objects import section, text
from reporter.errors import Forbidden, KubeError, NotFound
from reporter.kube.resources import Resource
from reporter.run.names import RUN_LABEL, selector
from reporter.run.pod_status import Reading, ReadOutcome
from reporter.runctl.aggregator import NO_POD, Aggregator, maker_of

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

OWN_NAMESPACE: Final = "status-reporter-{run}"
"""The namespace of a run that has one to itself."""
_ONLY_PODS: Final = (
    "; a run without a Pod is found only with the right to list configmaps in all namespaces: {}"
)
_PLANS: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)


def not_found(run: str, namespaces: Iterable[str]) -> str:
    """Say where a run was looked for."""
    places = " or ".join(map(repr, dict.fromkeys(namespaces)))
    return f"run {run!r} not found in namespace {places}"


class Search:
    """For one run, the one named `run` or the one that there is; remembers what it has seen.

    It is sought in `namespace`; not found there, in its own, unless `only_there`. A namespace of
    None, from `-A`, means all of them.
    """

    def __init__(
        self, api: "KubeApi", namespace: str | None, run: str, *, only_there: bool
    ) -> None:
        self._api, self._namespace, self._run = api, namespace, run
        self._only_there = only_there or namespace is None
        self._aggregator: Aggregator | None = None  # what makes its Pods, once that is known
        self._plan_at = ""  # the namespace of its plan, once that was seen
        self._no_plans = ""  # why no plan is sought in all namespaces, for good

    def is_known(self, aggregator: Aggregator) -> None:
        """Take it that the run is there, before a look has shown it."""
        self._aggregator = aggregator

    def read(self, timeout: float) -> Reading:
        """Find the Pod and read the status on it. Whatever goes wrong is an outcome.

        Raises CannotTell where no Pod will tell more of a run that was there: it was deleted, or
        its aggregator has ended.
        """
        reading = self._find(timeout)
        if reading.pod is not None:
            self._aggregator = maker_of(reading.pod)
        if reading.outcome is ReadOutcome.NOT_FOUND:
            there = self._still_there(timeout)
            return replace(reading, detail=there or reading.detail + self._no_plans)
        if reading.outcome is ReadOutcome.POD_NOT_RUNNING and self._aggregator is not None:
            self._aggregator.expect_another_pod(self._api, timeout)
        return reading

    def exists(self, timeout: float) -> bool:
        """Say whether the API server shows us such a run, if only its plan: its Pod may move.

        Raises KubeError where it does not answer.
        """
        from reporter.runctl.run_status import find_aggregator

        for place in self._places():
            try:
                pod, _ = find_aggregator(self._api, place, run=self._run, timeout=timeout)
            except (NotFound, Forbidden):
                continue
            self._aggregator = maker_of(pod)
            return True
        return self._has_plan(timeout)

    def _find(self, timeout: float) -> Reading:
        from reporter.runctl.run_status import read_run_status

        if self._run and self._aggregator is not None:
            there = self._aggregator.namespace
            return read_run_status(self._api, there, run=self._run, timeout=timeout)
        reading = read_run_status(self._api, self._namespace, run=self._run, timeout=timeout)
        not_here = reading.outcome in {ReadOutcome.NOT_FOUND, ReadOutcome.FORBIDDEN}
        if not_here and self._run and not self._only_there:
            own = OWN_NAMESPACE.format(run=self._run)
            elsewhere = read_run_status(self._api, own, run=self._run, timeout=timeout)
            if elsewhere.outcome is ReadOutcome.FORBIDDEN is reading.outcome:
                return replace(reading, detail=f"{reading.detail}\n{elsewhere.detail}")
            if elsewhere.outcome is not ReadOutcome.NOT_FOUND:
                return elsewhere
            if reading.outcome is ReadOutcome.NOT_FOUND:
                return replace(reading, detail=not_found(self._run, self._places()))
        return reading

    def _places(self) -> list[str]:
        """Return the namespaces where the run may be, in the order in which it is sought."""
        own = [] if self._only_there else [OWN_NAMESPACE.format(run=self._run)]
        return [self._namespace, *own] if self._namespace else own

    def _still_there(self, timeout: float) -> str:
        """Say of a run without a Pod that it is there; return nothing where nobody says so.

        Raises CannotTell where no Pod will come: what made it is gone as well, or has ended.
        """
        if self._aggregator is None:
            planned = self._still_planned(timeout)
            if self._aggregator is None:
                return f"run {self._run}: {NO_POD}" if planned else ""
        return self._aggregator.without_pod(self._api, timeout)

    def _still_planned(self, timeout: float) -> bool:
        """Say whether the run has a plan, and find what makes the Pods of its aggregator.

        Raises CannotTell where the plan was there, and is gone with all the rest.
        """
        planned, sure = False, True
        try:
            planned = self._has_plan(timeout)
        except KubeError:
            sure = False
        for kind in ("StatefulSet", "Job") if self._plan_at else ():
            try:
                found = self._api.get(kind, self._plan_at, self._run, timeout=timeout)
            except NotFound:
                continue
            except KubeError:
                sure = False
                continue
            if _is_of(found, self._run):
                self._aggregator = Aggregator(kind, self._plan_at, self._run, self._run)
                return planned
        if sure and self._plan_at and not planned:
            raise CannotTell(f"run {self._run} was deleted")
        return planned

    def _has_plan(self, timeout: float) -> bool:
        """Return whether the run's plan is where it was seen before, or where the run may be.

        Raises KubeError where nobody says so; a run in a place without permission to look is not
        found.
        """
        if self._plan_at:
            try:
                return has_plan(self._api, self._plan_at, self._run, timeout=timeout)
            except NotFound:
                return False
        if self._run and self._namespace is None:
            self._plan_at = self._plan_anywhere(timeout)
            return bool(self._plan_at)
        for place in self._places() if self._run else ():
            try:
                found = has_plan(self._api, place, self._run, timeout=timeout)
            except (NotFound, Forbidden):
                continue
            if found:
                self._plan_at = place
                return True
        return False

    def _plan_anywhere(self, timeout: float) -> str:
        """Return the namespace of the newest plan of the run; nothing where none is seen."""
        from reporter.kube.reading import Ask

        if self._no_plans:
            return ""
        wanted = Ask(_PLANS, metadata_only=True, label_selector=selector(self._run))
        try:
            with closing(self._api.reading()) as reading:
                found = [
                    section(each, "metadata") for each in reading.every(wanted, timeout=timeout)
                ]
        except Forbidden as error:
            self._no_plans = _ONLY_PODS.format(cluster.words(error))
            return ""
        plans = [each for each in found if text(each, "name") == self._run]
        newest = max(plans, key=lambda each: text(each, "creationTimestamp"), default={})
        return text(newest, "namespace")


def has_plan(api: "KubeApi", namespace: str, run: str, *, timeout: float) -> bool:
    """Return whether that namespace has the plan of such a run. Raises KubeError."""
    found = api.get("ConfigMap", namespace, run, timeout=timeout)
    return _is_of(found, run)


def _is_of(found: Mapping[str, Any], run: str) -> bool:
    return section(found, "metadata", "labels").get(RUN_LABEL) == run
