"""What must be remembered between two looks, because the API shows only the present.

`remember` merges one look into the memory. It is called after the Pod and the file were looked at,
in that order, so that "the adapter had ended and this is the file it left" is true.
"""

from dataclasses import dataclass, replace

from reporter.verdict.facts import (
    FileAbsent,
    FileIdentity,
    FileUnread,
    FileValid,
    FirstLook,
    Form,
    Pod,
    PodGone,
    PodLook,
    PodRefused,
    PodSeen,
    PodUnknown,
    ResultLook,
    Running,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.verdict.not_starting import Trouble, trouble_of

STAMP_LAG = 1.0
"""How much older than the API's `startedAt` a run's own file may be, in seconds.

The runtime takes that stamp after it has started the process, so a quick adapter's file can be
older.
"""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run of the adapter that ended by itself, with the file it left."""

    run: Terminated
    restarts: int  # of the adapter before this run
    file: ResultLook
    file_at_end: FileIdentity | None = None  # what lay there at its end, whoever wrote it
    file_at_previous_end: FileIdentity | None = None  # the same for the run before it


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
    last_pod: Pod | None = None
    refused_since: float | None = None  # the API has answered nothing but 403 about the Pod
    unread_since: float | None = None  # reading the file has failed without a break
    first_look: FirstLook | None = None
    taken_away_since: float | None = None  # deletion seen, or the Pod seen gone
    away: bool = False  # the API does not answer about the Pod
    returned: float | None = None  # when it answered again after having been away

    @property
    def waiting_from(self) -> float:
        """When the wait time began: at the adapter's first start, or at our own before it.

        A native reporter starts before its adapter. If it was never restarted and the adapter seems
        to have started earlier, the wall clock was stepped.
        """
        if self.first_started is None:
            return self.waiting_since
        pod = self.last_pod
        if pod is not None and pod.form is Form.NATIVE and pod.own_restarts == 0:
            return max(self.first_started, self.waiting_since)
        return self.first_started

    def leftover(self, restarts: int) -> FileIdentity | None:
        """Return the file that was there when the API showed the end of the previous run.

        The present run is the one after so many restarts.
        """
        ended = self.last_run
        if ended is None:
            return None
        return ended.file_at_end if ended.restarts < restarts else ended.file_at_previous_end


def recall(
    memory: Memory, now: float, wall: float, started_at: float | None, waiting_at: float | None
) -> Memory:
    """Restore what an earlier start of this reporter stored about the same attempt.

    `started_at` and `waiting_at` are epoch seconds.
    """
    if waiting_at is not None and waiting_at < int(memory.waiting_since_at):
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
    """Merge one look into the memory; `file` is what was found, whoever wrote it."""
    memory = replace(
        _availability(memory, now, look),
        refused_since=_since(memory.refused_since, now, isinstance(look, PodRefused)),
        unread_since=_since(memory.unread_since, now, isinstance(file, FileUnread)),
    )
    pod = pod_of(look)
    if pod is None:
        return memory
    if memory.taken_away_since is None and (pod.deleting or isinstance(look, PodGone)):
        memory = replace(memory, taken_away_since=now)
    memory = _first_start(memory, now, wall, pod)
    memory = _trouble(memory, now, pod)
    memory = _last_run(memory, pod, file)
    return replace(memory, last_pod=pod)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the adapter, and what is known of the run before it."""

    state: Running | Terminated | None = None
    restarts: int = 0
    previous: Terminated | None = None
    leftover: FileIdentity | None = None


def attributed(file: ResultLook, look: PodLook, memory: Memory) -> ResultLook:
    """Return the file if the adapter's newest run can have written it, else its absence."""
    pod = pod_of(look) or memory.last_pod
    adapter = pod.adapter if pod else None
    run = _Run()
    if adapter is not None:
        leftover = memory.leftover(adapter.restarts)
        if isinstance(adapter.state, Waiting):
            run = _Run(adapter.last, adapter.restarts, None, leftover)
        else:
            run = _Run(adapter.state, adapter.restarts, adapter.last, leftover)
    return _of_run(file, pod, run, memory.first_look)


def _of_run(
    file: ResultLook, pod: Pod | None, run: _Run, first_look: FirstLook | None
) -> ResultLook:
    if isinstance(file, FileUnread) and file.before is not None:
        # A file that was read in this run holds; that of an earlier run may have been replaced.
        before = _of_run(file.before, pod, run, first_look)
        return before if isinstance(before, FileValid) else replace(file, before=None)
    if isinstance(run.state, Terminated) and run.state.never_started:
        return FileAbsent()
    if pod is not None and pod.shared_volume and run.state is None:
        return FileAbsent()
    if isinstance(file, FileAbsent) or file.identity is None or pod is None:
        return file  # without a Pod the volume is as old as it
    first = run.restarts <= 0 and run.previous is None
    if first and pod.own_volume:
        # Nobody else can have left it, whatever its times say: clocks are stepped, and stamps of a
        # busy node come late.
        return file
    written = file.identity.ctime_ns // 1_000_000_000
    born = int(pod.started_at or 0)
    if run.state is None or run.state.started_at is None:
        return file if written >= born else FileAbsent()
    started = int(run.state.started_at)
    if first and pod.shared_volume and first_look is not None and int(first_look.at) < started:
        # A file server has a clock of its own.
        return file if file.identity != first_look.identity else FileAbsent()
    if written > started:
        return file
    # The API's times are whole seconds: only what is of a later second than an earlier run's end is
    # surely not of that run.
    ended = run.previous.finished_at if run.previous else None
    alone = run.restarts <= 0 or (ended is not None and written > int(ended))
    if written == started:
        return file if alone or file.identity != run.leftover else FileAbsent()
    recent = written >= max(started - STAMP_LAG, born)
    return file if alone and recent else FileAbsent()


def _since(before: float | None, now: float, holds: bool) -> float | None:
    if not holds:
        return None
    return now if before is None else before


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
    if pod.taken_away:
        return memory  # what shows from now on may come of that: a pull that is broken off fails
    trouble = trouble_of(pod)
    before = memory.trouble
    if trouble is None or before is None or trouble.row != before.row:
        return replace(memory, trouble=trouble, trouble_since=now)
    # The kubelet alternates between an error and its back-off every few seconds; the cause is in
    # the former.
    return memory if trouble.back_off else replace(memory, trouble=trouble)


def _last_run(memory: Memory, pod: Pod, file: ResultLook) -> Memory:
    """Keep the newest run that ended by itself, and the file found when its end was first shown.

    A run that ended after the Pod was removed did not end by itself.
    """
    adapter = pod.adapter
    if adapter is None:
        return memory
    state, restarts = adapter.state, adapter.restarts
    ended, previous, later = adapter.last, None, None
    if isinstance(state, Terminated) and not pod.taken_away:
        ended, previous = state, adapter.last
    elif not isinstance(state, Waiting):
        restarts, later = restarts - 1, state
    known = memory.last_run
    if ended is None or (
        known is not None and known.restarts >= restarts and not isinstance(known.file, FileUnread)
    ):
        return memory
    before = memory.leftover(restarts)
    left = _of_run(file, pod, _Run(ended, restarts, previous, before), memory.first_look)
    lay = None if isinstance(file, FileAbsent) else file.identity
    theirs = _Run(later, restarts + 1, ended)
    if later is not None and not isinstance(
        _of_run(file, pod, theirs, memory.first_look), FileAbsent
    ):
        left, lay = FileAbsent(), None  # as far as anybody can tell it is the next run's
    return replace(memory, last_run=EndedRun(ended, restarts, left, lay, before))


def _monotonic(at: float, now: float, wall: float) -> float:
    return now - max(0.0, wall - at)
