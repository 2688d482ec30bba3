"""A run in the user's cluster: its aggregator's Pod, asked through a port-forward of our own.

Where that is not possible, the annotation on the Pod says how the run is. Results come only through
the port-forward.
"""

import argparse
import socket
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reporter.core.launch.names import RUN_LABEL, selector
from reporter.core.objects import items, number, section, text
from reporter.core.resources import Resource
from reporter.core.run.from_annotations import of_reading
from reporter.core.run.reading import Reading, ReadOutcome
from reporter.core.run.view import Look
from reporter.core.text import clean
from reporter.ctl import cluster
from reporter.ctl.exits import CannotTell
from reporter.ctl.run.by_http import ByHttp
from reporter.ctl.run.server import ANSWER, StatusServer
from reporter.ctl.run.tls import Address
from reporter.errors import Forbidden, KubeError, NotFound

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi
    from reporter.kube.port_forward import PortForward

OWN_NAMESPACE: Final = "status-reporter-{run}"
"""The namespace of a run that has one to itself."""
NO_RESULTS: Final = """\
results are not available: {why}
Ask for the right to create port-forwards (pods/portforward: create, get), or connect to the status
listener: see `status-ctl connect --help`"""

NO_POD: Final = "its aggregator has no Pod"
_ONLY_PODS: Final = (
    "; a run without a Pod is found only with the right to list configmaps in all namespaces: {}"
)
_PLANS: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
_STATUS_PORT: Final = "status"


def not_found(run: str, namespaces: Iterable[str]) -> str:
    """Say where a run was looked for."""
    places = " or ".join(map(repr, dict.fromkeys(namespaces)))
    return f"run {run!r} not found in namespace {places}"


class Aggregator(NamedTuple):
    """What makes the Pods of an aggregator, a StatefulSet or a Job; of a launched run, its name."""

    kind: str
    namespace: str
    name: str
    run: str


class ByCluster:
    """One run, the one named `run` or the one that there is. Raises CannotTell without a cluster.

    A namespace of None, from `-A`, means all of them.
    """

    pause = 2.0

    def __init__(self, options: argparse.Namespace, run: str = "") -> None:
        self._api, self._namespace = cluster.open_cluster(options)
        self._run, self._only_there = run, bool(options.namespace) or self._namespace is None
        where = f"namespace {self._namespace}" if self._namespace else "all namespaces"
        self.name = f"run {run}" if run else where
        self._http: ByHttp | None = None
        self._refused = ""  # why there is no port-forward, for good
        self._forward: PortForward | None = None
        self._aggregator: Aggregator | None = None  # what makes its Pods, once that is known
        self._plan_at = ""  # the namespace of its plan, once that was seen
        self._no_plans = ""  # why no plan is sought in all namespaces, for good

    def is_known(self, aggregator: Aggregator) -> None:
        """Take it that the run is there, before a look has shown it."""
        self._aggregator = aggregator

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask the status listener; without it read what the annotation says, which is not long.

        Raises CannotTell where a run that was there can tell no more: it was deleted, or its
        aggregator has ended.
        """
        trouble = ""
        if self._http is not None:
            look = self._http.look(timeout, entries=entries)
            if look.outcome is ReadOutcome.OK:
                return look
            trouble = self._lose(look)
        reading = self._read(timeout)
        if reading.pod is not None:
            self._aggregator = _aggregator(reading.pod)
        if reading.outcome is ReadOutcome.NOT_FOUND:
            there = self._still_there(timeout)
            reading = replace(reading, detail=there or reading.detail + self._no_plans)
        if reading.outcome is ReadOutcome.POD_NOT_RUNNING:
            self._still_possible(timeout)
        if reading.pod is not None and not trouble and self._connect(reading.pod):
            assert self._http is not None
            look = self._http.look(timeout, entries=entries)
            if look.outcome is ReadOutcome.OK:
                return look
            self._lose(look)
        return of_reading(reading)

    def exists(self, timeout: float = ANSWER) -> bool:
        """Say whether the API server shows us such a run, if only its plan: its Pod may move.

        Raises KubeError where it does not answer.
        """
        from reporter.sources.run_status import find_aggregator

        for place in self._places():
            try:
                pod, _ = find_aggregator(self._api, place, run=self._run, timeout=timeout)
            except (NotFound, Forbidden):
                continue
            self._aggregator = _aggregator(pod)
            return True
        return self._has_plan(timeout)

    @property
    def server(self) -> StatusServer:
        """The status listener. Raises CannotTell where it is not reached."""
        if self._http is None:
            raise CannotTell(
                NO_RESULTS.format(why=self._refused or "the aggregator does not answer")
            )
        return self._http.server

    def _still_there(self, timeout: float) -> str:
        """Say of a run without a Pod that it is there; return nothing where nobody says so.

        Raises CannotTell where no Pod will come: what made it is gone as well, or has ended.
        """
        if self._aggregator is None:
            planned = self._still_planned(timeout)
            if self._aggregator is None:
                return f"run {self._run}: {NO_POD}" if planned else ""
        kind, namespace, name, run = self._aggregator
        by_hand = f"the aggregator ({kind.lower()}/{name})"
        try:
            found = self._api.get(kind, namespace, name, timeout=timeout)
        except NotFound:
            raise CannotTell(f"{f'run {run}' if run else by_hand} was deleted") from None
        except KubeError:
            return ""
        if kind == "Job":
            _expect_a_word(found)
        return f"run {run}: {NO_POD}" if run else f"{by_hand} has no Pod"

    def _still_possible(self, timeout: float) -> None:
        """Raise CannotTell where an aggregator that was a Job's has ended without a last word."""
        if self._aggregator is None or self._aggregator.kind != "Job":
            return
        _, namespace, name, _ = self._aggregator
        try:
            job = self._api.get("Job", namespace, name, timeout=timeout)
        except KubeError:
            return
        _expect_a_word(job)

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

        Raises KubeError where nobody says so; who may not see a place does not find the run there.
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

    def _places(self) -> list[str]:
        """Return the namespaces where the run may be, in the order in which it is sought."""
        own = [] if self._only_there else [OWN_NAMESPACE.format(run=self._run)]
        return [self._namespace, *own] if self._namespace else own

    def _read(self, timeout: float) -> Reading:
        from reporter.sources.run_status import read_run_status

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

    def _connect(self, pod: Mapping[str, Any]) -> bool:
        """Prepare a port-forward to the Pod; return whether it may work."""
        scheme, port = _status_port(pod)
        running = text(section(pod, "status"), "phase") == "Running"
        if self._refused or port is None or not running:
            return False
        metadata = section(pod, "metadata")
        namespace, name = text(metadata, "namespace"), text(metadata, "name")

        def dial(timeout: float) -> socket.socket:
            try:
                self._forward = self._api.port_forward(namespace, name, port, timeout=timeout)
            except Forbidden as error:
                self._refused = str(error)
                raise ConnectionError(str(error)) from None
            except KubeError as error:
                raise ConnectionError(str(error)) from None
            return self._forward.socket

        # By the name of the local machine, as of every port-forward: others are refused. The API
        # server and the kubelet lead to this Pod: its certificate, by a CA that nobody may have to
        # read here, would prove nothing more.
        address = Address(f"{scheme}://localhost:{port}", verify=False)
        self._http = ByHttp(StatusServer(address, dial=dial), f"pod/{name}")
        return True

    def _lose(self, look: Look) -> str:
        """Give up the connection; return what was in the way."""
        self._http, forward, self._forward = None, self._forward, None
        if forward is None:
            return look.detail
        why = forward.error or look.detail
        forward.close()
        return why


def has_plan(api: "KubeApi", namespace: str, run: str, *, timeout: float) -> bool:
    """Return whether that namespace has the plan of such a run. Raises KubeError."""
    found = api.get("ConfigMap", namespace, run, timeout=timeout)
    return _is_of(found, run)


def _is_of(found: Mapping[str, Any], run: str) -> bool:
    return section(found, "metadata", "labels").get(RUN_LABEL) == run


def _expect_a_word(job: Mapping[str, Any]) -> None:
    """Raise CannotTell where the aggregator's Job has ended: no other Pod will tell of the run."""
    name = text(section(job, "metadata"), "name")
    for each in items(section(job, "status"), "conditions"):
        if text(each, "type") in {"Complete", "Failed"} and text(each, "status") == "True":
            said = clean(text(each, "message"), 512)
            raise CannotTell(
                f"the aggregator has ended (job/{name}: {text(each, 'type').lower()}"
                f"{f': {said}' if said else ''}) without the status of the run"
            )


def _aggregator(pod: Mapping[str, Any]) -> Aggregator | None:
    metadata = section(pod, "metadata")
    for owner in items(metadata, "ownerReferences"):
        if (kind := text(owner, "kind")) in {"StatefulSet", "Job"}:
            run = text(section(metadata, "labels"), RUN_LABEL)
            return Aggregator(kind, text(metadata, "namespace"), text(owner, "name"), run)
    return None


def _status_port(pod: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return scheme and port of the status listener, where the Pod is an aggregator of ours.

    Its probes say whether it speaks TLS: they ask the same listener.
    """
    for container in items(section(pod, "spec"), "containers"):
        for port in items(container, "ports"):
            if text(port, "name") == _STATUS_PORT:
                probed = section(container, "readinessProbe", "httpGet")
                scheme = "https" if text(probed, "scheme") == "HTTPS" else "http"
                return scheme, number(port, "containerPort")
    return "", None
