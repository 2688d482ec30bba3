"""What must be remembered between two looks, because the API shows only the present.

`remember` folds one look into the memory. It is called after the Pod and the file were looked at,
in that order, so that "the adapter had ended and this is the file it left" is a true statement.
"""

from dataclasses import dataclass, replace

from reporter.core.facts import (
    Pod,
    PodGone,
    PodLook,
    PodSeen,
    PodUnknown,
    Running,
    State,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.core.payloads import FileAbsent, FileIdentity, FileInvalid, FileValid, ResultLook
from reporter.core.trouble import Trouble, trouble_of

STAMP_LAG = 1.0
"""How much older than the API's `startedAt` a run's own file may be, in seconds.

The runtime takes that stamp after it has started the process, so a quick adapter's file can be
older.
"""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run of the adapter that ended by itself, with the file it left."""

    run: Terminated
    restarts: int
    file: ResultLook


@dataclass(frozen=True, slots=True)
class Memory:
    """Facts that outlive the look they came from; all times monotonic unless called `..._at`."""

    waiting_since: float  # the reporter's first start in this attempt
    waiting_since_at: float
    first_started: float | None = (
        None  # the adapter's first start, kept across restarts of either container
    )
    first_started_at: float | None = None
    trouble: Trouble | None = None
    trouble_since: float = 0.0
    last_run: EndedRun | None = None
    leftover: FileIdentity | None = (
        None  # the file that was there when the API showed an earlier run ended
    )
    last_pod: Pod | None = None
    taken_away_since: float | None = None  # deletion seen, or the Pod seen gone
    away: bool = False  # the API does not answer about the Pod
    returned: float | None = None  # when it answered again after having been away


def recall(
    memory: Memory, now: float, wall: float, started_at: float | None, waiting_at: float | None
) -> Memory:
    """Put back what an earlier start of this reporter wrote down about the same attempt (epoch seconds)."""
    if waiting_at is not None and waiting_at < memory.waiting_since_at:
        memory = replace(
            memory, waiting_since=_monotonic(waiting_at, now, wall), waiting_since_at=waiting_at
        )
    if started_at is not None and (
        memory.first_started_at is None or started_at < memory.first_started_at
    ):
        memory = replace(
            memory, first_started=_monotonic(started_at, now, wall), first_started_at=started_at
        )
    return memory


def remember(memory: Memory, now: float, wall: float, look: PodLook, file: ResultLook) -> Memory:
    """Fold one look into the memory; `file` is what lies there, whoever wrote it."""
    memory = _availability(memory, now, look)
    pod = pod_of(look)
    if pod is None:
        return memory
    if memory.taken_away_since is None and (pod.deleting or isinstance(look, PodGone)):
        memory = replace(memory, taken_away_since=now)
    memory = _first_start(memory, now, wall, pod)
    memory = _trouble(memory, now, pod)
    memory = _last_run(memory, pod, file)
    return replace(memory, last_pod=pod)


def attributed(file: ResultLook, look: PodLook, memory: Memory) -> ResultLook:
    """Return the file if the adapter's present (or last) run can have written it, else its absence."""
    pod = pod_of(look)
    if pod is None or pod.adapter is None or isinstance(file, FileAbsent) or file.identity is None:
        return file
    run = pod.adapter.state
    if isinstance(run, Waiting):
        if pod.adapter.last is None:
            return _not_before(file, pod.started_at)
        run = pod.adapter.last
    previous = pod.adapter.last if run is not pod.adapter.last else None
    return _of_run(file, run, previous, pod, memory.leftover)


def _of_run(
    file: ResultLook,
    run: State,
    previous: Terminated | None,
    pod: Pod,
    leftover: FileIdentity | None,
) -> ResultLook:
    if isinstance(file, FileAbsent) or file.identity is None or isinstance(run, Waiting):
        return file
    if isinstance(run, Terminated) and run.never_started:
        return FileAbsent()
    if run.started_at is None:
        return _not_before(file, pod.started_at)
    written = file.identity.ctime_ns // 1_000_000_000
    started = int(run.started_at)
    if written > started:
        return file
    if written == started:
        return FileAbsent() if file.identity == leftover else file
    # The API's times are whole seconds and the start is stamped late: a file of the moment before
    # the stamp is
    # this run's own, unless an earlier run can have left it or it is older than the Pod.
    earlier = [previous.finished_at] if previous else []
    floor = max((t for t in [*earlier, pod.started_at] if t is not None), default=None)
    if started - written <= STAMP_LAG and file.identity != leftover:
        if previous is None and (floor is None or written >= int(floor)):
            return file
        if previous is not None and floor is not None and written > int(floor):
            return file
    return FileAbsent()


def _not_before(file: FileInvalid | FileValid, moment: float | None) -> ResultLook:
    if (
        moment is None
        or file.identity is None
        or file.identity.ctime_ns // 1_000_000_000 >= int(moment)
    ):
        return file
    return FileAbsent()


def _availability(memory: Memory, now: float, look: PodLook) -> Memory:
    away = isinstance(look, PodUnknown) or (isinstance(look, PodSeen) and not look.current)
    if memory.away and not away:
        return replace(memory, away=False, returned=now)
    return replace(memory, away=away)


def _first_start(memory: Memory, now: float, wall: float, pod: Pod) -> Memory:
    adapter = pod.adapter
    if adapter is None:
        return memory
    shown = [adapter.last.started_at if adapter.last else None]
    if isinstance(adapter.state, Running | Terminated):
        shown.append(adapter.state.started_at)
    starts = [at for at in shown if at is not None]
    if starts:
        return recall(memory, now, wall, min(starts), None)
    if memory.first_started is None and isinstance(adapter.state, Running):
        return replace(memory, first_started=now, first_started_at=wall)
    return memory


def _trouble(memory: Memory, now: float, pod: Pod) -> Memory:
    trouble = trouble_of(pod)
    before = memory.trouble
    if trouble is None or before is None or trouble.row != before.row:
        return replace(memory, trouble=trouble, trouble_since=now)
    # The kubelet alternates between an error and its back-off every few seconds; the cause is in
    # the former.
    return memory if trouble.back_off else replace(memory, trouble=trouble)


def _last_run(memory: Memory, pod: Pod, file: ResultLook) -> Memory:
    """Keep the newest run that ended by itself.

    What ends after the Pod's deletion was asked for did not.
    """
    adapter = pod.adapter
    if adapter is None:
        return memory
    identity = None if isinstance(file, FileAbsent) else file.identity
    present = adapter.state
    if isinstance(present, Terminated) and not pod.deleting:
        left = _of_run(file, present, adapter.last, pod, memory.leftover)
        memory = replace(memory, last_run=EndedRun(present, adapter.restarts, left))
        return memory if pod.ended_for_good else replace(memory, leftover=identity)
    last = adapter.last
    if last is None:
        return memory
    if memory.last_run is None or memory.last_run.run.finished_at != last.finished_at:
        theirs = isinstance(present, Running) and not isinstance(
            _of_run(file, present, last, pod, None), FileAbsent
        )
        left = FileAbsent() if theirs else _of_run(file, last, None, pod, None)
        memory = replace(memory, last_run=EndedRun(last, max(adapter.restarts - 1, 0), left))
    return replace(memory, leftover=identity) if isinstance(present, Waiting) else memory


def _monotonic(at: float, now: float, wall: float) -> float:
    return now - max(0.0, wall - at)
