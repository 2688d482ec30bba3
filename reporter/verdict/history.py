"""What must be remembered between two looks, because the API shows only the present.

`remember` adds one look to the history. It is called after the Pod and the file were looked at,
in that order, so that "the adapter had ended and this is the file it left" is true.
"""

from dataclasses import dataclass, replace

from reporter.verdict.facts import (
    FileAbsent,
    FileBeforeStart,
    FileIdentity,
    FileReadFailed,
    FileValid,
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
class History:
    """Facts that outlive the look they came from."""

    waiting_since: float  # the reporter's first start in this attempt
    waiting_since_at: float
    # The adapter's first start, monotonic, kept across restarts of either container.
    first_started: float | None = None
    first_started_at: float | None = None
    trouble: Trouble | None = None
    trouble_since: float = 0.0
    last_run: EndedRun | None = None
    last_pod: Pod | None = None
    refused_since: float | None = None  # the API has answered nothing but 403 about the Pod
    read_failing_since: float | None = None  # reading the file has failed without a break
    file_before_start: FileBeforeStart | None = None
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


def earlier_start(
    history: History, now: float, wall: float, started_at: float | None, waiting_at: float | None
) -> History:
    """Move the adapter's first start, or our own, back to an earlier one that became known.

    The API may show the former late, and both are on the Job if this container was restarted.
    """
    if waiting_at is not None and waiting_at < int(history.waiting_since_at):
        history = replace(
            history, waiting_since=_monotonic(waiting_at, now, wall), waiting_since_at=waiting_at
        )
    if started_at is not None and (
        history.first_started_at is None or started_at < history.first_started_at
    ):
        history = replace(
            history, first_started=_monotonic(started_at, now, wall), first_started_at=started_at
        )
    return history


def remember(history: History, now: float, wall: float, look: PodLook, file: ResultLook) -> History:
    """Add one look to the history; `file` is what was found, whoever wrote it."""
    history = replace(
        _availability(history, now, look),
        refused_since=_since(history.refused_since, now, isinstance(look, PodRefused)),
        read_failing_since=_since(
            history.read_failing_since, now, isinstance(file, FileReadFailed)
        ),
    )
    pod = pod_of(look)
    if pod is None:
        return history
    if history.taken_away_since is None and (pod.deleting or isinstance(look, PodGone)):
        history = replace(history, taken_away_since=now)
    history = _with_first_start(history, now, wall, pod)
    history = _with_trouble(history, now, pod)
    history = _with_last_run(history, pod, file)
    return replace(history, last_pod=pod)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the adapter, and what is known of the run before it."""

    state: Running | Terminated | None = None
    restarts: int = 0
    previous: Terminated | None = None
    leftover: FileIdentity | None = None

    @property
    def first(self) -> bool:
        """Whether the adapter has not run before."""
        return self.restarts <= 0 and self.previous is None


def attributed(file: ResultLook, look: PodLook, history: History) -> ResultLook:
    """Return the file if the adapter's newest run can have written it, else its absence."""
    pod = pod_of(look) or history.last_pod
    adapter = pod.adapter if pod else None
    run = _Run()
    if adapter is not None:
        leftover = history.leftover(adapter.restarts)
        if isinstance(adapter.state, Waiting):
            run = _Run(adapter.last, adapter.restarts, None, leftover)
        else:
            run = _Run(adapter.state, adapter.restarts, adapter.last, leftover)
    return _of_run(file, pod, run, history.file_before_start)


def _of_run(
    file: ResultLook, pod: Pod | None, run: _Run, before_start: FileBeforeStart | None
) -> ResultLook:
    if isinstance(file, FileReadFailed) and file.before is not None:
        # A file that was read in this run holds; that of an earlier run may have been replaced.
        before = _of_run(file.before, pod, run, before_start)
        return before if isinstance(before, FileValid) else replace(file, before=None)
    if isinstance(run.state, Terminated) and run.state.never_started:
        return FileAbsent()
    if pod is not None and pod.not_empty_dir and run.state is None:
        return FileAbsent()
    if isinstance(file, FileAbsent) or file.identity is None or pod is None:
        return file  # without a Pod the volume is as old as it
    if run.first and pod.only_adapters_write:
        # Nobody else can have left it, whatever its times say: clocks are stepped, and stamps of a
        # busy node come late.
        return file
    return file if _times_fit(file.identity, pod, run, before_start) else FileAbsent()


def _times_fit(
    file: FileIdentity, pod: Pod, run: _Run, before_start: FileBeforeStart | None
) -> bool:
    """Return whether a file that others may have left can be of this run, by its times.

    The API's times are whole seconds.
    """
    written, born = file.ctime_ns // 1_000_000_000, int(pod.started_at or 0)
    if run.state is None or run.state.started_at is None:
        return written >= born
    started = int(run.state.started_at)
    if run.first and pod.not_empty_dir and before_start and int(before_start.seen_at) < started:
        return file != before_start.identity  # a file server has a clock of its own
    if written > started:
        return True
    # Only what is of a later second than an earlier run's end is surely not of that run.
    ended = run.previous.finished_at if run.previous else None
    not_earlier = run.restarts <= 0 or (ended is not None and written > int(ended))
    if written == started:
        return not_earlier or file != run.leftover
    return not_earlier and written >= max(started - STAMP_LAG, born)


def _since(before: float | None, now: float, holds: bool) -> float | None:
    if not holds:
        return None
    return now if before is None else before


def _availability(history: History, now: float, look: PodLook) -> History:
    away = isinstance(look, PodUnknown) or (isinstance(look, PodSeen) and not look.current)
    if history.away and not away:
        return replace(history, away=False, returned=now)
    return replace(history, away=away)


def _with_first_start(history: History, now: float, wall: float, pod: Pod) -> History:
    adapter = pod.adapter
    if adapter is None:
        return history
    shown = [adapter.last.started_at if adapter.last else None]
    if isinstance(adapter.state, Running | Terminated):
        shown.append(adapter.state.started_at)
    starts = [at for at in shown if at is not None]
    if starts:
        return earlier_start(history, now, wall, min(starts), None)
    if history.first_started is None and isinstance(adapter.state, Running):
        return replace(history, first_started=now, first_started_at=wall)
    return history


def _with_trouble(history: History, now: float, pod: Pod) -> History:
    if pod.taken_away:
        return history  # what shows from now on may come of that: a pull that is broken off fails
    trouble = trouble_of(pod)
    before = history.trouble
    if trouble is None or before is None or trouble.row != before.row:
        return replace(history, trouble=trouble, trouble_since=now)
    # The kubelet alternates between an error and its back-off every few seconds; the cause is in
    # the former.
    return history if trouble.back_off else replace(history, trouble=trouble)


def _with_last_run(history: History, pod: Pod, file: ResultLook) -> History:
    """Keep the newest run that ended by itself, and the file found when its end was first shown.

    A run that ended after the Pod was removed did not end by itself.
    """
    adapter = pod.adapter
    if adapter is None:
        return history
    state, restarts = adapter.state, adapter.restarts
    ended, previous, later = adapter.last, None, None
    if isinstance(state, Terminated) and not pod.taken_away:
        ended, previous = state, adapter.last
    elif not isinstance(state, Waiting):
        restarts, later = restarts - 1, state
    known = history.last_run
    if ended is None or (
        known is not None
        and known.restarts >= restarts
        and not isinstance(known.file, FileReadFailed)
    ):
        return history
    before = history.leftover(restarts)
    left = _of_run(file, pod, _Run(ended, restarts, previous, before), history.file_before_start)
    lay = None if isinstance(file, FileAbsent) else file.identity
    theirs = _Run(later, restarts + 1, ended)
    if later is not None and not isinstance(
        _of_run(file, pod, theirs, history.file_before_start), FileAbsent
    ):
        left, lay = FileAbsent(), None  # as far as anybody can tell it is the next run's
    return replace(history, last_run=EndedRun(ended, restarts, left, lay, before))


def _monotonic(at: float, now: float, wall: float) -> float:
    return now - max(0.0, wall - at)
