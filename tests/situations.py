"""Situations of a Job's Pod in few words, for the tests of the decisions. No cluster, no clock.

Second 0 is the reporter's start: `now` counts from it, and the API's times are `at(second)`.
"""

from dataclasses import replace
from typing import Any

from reporter.verdict.case import Observation
from reporter.verdict.facts import (
    Container,
    FileAbsent,
    FileIdentity,
    FileInvalid,
    FileValid,
    Form,
    Job,
    Pod,
    PodLook,
    PodSeen,
    Progress,
    RestartPolicy,
    ResultLook,
    ResultPayload,
    Running,
    State,
    Terminated,
    Waiting,
)
from reporter.verdict.history import History, attributed, remember

START = 1_767_323_045.0  # 2026-01-02T03:04:05Z
ABSENT = FileAbsent()
NEVER, ON_FAILURE = RestartPolicy("Never"), RestartPolicy("OnFailure")
GOOD = ResultPayload(success=True, reason="AllChecked", message="12 of 12")
BAD = ResultPayload(success=False, reason="QuotaLow", message="2 of 12 failed")


def at(second: float) -> float:
    """The API's time of a second."""
    return START + second


def identity(second: float, inode: int = 7) -> FileIdentity:
    """A file written in that second."""
    nanoseconds = int(at(second) * 1_000_000_000)
    return FileIdentity(inode, 20, nanoseconds, nanoseconds)


def valid(second: float = 2, result: ResultPayload = GOOD, inode: int = 7) -> FileValid:
    """A result, written in that second."""
    return FileValid(result, identity(second, inode))


def invalid(second: float = 2, cause: str = "the file is empty") -> FileInvalid:
    """Something that is no result, written in that second."""
    return FileInvalid(cause, identity(second))


def running(second: float = 1) -> Running:
    """A run that started in that second."""
    return Running(at(second))


def ended(
    code: int = 0,
    reason: str = "",
    message: str = "",
    *,
    start: float | None = 1,
    end: float = 10,
) -> Terminated:
    """A run that ended; the reason defaults to the kubelet's usual one."""
    reason = reason or ("Error" if code else "Completed")
    started = None if start is None else at(start)
    return Terminated(code, reason, message, started, at(end))


OOM = ended(137, "OOMKilled")
START_ERROR = ended(128, "StartError", 'exec: "nope": not found', start=None)
LOST = Terminated(137, "ContainerStatusUnknown", "The container could not be located")
PULLING = Waiting("ErrImagePull", "401 Unauthorized")
LOOPING = Waiting("CrashLoopBackOff", "back-off 20s restarting failed container")


def pod(
    state: State | None = None,
    *,
    last: Terminated | None = None,
    restarts: int = 0,
    **fields: Any,
) -> Pod:
    """Our Pod; without a state the adapter has not started. `adapter=None` makes it a misfit."""
    shown: dict[str, Any] = {
        "name": "job-x7k2p",
        "uid": "pod-uid",
        "created_at": at(-1),
        "started_at": at(0),
        "phase": "Running",
        "form": Form.NATIVE,
        "adapter": Container("adapter", state or Waiting(), last, restarts),
        "restart": NEVER,
    }
    return Pod(**(shown | fields))


def retried(state: State | None = None, **fields: Any) -> Pod:
    """Our Pod under `restartPolicy: OnFailure`."""
    return pod(state, restart=ON_FAILURE, **fields)


def deleted(before: Pod, second: float = 20, *, grace: float = 30) -> Pod:
    """The same Pod after its deletion was asked for."""
    return replace(before, deletion_requested_at=at(second), deletion_grace=grace)


def observed(
    *looks: tuple[float, Pod | PodLook, ResultLook] | tuple[float, Pod | PodLook],
    job: Job | None = None,
    stopped: float | None = None,
    progress: Progress | None = None,
    history: History | None = None,
) -> Observation:
    """What is known after these looks: (second, Pod, file), the file absent by default."""
    history = history or History(waiting_since=0.0, waiting_since_at=at(0))
    now, look, file = 0.0, PodSeen(pod()), ABSENT
    for now, shown, *files in looks:
        look = PodSeen(shown) if isinstance(shown, Pod) else shown
        file = files[0] if files else ABSENT
        history = remember(history, now, at(now), look, file)
    return Observation(
        now=now,
        pod=look,
        file=attributed(file, look, history),
        history=history,
        job=job,
        progress=progress,
        stopping_since=stopped,
    )


def in_form(o: Observation, form: Form) -> Observation:
    """The same observation made by a reporter of that form."""
    look = o.pod
    if hasattr(look, "pod"):
        look = replace(look, pod=replace(look.pod, form=form))
    last = o.history.last_pod and replace(o.history.last_pod, form=form)
    return replace(o, pod=look, history=replace(o.history, last_pod=last))


def later(o: Observation, second: float) -> Observation:
    """The same observation at a later second, when nothing but time has passed."""
    return replace(o, now=second)


def again(state, *, restarts=1, **fields):
    """The adapter after a restart: the first run lasted from second 1 to second 10."""
    last = fields.pop("last", ended(1, start=1, end=10))
    return pod(state, last=last, restarts=restarts, restart=ON_FAILURE, **fields)


first = pod(ended(1, start=1, end=10), restart=ON_FAILURE)
