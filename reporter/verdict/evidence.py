"""Evidence: every fact that a rule used, small enough for an annotation and a log line.

Published, with the rest of the annotation, as `schemas/verdict.v1.schema.json`; people read it.
"""

from typing import Any

from reporter.common.objects import stamp
from reporter.common.text import clean, last_lines
from reporter.verdict.case import Observation
from reporter.verdict.condition import known, stamp_of
from reporter.verdict.facts import (
    Container,
    FileAbsent,
    FileInvalid,
    FileValid,
    Pod,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    ResultLook,
    ResultPayload,
    Running,
    Searched,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.verdict.rows import FALSE, TRUE, Row

TEXT_LIMIT = 160  # bytes of any text from outside
_LOOKS = {
    PodUnknown: "unknown",
    PodRefused: "forbidden",
    PodNeverSeen: "neverSeen",
    PodGone: "gone",
    PodSeen: "seen",
}


def evidence(o: Observation, wall: float) -> dict[str, Any]:
    """Return the facts of an observation as JSON values.

    `wall` is right after the look, in epoch seconds.
    """
    pod = pod_of(o.pod)
    shown: dict[str, Any] = {
        "observedAt": stamp(wall),
        "file": _file(o.file) | _searched(o.searched),
        "pod": {"look": _LOOKS[type(o.pod)]},
    }
    if isinstance(o.pod, PodSeen) and not o.pod.current:
        shown["pod"]["stale"] = True
    if pod is not None:
        shown["pod"].update(_pod(pod))
        if pod.adapter is not None:
            shown["adapter"] = shown_container(pod.adapter)
    if o.job is not None:
        job = {
            "startedAt": stamp_of(o.job.started_at),
            "activeDeadlineSeconds": o.job.deadline,
            "suspended": o.job.suspended or None,
            "deleting": o.job.deleting or None,
            "failure": _text(o.job.failure),
        }
        shown["job"] = known(job)
    shown |= _remembered(o)
    shown["waitedSeconds"] = round(max(0.0, o.now - o.history.waiting_from), 3)
    if o.stopping_since is not None:
        shown["stoppedForSeconds"] = round(max(0.0, o.now - o.stopping_since), 3)
    return shown


def _remembered(o: Observation) -> dict[str, Any]:
    """Return what rules use and the API no longer shows: a deletion removes `lastState`."""
    shown: dict[str, Any] = {}
    pod, history = pod_of(o.pod), o.history
    adapter = pod.adapter if pod else None
    ended = history.last_run
    if ended is not None and (adapter is None or ended.run not in {adapter.state, adapter.last}):
        run = {"restarts": ended.restarts, **_run(ended.run), "file": _file(ended.file)["state"]}
        if isinstance(ended.file, FileValid):
            run["resultReason"] = _text(ended.file.result.reason)
        shown["lastEndedRun"] = run
    if history.trouble is not None:
        seconds = round(max(0.0, o.now - history.trouble_since), 3)
        shown["trouble"] = {"rule": history.trouble.row, "forSeconds": seconds}
    return shown


def contradiction(row: str, status: str, ended: Terminated) -> dict[str, Any] | None:
    """Return how the end of the adapter contradicts a good verdict given before, if it does."""
    if row != Row.RESULT or status != TRUE or (ended.exit_code == 0 and not ended.out_of_memory):
        return None
    return _run(ended)


def late(result: ResultPayload, wall: float) -> dict[str, Any]:
    """Return a result that came after the timeout; `wall` is right after the look."""
    return known(
        {
            "observedAt": stamp(wall),
            "status": TRUE if result.success else FALSE,
            "reason": _text(result.reason),
            "message": _text(result.message),
        }
    )


def _file(look: ResultLook) -> dict[str, Any]:
    if isinstance(look, FileAbsent):
        return {"state": "absent"}
    if isinstance(look, FileInvalid):
        shown = known({"state": "invalid", "cause": _text(look.cause)})
    else:
        shown = {"state": "valid", "resultReason": _text(look.result.reason)}
    identity = look.identity
    if identity is not None:
        shown |= {"inode": identity.inode, "size": identity.size}
        shown |= {
            "mtime": _nanoseconds(identity.mtime_ns),
            "ctime": _nanoseconds(identity.ctime_ns),
        }
    return shown


def _searched(searched: Searched | None) -> dict[str, Any]:
    if searched is None:
        return {}
    found = [name for name in map(_text, searched.found) if name]
    return known({"path": _text(searched.path), "beside": found or None})


def _pod(pod: Pod) -> dict[str, Any]:
    disruption = f"{pod.disruption.reason}: {pod.disruption.message}" if pod.disruption else ""
    blocker = pod.blocker.container if pod.blocker else None
    return known(
        {
            "phase": _text(pod.phase),
            "reason": _text(pod.reason),
            "restartPolicy": _text(pod.restart.policy),
            "form": pod.form.value if pod.form else None,
            "ownVolume": pod.only_adapters_write or None,
            "sharedVolume": pod.not_empty_dir or None,
            "deletionRequestedAt": stamp_of(pod.deletion_requested_at),
            "failingAt": stamp_of(pod.failing_at),
            "activeDeadlineSeconds": pod.deadline,
            "disruption": _text(disruption),
            "misfit": _text(pod.misfit),
            "blockedBy": shown_container(blocker) if blocker else None,
        }
    )


def shown_container(container: Container) -> dict[str, Any]:
    """Return a container's state and its run before as JSON values."""
    shown = {"container": _text(container.name), "restarts": container.restarts}
    match container.state:
        case Running(started_at):
            shown |= {"state": "running", "startedAt": stamp_of(started_at)}
        case Waiting(reason, message):
            shown |= {"state": "waiting", "reason": _text(reason), "message": _text(message)}
        case ended:
            shown |= {"state": "terminated", **_run(ended)}
    if container.last is not None:
        shown["last"] = _run(container.last)
    return known(shown)


def _run(run: Terminated) -> dict[str, Any]:
    # SIGKILL from the kernel's OOM killer can reach the API without the word for it.
    suspicious = run.exit_code == 137 and not run.out_of_memory
    return known(
        {
            "exitCode": run.exit_code,
            "reason": _text(run.reason),
            # It may be the end of the log.
            "message": _text("\n".join(last_lines(run.message, 5, TEXT_LIMIT))),
            "signal": run.signal or None,
            "startedAt": stamp_of(run.started_at),
            "finishedAt": stamp_of(run.finished_at),
            "maybeOutOfMemory": suspicious or None,
        }
    )


def _text(value: str) -> str:
    return clean(value, TEXT_LIMIT)


def _nanoseconds(at: int) -> str:
    return f"{stamp(at // 1_000_000_000)[:-1]}.{at % 1_000_000_000:09d}Z"
