"""Why a Pod does not go on: its status, its Events and its reporter's log, in order."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from reporter.common.objects import items, moment, section, text
from reporter.jobs.finding import (
    Finding,
    Object,
    exit_words,
    info,
    joined,
    last_event,
    problem,
    true_condition,
    warning,
)
from reporter.jobs.reporter_log import complaints, link_trouble, not_written, refused, words
from reporter.jobs.setting import Setup
from reporter.verdict.facts import Container, Form, Running, Terminated, Waiting
from reporter.verdict.not_starting import waiting_row
from reporter.verdict.pod import BY_KUBELET, EVICTING, find_adapter, read_container

_STUCK = 60.0  # seconds after which a Pod should be gone and is not
_UNSEEN = 10.0  # seconds in which a scheduler notices a Pod
_QUIET = 30.0  # seconds that the creation of a container may well take
_IDLE: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
IMAGE_ADVICE: Final = (
    "Check the image's name and tag, that the registry can be reached from the node, and "
    "imagePullSecrets."
)
_START_ADVICE: Final = "Check the container's command, working directory, mounts and hooks."
_TROUBLES: Final = {
    "W1": ("image-trouble", "cannot pull its image", IMAGE_ADVICE),
    "W2": (
        "config-trouble",
        "is missing part of its configuration",
        "Create the ConfigMap, Secret or key that is named, or fix the reference.",
    ),
    "W3": ("start-trouble", "cannot be started", _START_ADVICE),
}
"""By the row of the contract: code, text, advice."""
_UNWRITTEN: Final = {
    "": "Its log says more: kubectl logs.",
    "not_found": "Set JOB_NAME and JOB_NAMESPACE to this Job's.",
    "refused": "An admission policy or webhook denies the change: see the message.",
    "denied": "An admission policy or webhook denies the change: see the message.",
    "unauthorized": "The Pod's token is not accepted: check that its service account still exists.",
    "unavailable": "Check that the Pod can reach the API server: a NetworkPolicy, a proxy or a "
    "service mesh may block its requests.",
}


@dataclass(frozen=True)
class PodView:
    """A Pod at `now` (Unix seconds), Events, its reporter and the end of that one's log.

    `judged` says that its reporter has written the final verdict, `hidden` that this verdict names
    a cause that a deadline would have hidden.
    """

    pod: Object
    now: float
    events: Sequence[Object] = ()
    setup: Setup | None = None
    log: str = ""
    judged: bool = False
    hidden: bool = False

    @cached_property
    def name(self) -> str:
        """The Pod's."""
        return text(section(self.pod, "metadata"), "name")

    @cached_property
    def status(self) -> Object:
        """Its status."""
        return section(self.pod, "status")

    @cached_property
    def node(self) -> str:
        """Where it was scheduled; empty before."""
        return text(section(self.pod, "spec"), "nodeName")

    @cached_property
    def over(self) -> bool:
        """Whether it has ended."""
        return text(self.status, "phase") in {"Succeeded", "Failed"}

    @cached_property
    def taken_away(self) -> tuple[Finding, ...]:
        """How it was ended from outside."""
        return tuple(_taken_away(self))

    @cached_property
    def regular(self) -> list[Container]:
        """Its containers that are no init containers."""
        return self._containers("containerStatuses")

    @cached_property
    def containers(self) -> list[Container]:
        """All that the status shows, in their order."""
        return self._containers("initContainerStatuses") + self.regular

    @cached_property
    def own_events(self) -> list[Object]:
        """Those of the Events that are about it."""
        return [
            event
            for event in self.events
            if text(section(event, "involvedObject"), "name") == self.name
        ]

    def event(self, *reasons: str) -> str:
        """Return its newest Event with one of these reasons in words."""
        return last_event(self.own_events, *reasons)

    def _containers(self, kind: str) -> list[Container]:
        return [read_container(self.pod, text(each, "name")) for each in items(self.status, kind)]


def check_pod(it: PodView) -> Iterator[Finding]:
    """Yield what is in the Pod's way, the outermost first."""
    yield from it.taken_away
    disruption = true_condition(it.pod, "DisruptionTarget")
    if not it.taken_away and disruption:
        why = joined(text(disruption, "reason"), text(disruption, "message"))
        yield info("disruption-announced", f"Pod {it.name} has been marked for removal ({why}).")
    if text(it.status, "phase") == "Pending" and not it.node:
        yield _unscheduled(it)
        return
    for container in it.containers:
        if it.setup is not None and container.name == it.setup.name:
            yield from _reporter(it, container, it.setup)
        else:
            yield from _container(it, container, f"Container {container.name!r} of Pod {it.name}")
    if not it.over and not it.taken_away:
        yield from _not_created(it)


def _taken_away(it: PodView) -> Iterator[Finding]:
    reason = text(it.status, "reason")
    disruption = true_condition(it.pod, "DisruptionTarget")
    gone_at = moment(section(it.pod, "metadata"), "deletionTimestamp")
    begun = gone_at is not None or text(disruption, "reason") == BY_KUBELET
    if reason in EVICTING or (disruption and begun):
        why = joined(text(disruption, "reason"), text(disruption, "message"))
        said = joined(reason, text(it.status, "message"))
        yield problem(
            "evicted",
            f"Pod {it.name} was disrupted ({why or said}).",
            "Run the Job again. Check whether the node was drained, was short of memory or disk, "
            "or was needed for a Pod of higher priority.",
            said if why else "",
        )
    elif reason == "DeadlineExceeded":
        what = f"Pod {it.name} was terminated by its activeDeadlineSeconds."
        longer = "Raise the Pod's activeDeadlineSeconds, or make the work shorter."
        yield info("deadline", what) if it.hidden else problem("deadline", what, longer)
    if gone_at is not None and it.now > gone_at + _STUCK:
        yield problem(
            "stuck-terminating",
            f"Pod {it.name} should have been gone {int(it.now - gone_at)} s ago: its node "
            f"{it.node} does not respond, or a finalizer blocks its deletion.",
            "Check the node (kubectl get node) and the Pod's finalizers.",
        )
    elif gone_at is not None and not disruption:
        yield info("deleted", f"Pod {it.name} is being deleted.")


def _unscheduled(it: PodView) -> Finding:
    spec, conditions = section(it.pod, "spec"), items(it.status, "conditions")
    unmet = (each for each in conditions if text(each, "type") == "PodScheduled")
    condition = next((each for each in unmet if text(each, "status") != "True"), {})
    if text(condition, "reason") == "SchedulingGated":
        gates = ", ".join(text(gate, "name") for gate in items(spec, "schedulingGates"))
        return problem(
            "gated",
            f"Pod {it.name} is pending: it has scheduling gates ({gates or 'unnamed'}).",
            "The controller that added the gate has to remove it.",
        )
    why = text(condition, "message") or it.event("FailedScheduling")
    created = moment(section(it.pod, "metadata"), "creationTimestamp")
    waited = 0.0 if created is None else it.now - created
    if not condition and not why and waited > _UNSEEN:
        scheduler = text(spec, "schedulerName") or "default-scheduler"
        return problem(
            "no-scheduler",
            f"Pod {it.name} is pending: no scheduler has picked it up for {int(waited)} s.",
            f"Check that a scheduler named {scheduler!r} (spec.schedulerName) exists and is "
            "running: kubectl get pods -n kube-system",
        )
    return problem(
        "unschedulable",
        f"Pod {it.name} is pending: it cannot be scheduled" + (f" ({why})." if why else " yet."),
        "Compare what it requests (cpu, memory, node selector, tolerations, volumes) with what "
        "the nodes have (kubectl describe node).",
    )


def _container(it: PodView, container: Container, who: str, tail: str = "") -> Iterator[Finding]:
    """Yield what is wrong with any container; `tail` is what else follows from its not running."""
    name, state = container.name, container.state
    log = f"kubectl logs {it.name} -c {name}"
    # Whether the kubelet shows it as waiting or as ContainerStatusUnknown is a race.
    idle = info("not-running", f"{who} was not running when the Pod was terminated.")
    match state:
        case Waiting(reason, message) if row := waiting_row(state):
            code, what, todo = _TROUBLES[row]
            cause = _pull_failure(it.own_events, message) if row == "W1" else ""
            if it.hidden and it.taken_away and it.over:
                yield idle
            else:
                said = f"{who} {what} ({joined(reason, message)}).{tail}"
                yield problem(code, said, todo, cause, about=name)
        case Waiting("CrashLoopBackOff"):
            last = container.last or Terminated()
            said = f"{who} keeps failing: {_ended(last)}, restarted {container.restarts} times."
            yield problem("crash-loop", said, f"{log} --previous")
        case Terminated(code, reason) if state.out_of_memory:
            yield problem(
                "oom-killed",
                f"{who} ran out of memory and was killed (OOMKilled, exit code {code}).",
                "Raise its resources.limits.memory, or reduce its memory use.",
            )
        case Terminated(_, reason, message) if state.never_started:
            said = f"{who} could not be started ({reason}: {message})."
            yield problem("start-trouble", said, _START_ADVICE, about=name)
        case Terminated() if state.lost and it.hidden:
            yield idle
        case Terminated() if state.lost:
            yield problem(
                "lost",
                f"{who} was lost: the kubelet could not find it any more.",
                "Check the node: it or its container runtime was restarted.",
            )
        case Terminated(code) if code:
            # A grace period that ends leaves 137, too.
            suspect = code == 137 and not it.taken_away
            maybe = " It may have run out of memory." if suspect else ""
            yield info("exited", f"{who} ended: {_ended(state)}.{maybe}", log)


def _reporter(it: PodView, container: Container, setup: Setup) -> Iterator[Finding]:
    """Yield what is wrong with the reporter's container, its writes and its link."""
    who = f"The reporter's container {container.name!r} of Pod {it.name}"
    # A native reporter that runs for a moment, and fails, may let them start.
    held = all(isinstance(each.state, Waiting) and each.last is None for each in it.regular)
    tail = " The adapter does not start before it." if held and setup.form is Form.NATIVE else ""
    state = container.state
    match state:
        case Waiting("CrashLoopBackOff"):
            yield _reporter_failed(it, container, who, tail)
        case Terminated(code) if not (state.out_of_memory or state.never_started or state.lost):
            # In the classic form most verdicts go with exit code 1 (EXIT_POLICY).
            if code and not (code == 1 and it.judged):
                yield _reporter_failed(it, container, who, tail)
        case _:
            yield from _container(it, container, who, tail)
    if not it.judged:
        well = isinstance(state, Running) or (
            isinstance(state, Terminated) and state.exit_code == 0
        )
        yield from _unwritten(it.log, who, well=well)
    if trouble := link_trouble(it.log):
        yield warning(
            "link",
            f"{who} has problems with the link to the aggregator. The condition on the Job does "
            "not depend on it.",
            "Check AGGREGATOR_URL, the certificates and that the Pod can reach the aggregator "
            "(`status-reporter --check` checks the settings).",
            trouble,
        )


def _reporter_failed(it: PodView, container: Container, who: str, tail: str) -> Finding:
    """Return how the reporter ends again and again, or has ended.

    A native reporter that waits for its next start may be shown as ended, too.
    """
    waits, log = isinstance(container.state, Waiting), f"kubectl logs {it.name} -c {container.name}"
    run = container.state if isinstance(container.state, Terminated) else container.last
    run = run or Terminated()
    # Its message is the end of the log, which is shown elsewhere.
    how = exit_words(run.exit_code, run.reason, "")
    if waits or container.restarts:
        how += f", restarted {container.restarts} times"
    probed = f"{container.name} failed liveness"
    probes = [event for event in it.own_events if probed in text(event, "message")]
    if not waits and (probe := last_event(probes, "Killing")):
        return problem(
            "reporter-failed",
            f"{who} was killed, because its liveness probe failed: {how}.",
            "Remove the probe: it costs verdicts. /readyz shows the reporter's health.",
            probe,
        )
    todo = f"For the cause, see its log: {log}" + (" --previous" if waits else "")
    if invalid := run.exit_code == 2:
        todo = "Its settings are invalid: its log and `status-reporter --check` list them."
    # Every restart ends the same way.
    never = " No verdict will come until the setting is fixed." if invalid else ""
    return problem(
        "crash-loop" if waits else "reporter-failed",
        f"{who} {'keeps failing' if waits else 'exited'}: {how}.{never}{tail}",
        todo,
        *complaints(run.message or it.log),
    )


def _unwritten(log: str, who: str, *, well: bool) -> Iterator[Finding]:
    """Yield why the reporter's verdict is not on the Job, as far as its log says."""
    if line := refused(log):
        yield problem(
            "missing-rights",
            "The reporter lacks permissions: the API server denies its requests.",
            "Bind the Role of deploy/base to the Pod's service account (jobs/status: get, patch; "
            "pods: get, watch).",
            line,
        )
    elif well and (found := not_written(log)):
        advice = _UNWRITTEN.get(text(found, "failure"), _UNWRITTEN[""])
        yield problem("not-written", f"{who} could not write to the Job.", advice, words(found))


def _pull_failure(events: Sequence[Object], known: str) -> str:
    """Return the Event with the cause, where the status only says that the kubelet waits."""
    causes = [
        event
        for event in events
        if (parts := text(event, "message").partition(": "))[0].startswith("Failed to pull")
        and parts[2] not in known
    ]
    return last_event(causes, "Failed")


def _ended(run: Terminated) -> str:
    return exit_words(run.exit_code, run.reason, run.message.strip())


def _not_created(it: PodView) -> Iterator[Finding]:
    """Yield from the Events why nothing runs yet, if no container says it."""
    states = [each.state for each in it.containers]
    if not all(isinstance(state, Waiting) and state.reason in _IDLE for state in states):
        return
    since = moment(it.status, "startTime")
    if volume := it.event("FailedMount", "FailedAttachVolume", "FailedMapVolume"):
        yield problem(
            "volume",
            f"Pod {it.name} is pending: a volume cannot be mounted ({volume}).",
            "Create the ConfigMap, Secret or claim that is named, or check what else uses the "
            "volume.",
        )
    elif node := it.event("FailedCreatePodSandBox", "NetworkNotReady", "FailedCreatePodContainer"):
        yield problem(
            "sandbox",
            f"Pod {it.name} is pending: its node cannot create its sandbox ({node}).",
            "Check the node's network plugin and container runtime.",
        )
    elif since is not None and it.now - since > _QUIET:
        yield warning(
            "creating",
            f"Pod {it.name} has been creating its containers for {int(it.now - since)} s; an image "
            "may be large, or its events are gone.",
            f"kubectl describe pod {it.name}",
        )


def kept_running(it: PodView, setup: Setup) -> Iterator[Finding]:
    """Yield the regular containers that run longer than the adapter, or did so until a deadline."""
    adapter, _, _ = find_adapter(it.pod, setup.names)
    ended = read_container(it.pod, adapter).state
    if not isinstance(ended, Terminated) or "deletionTimestamp" in section(it.pod, "metadata"):
        return
    if text(section(it.pod, "spec"), "restartPolicy") == "OnFailure" and ended.exit_code != 0:
        return
    deadline = text(it.status, "reason") == "DeadlineExceeded"
    # The API's times are whole seconds.
    before = (ended.finished_at or math.inf) + 1
    for other in it.regular:
        match other.state:
            case _ if other.name in {adapter, setup.name}:
                continue
            case Running():
                how = "still runs: it keeps"
            case Terminated(finished_at=at) if deadline and (at or 0.0) > before:
                how = "ran until the deadline: it kept"
            case _:
                continue
        yield problem(
            "kept-alive",
            f"The adapter of Pod {it.name} has ended, but container {other.name!r} {how} the Pod, "
            "and so the Job, from ending.",
            f"Make {other.name!r} a native sidecar (an init container with restartPolicy: Always), "
            "or let it exit when the adapter has ended.",
        )
