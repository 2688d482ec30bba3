"""What an entry is in: from its Job, its Pod and what is remembered, to a row with its time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from reporter.common.text import clean
from reporter.run.record import Cause
from reporter.run.results import ResultStatus
from reporter.verdict.facts import Terminated

if TYPE_CHECKING:
    from reporter.launch.seen import Refusal, SeenJob, SeenPod

MINUTE: Final = 60.0
IMAGE: Final = 300.0
SETTLE: Final = 2.0  # a verdict or an upload may be seen after the end of its Pod
DELETED: Final = "PodDeleted"
LAST_WORDS: Final = 160  # bytes of a termination message

_DEADLINE: Final = "DeadlineExceeded"
_VERDICTS: Final = {"True": ResultStatus.PASSED, "False": ResultStatus.FAILED}


class Row(StrEnum):
    """What an entry is in; the clock of its failure begins anew with each."""

    REFUSED = "refused"
    STARTING = "starting"
    SCHEDULING = "scheduling"
    NODE = "node"  # the only node that may run it is gone or cordoned
    IMAGE = "image"
    SETUP = "setup"  # what waiting seldom resolves
    RUNNING = "running"
    UPLOADING = "uploading"  # its container has ended, ours has not
    ENDED = "ended"
    TAKEN_AWAY = "taken away"
    GONE = "gone"
    JOB_GONE = "job gone"


_PATIENCE: Final = {Row.REFUSED: MINUTE, Row.NODE: MINUTE, Row.IMAGE: IMAGE, Row.SETUP: MINUTE}


@dataclass(frozen=True, slots=True)
class Situation:
    """An entry's row with its words. It fails after `patience` seconds; None: not for that.

    `reason` and `message` are shown, `text` is the failure's. `verdict` is what our sidecar said.
    `repeated`: the kubelet only repeats that it waits, the cause was shown before.
    """

    row: Row
    reason: str = ""
    message: str = ""
    text: str = ""
    patience: float | None = None
    cause: Cause = Cause.START_FAILED
    verdict: str = ""
    repeated: bool = False


def hindered(
    row: Row, reason: str, message: str, text: str, *, repeated: bool = False
) -> Situation:
    """Return what keeps a plugin's container from starting."""
    return Situation(row, reason, message, text, _PATIENCE.get(row), repeated=repeated)


_OVER: Final = frozenset({Row.UPLOADING, Row.ENDED, Row.TAKEN_AWAY, Row.GONE, Row.JOB_GONE})


@dataclass(frozen=True, slots=True)
class Track:
    """What is remembered of an open entry: its situation and since when it is in that row.

    `pod` is the name of its Pod, once that was seen, `end` how it was last seen to end, for when it
    is gone.
    """

    situation: Situation
    since: float
    pod: str = ""
    end: Situation | None = None


_UNKNOWN: Final = Track(Situation(Row.STARTING), 0.0)


def situation(
    name: str,
    job: SeenJob | None,
    pod: SeenPod | None,
    refusal: Refusal | None,
    track: Track | None,
    *,
    started: bool,
    per_node: bool,
    obstacle: str = "",
) -> Situation:
    """Say what an open entry is in whose Job `name` was created.

    `started` says whether the plugin's container is known to have begun, `per_node` whether its
    Pod can run on one node only, `obstacle` why it could not reach us.
    """
    before = track or _UNKNOWN
    if pod is None:
        found = _without_pod(name, job, refusal, track, started=started)
    elif pod.taken_away is not None:
        found = _taken_away(pod, pod.taken_away, job, started=started)
    elif pod.ended is not None or pod.over:
        found = _ended(pod, started=started)
    elif pod.trouble is not None:
        found = pod.trouble
        if found.row is Row.NODE and not per_node:
            found = replace(found, row=Row.SCHEDULING, patience=None)
        if found.repeated and before.situation.row is found.row:
            found = before.situation  # which has the cause
    elif pod.started_at is None and not started:
        text = f"Container {pod.container!r} of Pod {pod.name} has not started yet"
        found = Situation(Row.STARTING, pod.waiting, "", text)
    elif pod.unready_at is None:
        found = Situation(Row.RUNNING)
    else:
        found = Situation(Row.RUNNING, "NodeNotReady", f"Node {pod.node} is not ready")
    if pod is None:
        return _judged(found, job, before.pod)
    if obstacle and found.row in _OVER:
        found = replace(found, text=f"{found.text}: {obstacle}")
    return _judged(found, job, pod.name, obstacle)


def _without_pod(
    name: str, job: SeenJob | None, refusal: Refusal | None, track: Track | None, *, started: bool
) -> Situation:
    seen = track.pod if track is not None else ""
    gone = job is None or job.over or job.failed or job.deleting or started or seen
    if gone and track is not None and track.end is not None:
        row = Row.JOB_GONE if job is None else Row.GONE
        return replace(track.end, row=row, patience=SETTLE)
    if job is None:
        text = f"Job {name} was deleted before its result arrived"
        # It, or its Pod, may just not have been seen yet: after its creation, or our start.
        patience = SETTLE if seen else MINUTE
        return Situation(Row.JOB_GONE, "JobDeleted", text, text, patience, Cause.POD_FAILED)
    if gone:
        return _gone(job, seen)
    if refusal is not None:
        text = f"The Job cannot create its Pod ({refusal.reason}: {refusal.message})"
        return hindered(Row.REFUSED, refusal.reason, refusal.message, text)
    return Situation(Row.STARTING, "NoPod", "The Job has no Pod", "The Job has no Pod")


def _gone(job: SeenJob, pod: str) -> Situation:
    if job.failed == _DEADLINE:
        text = f"Job {job.name} ran longer than its activeDeadlineSeconds"
        return Situation(Row.GONE, job.failed, text, text, SETTLE, Cause.POD_FAILED)
    text = f"Pod {pod or f'of Job {job.name}'} was deleted before its result arrived"
    return Situation(Row.GONE, DELETED, text, text, SETTLE, Cause.POD_FAILED)


def _taken_away(pod: SeenPod, why: Situation, job: SeenJob | None, *, started: bool) -> Situation:
    if pod.by_itself:
        why = replace(_ended(pod, started=started), patience=why.patience)
    elif job is not None and job.failed == _DEADLINE and why.reason == DELETED:
        why = replace(_gone(job, pod.name), patience=why.patience)
    return replace(why, row=Row.TAKEN_AWAY)


def _ended(pod: SeenPod, *, started: bool) -> Situation:
    row, patience = (Row.UPLOADING, None) if pod.ours_running else (Row.ENDED, MINUTE)
    run, who = pod.ended, f"Container {pod.container!r} of Pod {pod.name}"
    if run is None or run.never_started:
        cause = Cause.POD_FAILED if started else Cause.START_FAILED
        text = f"{who} never started, and the Pod has ended"
        why = pod.trouble or Situation(row, "NeverStarted", text, text)
        return replace(why, row=row, patience=patience, cause=cause, repeated=False)
    text = f"{who} {_ending(run)}"
    message = f"{text}, and its result has not arrived yet"
    text = f"{text}, and its result never arrived"
    return Situation(row, run.reason or "Ended", message, text, patience, Cause.POD_FAILED)


def _ending(run: Terminated) -> str:
    """Say how a container ended, as what it did."""
    if run.out_of_memory:
        return f"ran out of memory and was killed (OOMKilled, exit code {run.exit_code})"
    if run.lost:
        return "was lost: the kubelet could not find it any more"
    last = run.message.encode()[-LAST_WORDS:].decode(errors="ignore")
    said = ": ".join(filter(None, (run.reason, clean(last, LAST_WORDS))))
    return f"ended: exit code {run.exit_code}" + (f" ({said})" if said else "")


def _judged(found: Situation, job: SeenJob | None, pod: str, why: str = "") -> Situation:
    """Let our sidecar's final word on that Pod speak, where its result did not come."""
    verdict = job.verdict if job is not None else None
    if verdict is None or found.row not in _OVER or (pod and verdict.pod != pod):
        return found
    missing = ": ".join(filter(None, ("; its result never arrived", why))) if verdict.good else ""
    return replace(
        found,
        reason=verdict.reason,
        message=verdict.message,
        text=verdict.message + missing,
        verdict=_VERDICTS.get(verdict.status, ResultStatus.UNKNOWN),
    )
