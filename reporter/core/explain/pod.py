"""Why one Pod does not go on: from its status and its events."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reporter.core.explain.finding import Finding, Object, info, problem, warning
from reporter.core.explain.setting import Setup
from reporter.core.facts import Form
from reporter.core.objects import epoch, items, moment, number, section, text
from reporter.core.pod import EVICTING
from reporter.core.trouble import CONFIG, IMAGE, START

_STUCK = 60.0  # seconds after which a Pod should be gone and is not
_QUIET = 30.0  # seconds that the creation of a container may well take
_VOLUME: Final = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_SANDBOX: Final = frozenset(
    {"FailedCreatePodSandBox", "NetworkNotReady", "FailedCreatePodContainer"}
)
_REFUSED = re.compile(r"\bforbidden\b", re.IGNORECASE)
_TODO: Final = {
    "image": "Check the image's name and tag, that the registry can be reached from the node, and "
    "imagePullSecrets.",
    "config": "Create the ConfigMap, Secret or key that is named, or mend the reference.",
    "start": "Check the container's command, working directory, mounts and hooks.",
}


def explain_pod(
    pod: Object, setup: Setup | None, events: Sequence[Object], log: str, now: float
) -> Iterator[Finding]:
    """Say what is in this Pod's way, the outermost first."""
    name = text(section(pod, "metadata"), "name")
    own = [event for event in events if text(section(event, "involvedObject"), "name") == name]
    gone = list(_taken_away(pod, name, now))
    yield from gone
    if text(section(pod, "status"), "phase") == "Pending" and not text(
        section(pod, "spec"), "nodeName"
    ):
        yield from _unscheduled(pod, name, own)
        return
    finished = text(section(pod, "status"), "phase") in {"Succeeded", "Failed"}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in items(section(pod, "status"), kind):
            yield from _container(container, setup, name, own, log)
    if not finished and not gone:
        yield from _not_created(pod, name, own, now)


def refused(log: str) -> str:
    """Return the newest line of a reporter's log that says what it may not do, or nothing."""
    return next((line for line in reversed(log.splitlines()) if _REFUSED.search(line)), "")


def last_event(events: Sequence[Object], reasons: frozenset[str]) -> str:
    """Return the newest event with one of these reasons, in words, or nothing."""
    fitting = [event for event in events if text(event, "reason") in reasons]
    if not fitting:
        return ""
    newest = max(fitting, key=_when)
    times = number(newest, "count") or number(section(newest, "series"), "count") or 1
    often = f" ({times} times)" if times > 1 else ""
    return f"{text(newest, 'reason')}: {text(newest, 'message')}{often}"


def _when(event: Object) -> float:
    stamps = (text(event, "lastTimestamp"), text(event, "eventTime"), text(event, "firstTimestamp"))
    return next((at for stamp in stamps if (at := epoch(stamp))), 0.0)


def _taken_away(pod: Object, name: str, now: float) -> Iterator[Finding]:
    status = section(pod, "status")
    reason, message = text(status, "reason"), text(status, "message")
    disruption: Object = next(
        (
            each
            for each in items(status, "conditions")
            if text(each, "type") == "DisruptionTarget" and text(each, "status") == "True"
        ),
        {},
    )
    if reason in EVICTING or disruption:
        why = ": ".join(filter(None, (text(disruption, "reason"), text(disruption, "message"))))
        said = ": ".join(filter(None, (reason, message)))
        yield problem(
            "evicted",
            f"The platform took Pod {name} away ({why or said}).",
            "Run it again; see whether the node was drained, short of memory or disk, or needed "
            "for a more important Pod.",
            said if why else "",
        )
    elif reason == "DeadlineExceeded":
        yield problem(
            "deadline",
            f"Pod {name} was ended by its activeDeadlineSeconds.",
            "Give the Pod more time, or make the work shorter.",
        )
    deletion = moment(section(pod, "metadata"), "deletionTimestamp")
    if deletion is not None:
        if now > deletion + _STUCK:
            yield problem(
                "stuck-terminating",
                f"Pod {name} should have been gone {int(now - deletion)} s ago: its node "
                f"{text(section(pod, 'spec'), 'nodeName')} is silent, or a finalizer holds it.",
                "Look at the node (kubectl get node) and at the Pod's finalizers.",
            )
        elif not disruption:
            yield info("deleted", f"Pod {name} is being deleted.")


def _unscheduled(pod: Object, name: str, events: Sequence[Object]) -> Iterator[Finding]:
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
            f"Pod {name} is pending: its scheduling gates are closed ({gates or 'unnamed'}).",
            "Whoever set the gate has to take it away.",
        )
        return
    why = text(condition, "message") or last_event(events, frozenset({"FailedScheduling"}))
    yield problem(
        "unschedulable",
        f"Pod {name} is pending: no node takes it" + (f" ({why})." if why else " yet."),
        "Compare what it asks for (cpu, memory, node selector, tolerations, volumes) with what the "
        "nodes have (kubectl describe node).",
    )


def _container(
    container: Object, setup: Setup | None, pod: str, events: Sequence[Object], log: str
) -> Iterator[Finding]:
    name = text(container, "name")
    ours = setup is not None and name == setup.name
    who = f"The reporter's container {name!r}" if ours else f"Container {name!r}"
    tail = ""
    if ours and setup is not None and setup.form is Form.NATIVE:
        tail = " The adapter does not start before it."
    waiting, ended = (
        section(container, "state", "waiting"),
        section(container, "state", "terminated"),
    )
    reason, message = text(waiting, "reason"), text(waiting, "message")
    sorts = (("image", IMAGE), ("config", CONFIG), ("start", START))
    sort = next((word for word, known in sorts if reason in known), "")
    if sort:
        said = f"{reason}: {message}" if message else reason
        hint = last_event(events, frozenset({"Failed"})) if reason == "ImagePullBackOff" else ""
        what = {"image": "has no image", "config": "lacks a part of its configuration"}
        yield problem(
            f"{sort}-trouble",
            f"{who} of Pod {pod} {what.get(sort, 'cannot be started')} ({said}).{tail}",
            _TODO[sort],
            hint,
        )
    elif reason == "CrashLoopBackOff":
        last = section(container, "lastState", "terminated")
        yield problem(
            "crash-loop",
            f"{who} of Pod {pod} keeps failing: {_ended(last)}, restarted "
            f"{number(container, 'restartCount') or 0} times.{tail}",
            _reporter_todo(last) if ours else f"kubectl logs {pod} -c {name} --previous",
        )
    elif ended:
        yield from _terminated(ended, who, name, pod, ours=ours)
    if ours and (line := refused(log)):
        yield problem(
            "missing-rights",
            "The reporter is not allowed to do its work: the API server refuses it.",
            "Bind the Role of deploy/base to the Pod's service account (jobs/status: get, patch; "
            "pods: get, watch).",
            line,
        )


def _terminated(ended: Object, who: str, name: str, pod: str, *, ours: bool) -> Iterator[Finding]:
    reason, code = text(ended, "reason"), number(ended, "exitCode") or 0
    if reason == "OOMKilled":
        yield problem(
            "oom-killed",
            f"{who} of Pod {pod} was killed for memory (OOMKilled, exit code {code}).",
            "Raise its resources.limits.memory, or find what uses so much.",
        )
    elif reason in {"StartError", "ContainerCannotRun"}:
        yield problem(
            "start-trouble",
            f"{who} of Pod {pod} could not be started ({reason}: {text(ended, 'message')}).",
            _TODO["start"],
        )
    elif reason == "ContainerStatusUnknown":
        yield problem(
            "lost",
            f"{who} of Pod {pod} was lost: the kubelet found it gone.",
            "Look at the node: it was restarted, or its runtime was.",
        )
    elif ours and code:
        yield problem(
            "reporter-failed",
            f"{who} of Pod {pod} ended by itself: {_ended(ended)}.",
            _reporter_todo(ended),
        )
    elif code:
        maybe = " It may have been killed for memory." if code == 137 else ""
        yield info(
            "exited",
            f"{who} of Pod {pod} ended: {_ended(ended)}.{maybe}",
            f"kubectl logs {pod} -c {name}",
        )


def _not_created(pod: Object, name: str, events: Sequence[Object], now: float) -> Iterator[Finding]:
    """Nothing runs yet and no container says why: the events do."""
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
            "Create the ConfigMap, Secret or claim that is named, or see who holds the volume.",
        )
    elif sandbox:
        yield problem(
            "sandbox",
            f"Pod {name} is pending: its node cannot set it up ({sandbox}).",
            "Look at the node's network plugin and runtime.",
        )
    elif since is not None and now - since > _QUIET:
        yield warning(
            "creating",
            f"Pod {name} has been creating its containers for {int(now - since)} s; an image "
            "may be large, or its events are gone.",
            f"kubectl describe pod {name}",
        )


def _ended(run: Object) -> str:
    said = ": ".join(filter(None, (text(run, "reason"), text(run, "message").strip())))
    return f"exit code {number(run, 'exitCode') or 0}" + (f" ({said})" if said else "")


def _reporter_todo(run: Object) -> str:
    if number(run, "exitCode") == 2:
        return "Its settings are wrong: its log names each (status-reporter --check does, too)."
    return "Its log says why: kubectl logs POD -c status-reporter --previous"
