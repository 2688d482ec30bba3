"""What an entry is in whose Pod a DaemonSet keeps: containers are restarted, Pods are replaced.

So the end of a container, or of a Pod, is not the end of the entry: its result is, or its deadline,
or too many of these ends.
"""

from dataclasses import replace

from reporter.core.facts import Terminated
from reporter.core.launch.names import Maker
from reporter.core.launch.seen import Refusal, SeenJob, SeenPod
from reporter.core.launch.situation import (
    LATE,
    MINUTE,
    MOST_RESTARTS,
    SETTLE,
    ending,
    in_trouble,
    running,
)
from reporter.core.launch.world import Row, Situation, Track
from reporter.core.run.record import Cause


def with_pod(track: Track | None, pod: SeenPod | None) -> Track | None:
    """Note that an entry has another Pod than before, if it has."""
    if track is None or pod is None or track.pod in {"", pod.name}:
        return track
    return replace(track, pod=pod.name, replaced=track.replaced + 1)


def daemon_situation(
    maker: Maker,
    job: SeenJob | None,
    pod: SeenPod | None,
    refusal: Refusal | None,
    track: Track | None,
    *,
    node: str,
    started: bool,
    start_timeout: float,
) -> Situation:
    """Say what an open entry is in that was launched by the DaemonSet `maker`, seen as `job`.

    Before its plugin has started it stays in rows that the start timeout ends: no deadline would.
    A Pod that replaces another has as long.
    """
    found = _situation(maker, job, pod, refusal, track, node=node, started=started)
    if not started or found.row is Row.RUNNING:
        return found
    patience = start_timeout if found.patience is None else found.patience
    return replace(found, patience=patience, cause=Cause.POD_FAILED)


def _situation(
    maker: Maker,
    job: SeenJob | None,
    pod: SeenPod | None,
    refusal: Refusal | None,
    track: Track | None,
    *,
    node: str,
    started: bool,
) -> Situation:
    taken = pod.taken if pod is not None else None
    if (job is None or job.deleting) and (pod is None or taken is not None):
        text = f"{maker} was deleted before its result came"
        known = job is not None or (track is not None and track.pod != "")
        # It may just not have been seen yet: after its creation, or our start.
        patience = SETTLE if known else MINUTE
        if pod is not None and taken is not None and pod.ours_running:
            patience = taken.grace + LATE
        return Situation(Row.JOB_GONE, "DaemonSetDeleted", text, text, patience, Cause.POD_FAILED)
    if pod is not None and (found := _restarted(pod)) is not None:
        return found
    if track is not None and track.replaced > MOST_RESTARTS:
        text = f"The Pod of {maker} on node {node} was replaced {track.replaced} times"
        if track.end is not None:
            text = f"{text}: {track.end.text}"
        return Situation(Row.RESTARTED, "Replaced", text, text, 0.0, Cause.POD_FAILED)
    if pod is None:
        return _without_pod(maker, node, refusal, started=started)
    if pod.taken is not None or pod.over:
        return _leaving(pod, started=started)
    if pod.trouble is not None:
        return in_trouble(pod.trouble, track, per_node=True)
    if pod.started_at is None:
        text = f"Container {pod.container!r} of Pod {pod.name} has not started yet"
        return Situation(Row.STARTING, pod.waiting, "", text)
    if pod.ended is not None:
        return _again(pod, pod.ended)
    return running(pod)


def _without_pod(maker: Maker, node: str, refusal: Refusal | None, *, started: bool) -> Situation:
    if refusal is not None and not started:
        text = f"The DaemonSet cannot create its Pod ({refusal.text})"
        reason, _, message = refusal.text.partition(": ")
        return Situation(Row.REFUSED, reason, message, text, MINUTE)
    text = f"{maker} has no Pod on node {node}"
    if started:
        return Situation(Row.GONE, "NoPod", f"{text}: it is being replaced", text)
    text += ": the node is gone, or the DaemonSet cannot run there"
    return Situation(Row.STARTING, "NoPod", text, text)


def _leaving(pod: SeenPod, *, started: bool) -> Situation:
    """Its DaemonSet makes another one."""
    if pod.taken is not None:
        reason, text = pod.taken.reason, pod.taken.text
    else:
        reason, text = pod.phase, f"Pod {pod.name} has ended: {pod.phase}"
    return Situation(Row.TAKEN if started else Row.STARTING, reason, text, text)


def _restarted(pod: SeenPod) -> Situation | None:
    """The plugin fails again and again, unless it has ended well: then its result may be coming."""
    run = pod.ended
    if pod.restarts <= MOST_RESTARTS or (run and run.exit_code == 0 and pod.ours_running):
        return None
    text = f"Container {pod.container!r} of Pod {pod.name} was restarted {pod.restarts} times"
    if run is not None:
        text = f"{text}; the last time it {ending(run)}"
    return Situation(Row.RESTARTED, "Restarted", text, text, 0.0, Cause.POD_FAILED)


def _again(pod: SeenPod, run: Terminated) -> Situation:
    """It runs again, or will soon."""
    text = f"Container {pod.container!r} of Pod {pod.name} {ending(run)}"
    if pod.restarts:
        text = f"{text}; restarts: {pod.restarts}"
    return Situation(Row.RUNNING, pod.waiting or "Restarted", text)
