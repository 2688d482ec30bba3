"""The evidence behind a report.

Every fact a rule used, small enough for an annotation and a log line.
"""

from typing import Any

from reporter.core.case import Observation
from reporter.core.facts import (
    Container,
    Pod,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Running,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.core.objects import stamp
from reporter.core.payloads import FileAbsent, FileInvalid, FileValid, ResultLook, Searched
from reporter.core.text import clean

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

    `wall` is the time of the look in epoch seconds.
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
            "startedAt": _at(o.job.started_at),
            "activeDeadlineSeconds": o.job.deadline,
            "suspended": o.job.suspended or None,
            "deleting": o.job.deleting or None,
            "failure": _text(o.job.failure),
        }
        shown["job"] = _known(job)
    shown |= _remembered(o)
    shown["waitedSeconds"] = round(max(0.0, o.now - o.memory.waiting_from), 3)
    if o.stopping_since is not None:
        shown["stoppedForSeconds"] = round(max(0.0, o.now - o.stopping_since), 3)
    return shown


def _remembered(o: Observation) -> dict[str, Any]:
    """Return what rules use and the API no longer shows: a deletion removes `lastState`."""
    shown: dict[str, Any] = {}
    pod, memory = pod_of(o.pod), o.memory
    adapter = pod.adapter if pod else None
    ended = memory.last_run
    if ended is not None and (adapter is None or ended.run not in {adapter.state, adapter.last}):
        run = {"restarts": ended.restarts, **_run(ended.run), "file": _file(ended.file)["state"]}
        if isinstance(ended.file, FileValid):
            run["resultReason"] = _text(ended.file.result.reason)
        shown["lastEndedRun"] = run
    if memory.trouble is not None:
        seconds = round(max(0.0, o.now - memory.trouble_since), 3)
        shown["trouble"] = {"rule": memory.trouble.row, "forSeconds": seconds}
    return shown


def contradiction(row: str, status: str, ended: Terminated) -> dict[str, Any] | None:
    """Return how the end of the adapter contradicts a good verdict given before, if it does."""
    if row != "R" or status != "True" or (ended.exit_code == 0 and not ended.out_of_memory):
        return None
    return _run(ended)


def _file(look: ResultLook) -> dict[str, Any]:
    if isinstance(look, FileAbsent):
        return {"state": "absent"}
    if isinstance(look, FileInvalid):
        shown = _known({"state": "invalid", "cause": _text(look.cause)})
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
    return _known({"path": _text(searched.path), "beside": found or None})


def _pod(pod: Pod) -> dict[str, Any]:
    disruption = f"{pod.disruption.reason}: {pod.disruption.message}" if pod.disruption else ""
    blocker = pod.blocker.container if pod.blocker else None
    return _known(
        {
            "phase": _text(pod.phase),
            "reason": _text(pod.reason),
            "restartPolicy": _text(pod.restart.policy),
            "form": pod.form.value if pod.form else None,
            "ownVolume": pod.own_volume or None,
            "deletionRequestedAt": _at(pod.deletion_requested_at),
            "failingAt": _at(pod.failing_at),
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
            shown |= {"state": "running", "startedAt": _at(started_at)}
        case Waiting(reason, message):
            shown |= {"state": "waiting", "reason": _text(reason), "message": _text(message)}
        case ended:
            shown |= {"state": "terminated", **_run(ended)}
    if container.last is not None:
        shown["last"] = _run(container.last)
    return _known(shown)


def _run(run: Terminated) -> dict[str, Any]:
    # SIGKILL from the kernel's OOM killer can reach the API without the word for it.
    suspicious = run.exit_code == 137 and not run.out_of_memory
    return _known(
        {
            "exitCode": run.exit_code,
            "reason": _text(run.reason),
            "message": _text(run.message),
            "signal": run.signal or None,
            "startedAt": _at(run.started_at),
            "finishedAt": _at(run.finished_at),
            "maybeOutOfMemory": suspicious or None,
        }
    )


def _known(shown: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if value not in (None, "")}


def _text(value: str) -> str:
    return clean(value, TEXT_LIMIT)


def _at(moment: float | None) -> str | None:
    return None if moment is None else stamp(moment)


def _nanoseconds(at: int) -> str:
    return f"{stamp(at // 1_000_000_000)[:-1]}.{at % 1_000_000_000:09d}Z"
