"""From the API's Pod object to `facts.Pod`: which container is the adapter, which form is ours."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reporter.common.defaults import REPORTER, RESULTS_PATH
from reporter.common.objects import Object, items, moment, number, section, text
from reporter.verdict.facts import (
    Blocker,
    Container,
    Disruption,
    Form,
    Pod,
    RestartPolicy,
    RestartRule,
    Running,
    State,
    Terminated,
    Waiting,
)

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

# Containers that are put into Pods from outside and mount nothing of ours worth writing to.
PROXIES = frozenset(
    {
        "istio-proxy",
        "linkerd-proxy",
        "envoy",
        "vault-agent",
        "cloud-sql-proxy",
        "kuma-sidecar",
        "consul-dataplane",
    }
)

# Reasons the kubelet writes on a Pod that it ended for the node's sake.
EVICTING = frozenset(
    {"Evicted", "Preempting", "Terminated", "NodeShutdown", "Shutdown", "NodeLost"}
)
BY_KUBELET = "TerminationByKubelet"  # a DisruptionTarget's; all others announce a deletion

RESTART_ALL = "RestartAllContainers"
RESTARTING = frozenset({"Restart", RESTART_ALL})  # actions of restartPolicyRules


@dataclass(frozen=True, slots=True)
class Names:
    """How to find the two containers: the settings that matter for reading a Pod."""

    reporter: str = REPORTER
    adapter: str = ""
    results_path: str = RESULTS_PATH
    form: Form | None = None  # nothing: read it from the Pod


def read_pod(pod: Object, names: Names) -> Pod:
    """Read an API Pod. Never raises; what the object does not show stays at its empty value."""
    metadata, spec, status = section(pod, "metadata"), section(pod, "spec"), section(pod, "status")
    labels = section(metadata, "labels")
    index = text(section(metadata, "annotations"), COMPLETION_INDEX)
    adapter_name, misfit, remarks = find_adapter(pod, names)
    form = names.form or find_form(spec, names.reporter)
    adapter = _container(status, "containerStatuses", adapter_name) if adapter_name else None
    deletion = moment(metadata, "deletionTimestamp")
    grace = number(metadata, "deletionGracePeriodSeconds")
    own_grace = number(spec, "terminationGracePeriodSeconds")
    deadline = number(spec, "activeDeadlineSeconds")
    volume = empty_dir(spec, names.reporter, names.results_path)
    return Pod(
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        created_at=moment(metadata, "creationTimestamp"),
        started_at=moment(status, "startTime"),
        phase=text(status, "phase"),
        reason=text(status, "reason"),
        message=text(status, "message"),
        job_name=text(labels, "batch.kubernetes.io/job-name") or text(labels, "job-name"),
        job_uid=text(labels, "batch.kubernetes.io/controller-uid")
        or text(labels, "controller-uid"),
        index=int(index) if index.isascii() and index.isdigit() else None,
        form=form,
        adapter=adapter,
        misfit=misfit,
        remarks=remarks,
        restart=_restart_policy(spec, declared(spec, adapter_name)),
        own_restart=_restart_policy(spec, declared(spec, names.reporter)),
        restarts_all=_restarts_all(spec, status, names.reporter),
        own_restarts=_restarts(status, names.reporter),
        only_adapters_write=bool(volume) and not init_writes(spec, names.reporter, volume),
        not_empty_dir=not volume,
        blocker=_blocker(spec, status, names.reporter),
        disruption=_disruption(status),
        # The API stores the moment the Pod has to be gone; the request came a grace period
        # earlier.
        deletion_requested_at=None if deletion is None else deletion - (grace or 0),
        deletion_grace=None if grace is None else float(grace),
        grace=30.0 if own_grace is None else float(own_grace),
        deadline=None if deadline is None else float(deadline),
        failing_at=_failing_at(status),
    )


def read_container(pod: Object, name: str) -> Container:
    """Read one container of whichever kind; one that waits for nothing where the API shows none."""
    status = section(pod, "status")
    for kind in ("containerStatuses", "initContainerStatuses"):
        if any(text(shown, "name") == name for shown in items(status, kind)):
            return _container(status, kind, name)
    return Container(name)


def find_form(spec: Object, reporter: str) -> Form | None:
    """Return the form in which the container `reporter` is in the Pod; None if it is not there."""
    if any(text(c, "name") == reporter for c in items(spec, "containers")):
        return Form.CLASSIC
    if any(text(c, "name") == reporter for c in items(spec, "initContainers")):
        return Form.NATIVE
    return None


def find_adapter(pod: Object, names: Names) -> tuple[str, str, tuple[str, ...]]:
    """Find the adapter among the regular containers: (name, why there is none, remarks).

    In this order: the setting; the default-container annotation; the only regular container beside
    ours; the only one that mounts the results volume writable and is not a known proxy; the first
    that is not ours, with a remark. Init containers are never the adapter.
    """
    spec = section(pod, "spec")
    regular = [name for c in items(spec, "containers") if (name := text(c, "name"))]
    init = [name for c in items(spec, "initContainers") if (name := text(c, "name"))]
    others = [name for name in regular if name != names.reporter]
    if names.adapter:
        if names.adapter in others:
            return names.adapter, "", ()
        return "", _misfit(names.adapter, regular, init), ()
    default = text(section(pod, "metadata", "annotations"), DEFAULT_CONTAINER)
    if default in others:
        return default, "", ()
    if len(others) == 1:
        return others[0], "", ()
    if not others:
        return "", f"the Pod has no container besides {names.reporter!r}", ()
    able = writers(spec, names.reporter, names.results_path)
    writing = [name for name in able if name in others and name not in PROXIES]
    if len(writing) == 1:
        return writing[0], "", ()
    if names.reporter not in regular + init:
        # Guessing now could make the reporter watch itself, whose end never comes.
        return "", _misfit(names.reporter, regular, init), ()
    remark = f"adapter container guessed: {others[0]!r} is the first of {', '.join(others)}"
    return others[0], "", (remark,)


def _misfit(name: str, regular: list[str], init: list[str]) -> str:
    kind = f"is {'an init container' if name in init else 'not a container'} of the Pod"
    if name in regular:
        kind = "is the reporter itself"
    shown = f"containers: {_listed(regular)}; init containers: {_listed(init)}"
    return f"{name!r} {kind}; {shown}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def _restart_policy(spec: Object, container: Object) -> RestartPolicy:
    policy = text(container, "restartPolicy") or text(spec, "restartPolicy") or "Always"
    return RestartPolicy(policy, _rules(container, RESTARTING))


def _rules(container: Object, actions: frozenset[str]) -> tuple[RestartRule, ...]:
    rules = []
    for rule in items(container, "restartPolicyRules"):
        codes = section(rule, "exitCodes")
        listed = codes.get("values")
        if text(rule, "action") in actions and isinstance(listed, list):
            numbers = frozenset(code for code in listed if isinstance(code, int))
            rules.append(RestartRule(numbers, among=text(codes, "operator") == "In"))
    return tuple(rules)


def _restarts_all(spec: Object, status: Object, reporter: str) -> bool:
    """Return whether the end of a container has all of them started again, or still can.

    The kubelet ends the Pod, and restarts no sidecar, when every regular container has ended. The
    reporter does not count: in the classic form it may be the last of them.
    """

    def others(kind: str, shown: str) -> Iterator[tuple[Object, State]]:
        for each in items(spec, kind):
            if (name := text(each, "name")) != reporter:
                yield each, _container(status, shown, name).state

    regular = list(others("containers", "containerStatuses"))
    going = not all(isinstance(state, Terminated) for _, state in regular)
    for container, state in (*regular, *others("initContainers", "initContainerStatuses")):
        policy = RestartPolicy("Never", _rules(container, frozenset({RESTART_ALL})))
        can = going if not isinstance(state, Terminated) else policy.restarts_after(state.exit_code)
        if policy.can_restart and can:
            return True
    return False


def _container(status: Object, kind: str, name: str) -> Container:
    shown = next((c for c in items(status, kind) if text(c, "name") == name), {})
    last = _terminated(section(shown, "lastState", "terminated"))
    return Container(
        name, _state(section(shown, "state")), last, number(shown, "restartCount") or 0
    )


def _restarts(status: Object, name: str) -> int | None:
    """Return how often a container of any kind was restarted, if the API shows it."""
    everyone = (*items(status, "containerStatuses"), *items(status, "initContainerStatuses"))
    return next((number(c, "restartCount") for c in everyone if text(c, "name") == name), None)


def _state(state: Object) -> State:
    if ended := _terminated(section(state, "terminated")):
        return ended
    if "running" in state:
        return Running(moment(section(state, "running"), "startedAt"))
    waiting = section(state, "waiting")
    return Waiting(text(waiting, "reason"), text(waiting, "message"))


def _terminated(shown: Object) -> Terminated | None:
    if not shown:
        return None
    return Terminated(
        exit_code=number(shown, "exitCode") or 0,
        reason=text(shown, "reason"),
        message=text(shown, "message"),
        started_at=moment(shown, "startedAt"),
        finished_at=moment(shown, "finishedAt"),
        signal=number(shown, "signal") or 0,
    )


def _blocker(spec: Object, status: Object, reporter: str) -> Blocker | None:
    """Return the init container that the regular ones wait for, the first in their order.

    That is one that has to succeed and has not, or a sidecar other than ours that is down. A
    sidecar that has started blocks nothing.
    """
    sidecar = None
    for init in items(spec, "initContainers"):
        container = _container(status, "initContainerStatuses", text(init, "name"))
        if text(init, "restartPolicy") == "Always":
            if _down(container.state) and container.name != reporter:
                sidecar = sidecar or Blocker(container, for_good=False)
            continue
        if isinstance(container.state, Terminated):
            if container.state.exit_code == 0:
                continue
            policy = _restart_policy(spec, init)
            return Blocker(container, not policy.restarts_after(container.state.exit_code))
        own = Blocker(container, for_good=False)
        return own if _begun(container) else sidecar or own
    regular = [text(shown, "name") for shown in items(status, "containerStatuses")]
    begun = any(_begun(_container(status, "containerStatuses", name)) for name in regular)
    return None if begun else sidecar


def _down(state: State) -> bool:
    """Return whether a sidecar waits to be started.

    Under `restartPolicy: Never` the kubelet shows the end of its last run until its next one.
    """
    return isinstance(state, Waiting) or (isinstance(state, Terminated) and state.exit_code != 0)


def _begun(container: Container) -> bool:
    return not isinstance(container.state, Waiting) or container.last is not None


def _disruption(status: Object) -> Disruption | None:
    ended = text(status, "reason") in EVICTING
    for condition in items(status, "conditions"):
        if text(condition, "type") == "DisruptionTarget" and text(condition, "status") == "True":
            reason = text(condition, "reason")
            under_way = ended or reason == BY_KUBELET
            return Disruption(reason, text(condition, "message"), under_way)
    if ended:
        return Disruption(text(status, "reason"), text(status, "message"), under_way=True)
    return None


def _failing_at(status: Object) -> float | None:
    for condition in items(status, "conditions"):
        if text(condition, "type") == "ContainersReady" and text(condition, "status") == "False":
            return (
                moment(condition, "lastTransitionTime")
                if text(condition, "reason") == "PodFailed"
                else None
            )
    return None


def declared(spec: Object, name: str) -> Object:
    """Return the container `name` of a Pod's spec, of any kind; empty if there is none."""
    everyone = (*items(spec, "containers"), *items(spec, "initContainers"))
    return next((c for c in everyone if text(c, "name") == name), {})


def writers(spec: Object, reporter: str, path: str) -> list[str]:
    """List the regular containers that mount the volume of `path` writable."""
    own = declared(spec, reporter)
    seen = [own] if own else items(spec, "containers")
    volume = next((found for c in seen if (found := volume_of(c, path))), "")
    return [text(c, "name") for c in items(spec, "containers") if writes(c, volume)]


def empty_dir(spec: Object, reporter: str, path: str) -> str:
    """Return the name of the emptyDir that `path` is on, or nothing if it is on another volume.

    The reporter's own mount identifies the volume.
    """
    volume = volume_of(declared(spec, reporter), path)
    kind = next((v for v in items(spec, "volumes") if text(v, "name") == volume), {})
    return volume if isinstance(kind.get("emptyDir"), Mapping) else ""


def init_writes(spec: Object, reporter: str, volume: str) -> bool:
    """Return whether an init container besides the reporter mounts a volume writable."""
    others = [c for c in items(spec, "initContainers") if text(c, "name") != reporter]
    return any(writes(c, volume) for c in others)


def writes(container: Object, volume: str) -> bool:
    """Return whether a container mounts a volume writable."""
    return any(
        text(mount, "name") == volume and mount.get("readOnly") is not True
        for mount in items(container, "volumeMounts")
    )


def volume_of(container: Object, path: str) -> str:
    """Return the name of the volume that `path` lies on."""
    return text(mount_of(container, path), "name")


def mount_of(container: Object, path: str) -> Object:
    """Return the mount that `path` lies on: the one with the longest path; empty without one."""
    path, found, longest = posixpath.normpath(path), dict[str, Any](), -1
    for mount in items(container, "volumeMounts"):
        base = mounted_at(mount).rstrip("/")
        if path.startswith(base + "/") and len(base) > longest:
            found, longest = dict(mount), len(base)
    return found


def mounted_at(mount: Object) -> str:
    """Return the path of a mount."""
    return posixpath.normpath(text(mount, "mountPath"))
