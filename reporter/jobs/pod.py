"""Why a Pod does not go on: from its status and its events."""

from collections.abc import Iterator, Sequence
from typing import Final

from reporter.common.objects import items, moment, section, text
from reporter.jobs.container import Around, diagnose_container
from reporter.jobs.events import last_event
from reporter.jobs.finding import Finding, Object, info, problem, warning
from reporter.jobs.setting import Setup
from reporter.verdict.pod import BY_KUBELET, EVICTING

_STUCK = 60.0  # seconds after which a Pod should be gone and is not
_UNSEEN = 10.0  # seconds in which a scheduler notices a Pod
_QUIET = 30.0  # seconds that the creation of a container may well take
_VOLUME: Final = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_SANDBOX: Final = frozenset(
    {"FailedCreatePodSandBox", "NetworkNotReady", "FailedCreatePodContainer"}
)


def diagnose_pod(
    pod: Object,
    setup: Setup | None,
    events: Sequence[Object],
    log: str,
    now: float,
    *,
    judged: bool = False,
    hidden: bool = False,
) -> Iterator[Finding]:
    """Yield what is in this Pod's way, the outermost first.

    `judged` says that its reporter has written the final verdict, `hidden` that this verdict names
    a cause that a deadline would have hidden.
    """
    name = text(section(pod, "metadata"), "name")
    own = [event for event in events if text(section(event, "involvedObject"), "name") == name]
    gone = list(_taken_away(pod, name, now, hidden=hidden))
    yield from gone
    if not gone and (announced := _disruption(section(pod, "status"))):
        why = ": ".join(filter(None, (text(announced, "reason"), text(announced, "message"))))
        yield info("disruption-announced", f"Pod {name} has been marked for removal ({why}).")
    if text(section(pod, "status"), "phase") == "Pending" and not text(
        section(pod, "spec"), "nodeName"
    ):
        yield from _unscheduled(pod, name, own, now)
        return
    finished = text(section(pod, "status"), "phase") in {"Succeeded", "Failed"}
    # A native reporter that runs for a moment, and fails, may let them start.
    held = all(
        "waiting" in section(each, "state") and not section(each, "lastState")
        for each in items(section(pod, "status"), "containerStatuses")
    )
    around = Around(
        setup, name, own, log, judged, hidden, stopped=bool(gone), over=finished, held=held
    )
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in items(section(pod, "status"), kind):
            yield from diagnose_container(container, around)
    if not finished and not gone:
        yield from _not_created(pod, name, own, now)


def _taken_away(pod: Object, name: str, now: float, *, hidden: bool) -> Iterator[Finding]:
    status = section(pod, "status")
    reason, message = text(status, "reason"), text(status, "message")
    deletion = moment(section(pod, "metadata"), "deletionTimestamp")
    disruption = _disruption(status)
    begun = deletion is not None or text(disruption, "reason") == BY_KUBELET
    if reason in EVICTING or (disruption and begun):
        why = ": ".join(filter(None, (text(disruption, "reason"), text(disruption, "message"))))
        said = ": ".join(filter(None, (reason, message)))
        yield problem(
            "evicted",
            f"Pod {name} was disrupted ({why or said}).",
            "Run the Job again. Check whether the node was drained, was short of memory or disk, "
            "or was needed for a Pod of higher priority.",
            said if why else "",
        )
    elif reason == "DeadlineExceeded":
        what = f"Pod {name} was terminated by its activeDeadlineSeconds."
        if hidden:
            yield info("deadline", what)
        else:
            yield problem(
                "deadline", what, "Raise the Pod's activeDeadlineSeconds, or make the work shorter."
            )
    if deletion is not None:
        if now > deletion + _STUCK:
            yield problem(
                "stuck-terminating",
                f"Pod {name} should have been gone {int(now - deletion)} s ago: its node "
                f"{text(section(pod, 'spec'), 'nodeName')} does not respond, or a finalizer "
                "blocks its deletion.",
                "Check the node (kubectl get node) and the Pod's finalizers.",
            )
        elif not disruption:
            yield info("deleted", f"Pod {name} is being deleted.")


def _disruption(status: Object) -> Object:
    """Return the Pod's DisruptionTarget condition, where it is true."""
    conditions = items(status, "conditions")
    targets = (each for each in conditions if text(each, "type") == "DisruptionTarget")
    return next((each for each in targets if text(each, "status") == "True"), {})


def _unscheduled(pod: Object, name: str, events: Sequence[Object], now: float) -> Iterator[Finding]:
    condition: Object = next(
        (
            each
            for each in items(section(pod, "status"), "conditions")
            if text(each, "type") == "PodScheduled" and text(each, "status") != "True"
        ),
        {},
    )
    if text(condition, "reason") == "SchedulingGated":
        gates = ", ".join(
            text(gate, "name") for gate in items(section(pod, "spec"), "schedulingGates")
        )
        yield problem(
            "gated",
            f"Pod {name} is pending: it has scheduling gates ({gates or 'unnamed'}).",
            "The controller that added the gate has to remove it.",
        )
        return
    created = moment(section(pod, "metadata"), "creationTimestamp")
    waited = 0.0 if created is None else now - created
    if (
        not condition
        and waited > _UNSEEN
        and not last_event(events, frozenset({"FailedScheduling"}))
    ):
        scheduler = text(section(pod, "spec"), "schedulerName") or "default-scheduler"
        yield problem(
            "no-scheduler",
            f"Pod {name} is pending: no scheduler has picked it up for {int(waited)} s.",
            f"Check that a scheduler named {scheduler!r} (spec.schedulerName) exists and is "
            "running: kubectl get pods -n kube-system",
        )
        return
    why = text(condition, "message") or last_event(events, frozenset({"FailedScheduling"}))
    yield problem(
        "unschedulable",
        f"Pod {name} is pending: it cannot be scheduled" + (f" ({why})." if why else " yet."),
        "Compare what it requests (cpu, memory, node selector, tolerations, volumes) with what "
        "the nodes have (kubectl describe node).",
    )


def _not_created(pod: Object, name: str, events: Sequence[Object], now: float) -> Iterator[Finding]:
    """Yield from the events why nothing runs yet, if no container says it."""
    status = section(pod, "status")
    states = [
        section(each, "state")
        for kind in ("initContainerStatuses", "containerStatuses")
        for each in items(status, kind)
    ]
    idle = {"ContainerCreating", "PodInitializing", ""}
    if any("running" in state or "terminated" in state for state in states):
        return
    if any(text(section(state, "waiting"), "reason") not in idle for state in states):
        return
    volume, sandbox = last_event(events, _VOLUME), last_event(events, _SANDBOX)
    since = moment(status, "startTime")
    if volume:
        yield problem(
            "volume",
            f"Pod {name} is pending: a volume cannot be mounted ({volume}).",
            "Create the ConfigMap, Secret or claim that is named, or check what else uses the "
            "volume.",
        )
    elif sandbox:
        yield problem(
            "sandbox",
            f"Pod {name} is pending: its node cannot create its sandbox ({sandbox}).",
            "Check the node's network plugin and container runtime.",
        )
    elif since is not None and now - since > _QUIET:
        yield warning(
            "creating",
            f"Pod {name} has been creating its containers for {int(now - since)} s; an image "
            "may be large, or its events are gone.",
            f"kubectl describe pod {name}",
        )
