"""A run in the user's cluster: found by its aggregator's Pod, what makes that, or its plan.

It is asked through a port-forward of our own. Where that is not possible, the annotation on the Pod
says how the run is; results come only through the port-forward.
"""

import argparse
import shlex
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from reporter.cli.cluster import TIMEOUT, open_cluster, words
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.common.objects import Object, View, items, number, section, text
from reporter.common.text import clean
from reporter.errors import Forbidden, KubeError, NotFound
from reporter.run.names import RUN_LABEL, selector
from reporter.run.pod_status import NAMED, Reading, newest_first, of_reading
from reporter.run.view import Look, ReadOutcome
from reporter.runctl import own_runs
from reporter.runctl.run_status import find_aggregator, not_found, read_run_status
from reporter.runctl.server import ANSWER, Address, ByHttp, StatusServer
from reporter.runctl.spec import AGGREGATOR, CREATED_BY, EVERY_RUN, OWN_NAMESPACE, PLAN

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi
    from reporter.kube.port_forward import PortForward

NO_POD: Final = "its aggregator has no Pod"
_UNREACHABLE: Final = """\
the aggregator cannot be reached: {why}
Request permission to create port-forwards (pods/portforward: create, get), or, for commands that
have these options, specify the status listener with --url or --connection"""
_ONLY_PODS: Final = (
    "; a run without a Pod is found only with the right to list configmaps in all namespaces: {}"
)
_STATUS_PORT: Final = "status"
_TRACES: Final = ("Job", "Secret", "Role")
"""Kinds of which a run that is not wholly deleted has something left."""


class Maker(NamedTuple):
    """What makes the Pods of an aggregator; of a launched run, its name."""

    kind: str
    namespace: str
    name: str
    run: str = ""


class ByCluster:
    """One run, the one named `run` or the one that there is, in the first of `places` that has it.

    None stands for all namespaces. What was seen of the run is remembered: one whose Pod moves or
    is still to come is told from one that was deleted.
    """

    pause = 2.0

    def __init__(self, api: "KubeApi", places: Sequence[str | None], run: str = "") -> None:
        self._api, self._places, self._run = api, places, run
        self._others: str | None = None  # which runs are elsewhere, once that is known
        self.maker: Maker | None = None
        """What makes the Pods, once that is known."""
        self._plan_at = ""  # the namespace of its plan, once that was seen
        self._no_plans = ""  # why no plan is sought in all namespaces, for good
        self._http: ByHttp | None = None
        self._refused = ""  # why there is no port-forward, for good
        self._forward: PortForward | None = None

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask the status listener; without it read what the annotation says, which is not long.

        Raises CannotTell where a run that was there can tell no more: it was deleted, or its
        aggregator has ended.
        """
        reading = None if self._http else self._read(timeout)
        if reading is not None and reading.pod is not None:
            self._connect(reading.pod)
        if self._http is not None:
            look = self._http.look(timeout, entries=entries)
            if look.outcome is ReadOutcome.OK:
                return look
            self.close()
        return of_reading(reading or self._read(timeout))

    def close(self) -> None:
        """End the connection; the next look makes another one."""
        http, forward, self._http, self._forward = self._http, self._forward, None, None
        if http is not None:
            http.server.close()
        if forward is not None:
            forward.close()

    @property
    def server(self) -> StatusServer:
        """The status listener, once a look has reached it. Raises CannotTell."""
        if self._http is None:
            why = self._refused or "it does not answer"
            raise CannotTell(_UNREACHABLE.format(why=why))
        return self._http.server

    def forward(self, near: socket.socket | None = None) -> "tuple[str, PortForward]":
        """Return the scheme of the status listener, and a new connection to it, for `near` if any.

        Raises CannotTell.
        """
        reading = self._read(ANSWER)
        found = reading.pod or {}
        scheme, port = _status_port(found)
        if port is None or reading.outcome is ReadOutcome.POD_NOT_RUNNING:
            raise CannotTell(of_reading(reading).detail or "it has no status listener")
        place = View(found).namespace, View(found).name
        try:
            return scheme, self._api.port_forward(*place, port, timeout=ANSWER, near=near)
        except KubeError as error:
            raise CannotTell(_UNREACHABLE.format(why=words(error))) from None

    def exists(self, timeout: float) -> bool:
        """Say whether the API server shows us such a run, if only its plan: its Pod may move.

        Raises KubeError where it does not answer.
        """
        for place in self._places:
            try:
                pod, _ = find_aggregator(self._api, place, run=self._run, timeout=timeout)
            except (NotFound, Forbidden):
                continue
            self.maker = _maker_of(pod)
            return True
        return self._has_plan(timeout)

    def _connect(self, pod: Object) -> None:
        """Prepare a port-forward to the Pod where it may work."""
        scheme, port = _status_port(pod)
        running = text(section(pod, "status"), "phase") == "Running"
        if self._refused or port is None or not running:
            return
        namespace, name = View(pod).namespace, View(pod).name

        def dial(timeout: float) -> socket.socket:
            try:
                self._forward = self._api.port_forward(namespace, name, port, timeout=timeout)
            except KubeError as error:
                if isinstance(error, Forbidden):
                    self._refused = str(error)
                raise ConnectionError(str(error)) from None
            return self._forward.socket

        # By the name of the local machine, as of every port-forward: others are refused. The API
        # server and the kubelet lead to this Pod: its certificate, by a CA that nobody may have to
        # read here, would prove nothing more.
        address = Address(f"{scheme}://localhost:{port}", verify=False)
        self._http = ByHttp(StatusServer(address, dial=dial), f"pod/{name}")

    def _read(self, timeout: float) -> Reading:
        """Find the Pod and read the status on it. Whatever goes wrong is an outcome.

        Raises CannotTell where no Pod will tell more of a run that was there.
        """
        reading = self.find(timeout)
        if reading.pod is not None:
            self.maker = _maker_of(reading.pod)
        if reading.outcome is ReadOutcome.NOT_FOUND and not (self._run or self.maker):
            return replace(reading, detail=reading.detail + self._elsewhere(timeout))
        if reading.outcome is ReadOutcome.NOT_FOUND:
            there = self._without_pod(timeout)
            return replace(reading, detail=there or reading.detail + self._no_plans)
        if reading.outcome is ReadOutcome.POD_NOT_RUNNING and self.maker is not None:
            self._maker_says(self.maker, timeout)
        return reading

    def find(self, timeout: float = ANSWER) -> Reading:
        """Return the Pod, and what it says. Whatever goes wrong is an outcome."""
        places = [self.maker.namespace] if self._run and self.maker else self._places
        missing: list[Reading] = []
        for place in places:
            reading = read_run_status(self._api, place, run=self._run, timeout=timeout)
            if reading.outcome not in {ReadOutcome.NOT_FOUND, ReadOutcome.FORBIDDEN}:
                return reading
            missing.append(reading)
        if refused := [each for each in missing if each.outcome is ReadOutcome.FORBIDDEN]:
            return replace(refused[0], detail="\n".join(each.detail for each in refused))
        if len(places) == 1:
            return missing[0]
        return replace(missing[0], detail=not_found(self._run, places))

    def _elsewhere(self, timeout: float) -> str:
        """Say which runs there are in other namespaces, as far as they are shown."""
        if self._others is None and self._places != [None]:
            self._others = "; use -n NAMESPACE or -A"
            with suppress(KubeError):
                jobs = map(View, self._api.list_all("Job", None, EVERY_RUN, timeout=timeout))
                found = [f"{job.namespace}/{job.name}" for job in jobs]
                if there := [run for run in found if run.split("/")[0] not in self._places]:
                    named = ", ".join(sorted(there)[:NAMED])
                    self._others = f"; in other namespaces: {named}{self._others}"
        return self._others or ""

    def _without_pod(self, timeout: float) -> str:
        """Say of a run without a Pod that it is there; return nothing where nobody says so.

        Raises CannotTell where no Pod will come: what made it is gone as well, or has ended.
        """
        if self.maker is not None:
            return self._maker_says(self.maker, timeout)
        planned = _known(lambda: self._has_plan(timeout))
        if self._plan_at:
            maker = Maker("Job", self._plan_at, self._run, self._run)
            made = _known(lambda: _is_of(self._api.get(*maker[:3], timeout=timeout), self._run))
            if made:
                self.maker = maker
                return self._maker_says(maker, timeout)
            if planned is False and made is False:
                raise CannotTell(f"run {self._run} was deleted")
        return f"run {self._run}: {NO_POD}" if planned else ""

    def _maker_says(self, maker: Maker, timeout: float) -> str:
        """Say that the maker of a Pod, which is gone or does not run, is there without it.

        Nothing where nobody says so. Raises CannotTell where no other Pod will come.
        """
        kind, namespace, name, run = maker
        made_by = f"{kind.lower()}/{name}"
        who = f"run {run}" if run else f"the aggregator ({made_by})"
        try:
            found = self._api.get(kind, namespace, name, timeout=timeout)
        except NotFound:
            raise CannotTell(f"{who} was deleted") from None
        except KubeError:
            return ""
        if ended := View(found).condition("Complete", "Failed", status="True"):
            said = clean(text(ended, "message"), 512)
            raise CannotTell(
                f"the aggregator has ended ({made_by}: {text(ended, 'type').lower()}"
                f"{f': {said}' if said else ''}) without the status of the run"
            )
        return f"{who}: {NO_POD}" if run else f"{who} has no Pod"

    def _has_plan(self, timeout: float) -> bool:
        """Return whether the run's plan is where it was seen before, or where the run may be.

        Raises KubeError where nobody says so; a run in a place without permission to look is not
        found.
        """
        if self._plan_at:
            return has_plan(self._api, self._plan_at, self._run, timeout=timeout)
        for place in self._places if self._run else ():
            if place is None:
                self._plan_at = self._plan_anywhere(timeout)
                continue
            with suppress(NotFound, Forbidden):
                if has_plan(self._api, place, self._run, timeout=timeout):
                    self._plan_at = place
                    break
        return bool(self._plan_at)

    def _plan_anywhere(self, timeout: float) -> str:
        """Return the namespace of the newest plan of the run; nothing where none is seen."""
        if self._no_plans:
            return ""
        try:
            listed = list(
                self._api.list_all(
                    PLAN, None, selector(self._run), metadata_only=True, timeout=timeout
                )
            )
        except Forbidden as error:
            self._no_plans = _ONLY_PODS.format(words(error))
            return ""
        plans = newest_first([each for each in listed if View(each).name == self._run])
        return View(plans[0]).namespace if plans else ""


def place_words(namespace: str, options: argparse.Namespace, *, own: bool = False) -> str:
    """Return the options by which a command finds a run there; its own is found by its name."""
    where = "" if own and not options.namespace else f" -n {namespace}"
    for name in ("context", "kubeconfig"):
        if given := getattr(options, name):
            where += f" --{name} {shlex.quote(given)}"
    return where


def by_cluster(options: argparse.Namespace, run: str = "", *, own: bool = False) -> ByCluster:
    """Return the run that the options name, or the one that there is. Raises CannotTell.

    It is sought in the context's namespace and, by its name, in its own one; in no other place than
    the namespace of `-n`, or with `-A` in all. With `own` it is the newest that this user has
    started where the namespace has neither an aggregator nor what makes one.
    """
    api, namespace = open_cluster(options)
    if own and namespace and _has_none(api, namespace) and (found := own_runs.newest(api)):
        tell(f"run {found[1]} in namespace {found[0]}: the newest that you started")
        return ByCluster(api, found[:1], found[1])
    return ByCluster(api, _places(options, namespace, run), run)


def _has_none(api: "KubeApi", namespace: str) -> bool:
    """Return whether it is known that a namespace has neither an aggregator nor its maker."""
    if read_run_status(api, namespace, timeout=TIMEOUT).outcome is ReadOutcome.NOT_FOUND:
        with suppress(KubeError):
            kinds = "StatefulSet", "Job"
            found = (api.list_all(each, namespace, AGGREGATOR, timeout=TIMEOUT) for each in kinds)
            return not any(map(list, found))
    return False


def _places(options: argparse.Namespace, namespace: str | None, run: str) -> list[str | None]:
    own = [OWN_NAMESPACE.format(run=run)] if run and namespace and not options.namespace else []
    return [namespace, *own]


Trace = Callable[["KubeApi", str, str], bool]
"""Says whether a namespace has something of a run. Raises KubeError."""


def named_run(options: argparse.Namespace, *more: Trace) -> "tuple[KubeApi, str, str]":
    """Return the API, the namespace and the name of the run that a command was given.

    A run has its plan as long as it is there; what a deletion that was interrupted has left may
    lack it, and `more` finds what is left elsewhere. Raises KubeError, CannotTell.
    """
    run = options.run_name
    api, namespace = open_cluster(options)
    # As for `ByCluster`: two commands must not mean two runs of one name.
    places = [place for place in _places(options, namespace, run) if place]
    hidden: dict[str, str] = {}
    for trace in (has_plan, _has_rest, _is_created_by, *more):
        for place in places:
            try:
                if trace(api, place, run):
                    return api, place, run
            except NotFound:
                continue
            except Forbidden as error:
                if trace is has_plan:
                    hidden[place] = words(error)
    seen = [place for place in places if place not in hidden]
    told = [not_found(run, seen)] if seen else []
    told += [f"no access to namespace {place}: {why}" for place, why in hidden.items()]
    raise CannotTell("\n".join(told))


def exists(api: "KubeApi", kind: str, namespace: str | None, name: str) -> bool:
    """Return whether there is such an object. Raises KubeError."""
    try:
        api.get(kind, namespace, name, timeout=TIMEOUT)
    except NotFound:
        return False
    return True


def is_gone(api: "KubeApi", kind: str, namespace: str | None, name: str) -> bool:
    """Return whether it is known that there is no such object: without permission it is not."""
    try:
        return not exists(api, kind, namespace, name)
    except KubeError:
        return False


def has_plan(api: "KubeApi", namespace: str, run: str, *, timeout: float = TIMEOUT) -> bool:
    """Return whether that namespace has the plan of such a run. Raises KubeError."""
    return _is_of(api.get(PLAN, namespace, run, timeout=timeout), run)


def _has_rest(api: "KubeApi", namespace: str, run: str) -> bool:
    return any(
        api.list_page(kind, namespace, selector(run), limit=1, timeout=TIMEOUT).items
        for kind in _TRACES
    )


def _is_created_by(api: "KubeApi", namespace: str, run: str) -> bool:
    found = api.get("Namespace", None, namespace, timeout=TIMEOUT)
    return text(View(found).annotations, CREATED_BY) == run


def _known(look: Callable[[], bool]) -> bool | None:
    """Return what is there; None while nobody says so."""
    try:
        return look()
    except NotFound:
        return False
    except KubeError:
        return None


def _is_of(found: Object, run: str) -> bool:
    return text(View(found).labels, RUN_LABEL) == run


def _maker_of(pod: Object) -> Maker | None:
    """Return what makes that Pod; None where it is neither a Job nor a StatefulSet."""
    view = View(pod)
    for owner in items(section(pod, "metadata"), "ownerReferences"):
        if (kind := text(owner, "kind")) in {"Job", "StatefulSet"}:
            return Maker(kind, view.namespace, text(owner, "name"), text(view.labels, RUN_LABEL))
    return None


def _status_port(pod: Object) -> tuple[str, int | None]:
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
