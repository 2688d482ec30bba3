"""What an entry is in: from its Job, its Pod and what is remembered, to a row with its time."""

from dataclasses import replace
from typing import Final

from reporter.common.text import clean
from reporter.launch.seen import DELETED, Hindrance, PluginTrouble, Refusal, SeenJob, SeenPod, Taken
from reporter.launch.world import Row, Situation, Track
from reporter.run.record import Cause
from reporter.run.results import ResultStatus
from reporter.verdict.facts import Terminated

MINUTE: Final = 60.0
IMAGE: Final = 300.0
SETTLE: Final = 2.0  # a verdict or an upload may be seen after the end of its Pod
LATE: Final = 10.0  # how long the end of a container may take to be seen
LAST_WORDS: Final = 160  # bytes of a termination message

_DEADLINE: Final = "DeadlineExceeded"
_PATIENCE: Final[dict[Hindrance, float | None]] = {
    Hindrance.NODE: MINUTE,
    Hindrance.SCHEDULING: None,
    Hindrance.IMAGE: IMAGE,
    Hindrance.SETUP: MINUTE,
}
_WELL: Final = Situation(Row.RUNNING)
_VERDICTS: Final = {"True": ResultStatus.PASSED, "False": ResultStatus.FAILED}


def situation(
    name: str,
    job: SeenJob | None,
    pod: SeenPod | None,
    refusal: Refusal | None,
    track: Track | None,
    *,
    started: bool,
    per_node: bool,
) -> Situation:
    """Say what an open entry is in whose Job `name` was created.

    `started` says whether the plugin's container is known to have begun, `per_node` whether its
    Pod can run on one node only.
    """
    if pod is None:
        found = _without_pod(name, job, refusal, track, started=started)
    elif pod.taken is not None:
        found = _taken(pod, pod.taken, job, started=started)
    elif pod.ended is not None or pod.over:
        found = _ended(pod, started=started)
    elif pod.trouble is not None:
        found = _in_trouble(pod.trouble, track, per_node=per_node)
    elif pod.started_at is None and not started:
        text = f"Container {pod.container!r} of Pod {pod.name} has not started yet"
        found = Situation(Row.STARTING, pod.waiting, "", text)
    else:
        return _running(pod)
    return _judged(found, job, pod.name if pod is not None else track.pod if track else "")


def _without_pod(
    name: str, job: SeenJob | None, refusal: Refusal | None, track: Track | None, *, started: bool
) -> Situation:
    if job is None:
        if track is not None and track.end is not None:
            return replace(track.end, row=Row.JOB_GONE, patience=SETTLE)
        text = f"Job {name} was deleted before its result arrived"
        # It, or its Pod, may just not have been seen yet: after its creation, or our start.
        patience = SETTLE if track is not None and track.pod else MINUTE
        return Situation(Row.JOB_GONE, "JobDeleted", text, text, patience, Cause.POD_FAILED)
    if job.over or job.failed or job.deleting or started or (track is not None and track.pod):
        if track is not None and track.end is not None:
            return replace(track.end, row=Row.GONE, patience=SETTLE)
        return _gone(job, track.pod if track is not None else "")
    if refusal is not None:
        text = f"The Job cannot create its Pod ({refusal.text})"
        reason, _, message = refusal.text.partition(": ")
        return Situation(Row.REFUSED, reason, message, text, MINUTE)
    return Situation(Row.STARTING, "NoPod", "The Job has no Pod", "The Job has no Pod")


def _gone(job: SeenJob, pod: str) -> Situation:
    if job.failed == _DEADLINE:
        text = f"Job {job.name} ran longer than its activeDeadlineSeconds"
        return Situation(Row.GONE, job.failed, text, text, SETTLE, Cause.POD_FAILED)
    text = f"Pod {pod or f'of Job {job.name}'} was deleted before its result arrived"
    return Situation(Row.GONE, DELETED, text, text, SETTLE, Cause.POD_FAILED)


def _taken(pod: SeenPod, taken: Taken, job: SeenJob | None, *, started: bool) -> Situation:
    """At once, but for the grace period in which our container may still send what it has."""
    patience = taken.grace + LATE if pod.ours_running else SETTLE
    if pod.by_itself:
        return replace(_ended(pod, started=started), row=Row.TAKEN, patience=patience)
    if job is not None and job.failed == _DEADLINE and taken.reason == DELETED:
        return replace(_gone(job, pod.name), row=Row.TAKEN, patience=patience)
    return Situation(Row.TAKEN, taken.reason, taken.text, taken.text, patience, Cause.POD_FAILED)


def _ended(pod: SeenPod, *, started: bool) -> Situation:
    row, patience = (Row.UPLOADING, None) if pod.ours_running else (Row.ENDED, MINUTE)
    run, who = pod.ended, f"Container {pod.container!r} of Pod {pod.name}"
    if run is None or run.never_started:
        trouble = pod.trouble
        text = trouble.text if trouble else f"{who} never started, and the Pod has ended"
        reason = trouble.reason if trouble else "NeverStarted"
        cause = Cause.POD_FAILED if started else Cause.START_FAILED
        return Situation(row, reason, trouble.message if trouble else text, text, patience, cause)
    text = f"{who} {_ending(run)}"
    shown = f"{text}, and its result has not arrived yet"
    text = f"{text}, and its result never arrived"
    return Situation(row, run.reason or "Ended", shown, text, patience, Cause.POD_FAILED)


def _ending(run: Terminated) -> str:
    """Say how a container ended, as what it did."""
    if run.out_of_memory:
        return f"ran out of memory and was killed (OOMKilled, exit code {run.exit_code})"
    if run.lost:
        return "was lost: the kubelet could not find it any more"
    last = run.message.encode()[-LAST_WORDS:].decode(errors="ignore")
    said = ": ".join(filter(None, (run.reason, clean(last, LAST_WORDS))))
    return f"ended: exit code {run.exit_code}" + (f" ({said})" if said else "")


def _in_trouble(trouble: PluginTrouble, track: Track | None, *, per_node: bool) -> Situation:
    """Say what keeps a container from starting."""
    kind = trouble.kind
    if kind is Hindrance.NODE and not per_node:
        kind = Hindrance.SCHEDULING
    row = Row(kind.value)
    if trouble.repeated and track is not None and track.situation.row is row:
        return track.situation  # which has the cause
    return Situation(row, trouble.reason, trouble.message, trouble.text, _PATIENCE[kind])


def _running(pod: SeenPod) -> Situation:
    """Say that all is well, but for the node."""
    if pod.unready_at is None:
        return _WELL
    return Situation(Row.RUNNING, "NodeNotReady", f"Node {pod.node} is not ready")


_OVER: Final = frozenset({Row.UPLOADING, Row.ENDED, Row.TAKEN, Row.GONE, Row.JOB_GONE})


def _judged(found: Situation, job: SeenJob | None, pod: str) -> Situation:
    """Let our sidecar's final word on that Pod speak, where its result did not come."""
    verdict = job.verdict if job is not None else None
    if verdict is None or found.row not in _OVER or (pod and verdict.pod != pod):
        return found
    word = _VERDICTS.get(verdict.status, ResultStatus.UNKNOWN)
    missing = "; its result never arrived" if verdict.good else ""
    return replace(
        found,
        reason=verdict.reason,
        message=verdict.message,
        text=verdict.message + missing,
        verdict=word,
    )
