"""Look, decide, publish: the one loop of the product.

Each pass looks at the Pod and then at the file, asks for the verdict on the latest facts, and has
it written if it differs from what stands. A missed event cannot matter: wake-ups only make a pass
come early. One write is: read what stands, look and decide again, and patch what was read; so the
patch is never older than the answer it is based on. The loop is used by the sidecar and by
`status-ctl try`.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from reporter.common.lifecycle import Stop
from reporter.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    KubeError,
    NotFound,
    Unavailable,
)
from reporter.sidecar.files import ProgressFile, ResultFile
from reporter.sidecar.inotify import DirectoryWatch
from reporter.sidecar.job import JobCondition
from reporter.sidecar.pace import Pace
from reporter.verdict import rows
from reporter.verdict.annotation import contradiction, evidence, late
from reporter.verdict.case import (
    LEAST_BUDGET,
    POLL_STEP,
    WRITE_BUDGET,
    Case,
    Observation,
    Policy,
)
from reporter.verdict.condition import Attempt, Owner, Standing, Statement, owner, worth_writing
from reporter.verdict.decide import (
    Pending,
    Settled,
    Verdict,
    decide,
    interruption,
    nothing_more,
    stays,
)
from reporter.verdict.facts import (
    FileAbsent,
    FileValid,
    FirstLook,
    Form,
    PodGone,
    PodLook,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Progress,
    ResultLook,
    Running,
    Searched,
    Terminated,
    pod_of,
)
from reporter.verdict.memory import Memory, attributed, recall, remember

LAST_LOOK = 3 * POLL_STEP
"""Seconds after SIGTERM for what contradicts a verdict already given: in the classic form the
adapter may run for long, and of a Pod that is being deleted no end is shown."""
REQUEST_TIMEOUT = 5.0
"""Seconds for a request: the API server answers in far less, and a pass is blocked meanwhile."""
LEAST_TIMEOUT = 0.2
"""Seconds for a request at the very end: with less none would have a chance."""
IDLE_TIMEOUT = 0.5
"""Seconds for a request after SIGTERM when all is written: nothing is lost by an early end."""
SLOW_WRITES = (10.0, 35.0)
"""Seconds for a write after a first and a second one had no answer in time: a webhook may take 10,
and an API server ends a change after 34."""
FILE_STEP = 1.0  # between two questions about the Pod because a file changed
CALM_STEP = 0.5  # a watch that seems healthy may be half open; an API that is away may come back
JOB_PATIENCE = 5.0  # a 404 that may be wrong has to last so long
EVENT_PATIENCE = 1.0  # seconds for the one try to announce a final verdict
EVENT_LEAST = 0.5  # less than this before the end is kept for what matters
HAND_OVER = 5.0
"""Seconds until others hear of a verdict that is not written: since SIGTERM of a result that nobody
can change any more, and of any verdict so long before the end."""
FRESH = frozenset({"T", "I", "M", "C", "W1", "W2", "W3", "N", "D", "E"})
"""Rows that rest on something not having happened: the Pod is asked again before the write."""
CURRENT = FRESH - {"N", "D", "E"}
"""Rows that are not written while the API does not show the Pod, unless it is taken away."""


class LoopOutcome(Enum):
    """How the work on a Job ended."""

    FINAL = "final"  # a final verdict of this attempt is on the Job
    SUPERSEDED = "superseded"  # a newer attempt has written
    OTHER_INDEX_FAILED = "otherIndexFailed"  # its verdict stays, ours is known and not written
    JOB_GONE = "jobGone"
    JOB_NEVER_SEEN = "jobNeverSeen"
    GAVE_UP = "gaveUp"  # the verdict could not be written in time
    STOPPED = "stopped"  # by SIGTERM, before a final verdict


class PodSource(Protocol):
    """Where the Pod, or what stands for it, is looked at."""

    def look(self, *, fresh: bool = False, timeout: float = ...) -> PodLook:
        """Return the newest state; `fresh` asks whoever knows now."""

    def next_look(self) -> float:
        """Return when looking again is worth it by itself; infinity if something wakes the loop."""


class Listener(Protocol):
    """Who is told what the loop does."""

    def observed(self, o: Observation) -> None:
        """Hear of every pass."""

    def published(self, statement: Statement, seconds: float) -> None:
        """Hear of every write that was accepted."""

    def withheld(self, report: rows.Report, evidence: Mapping[str, Any]) -> None:
        """Hear of a final verdict that cannot be written; it is tried again, and told again."""

    def failed(self, what: str, error: KubeError) -> None:
        """Hear of every request that failed."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything the loop looks at."""

    pod: PodSource
    result: ResultFile
    progress: ProgressFile
    events: DirectoryWatch | None = None
    first_look: FirstLook | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What the user set, as far as the loop's acting depends on it."""

    job_name: str
    pod_name: str
    policy: Policy
    report_running: bool = True
    poll_interval: float = 2.0


class Loop:
    """One attempt's loop. `run` returns how it ended; `idle` goes on looking afterwards.

    Times are readings of `clock`, in seconds. `began` is when the process was started, if that was
    earlier.
    """

    def __init__(
        self,
        inputs: Inputs,
        job: JobCondition,
        options: Options,
        *,
        stop: Stop,
        telemetry: Listener,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
        began: float | None = None,
    ) -> None:
        self._in, self._job, self._options = inputs, job, options
        self._stop, self._telemetry = stop, telemetry
        self._clock, self._wall = clock, wall
        now = clock()
        since = now if began is None else began
        self._memory = Memory(
            waiting_since=since,
            waiting_since_at=wall() - (now - since),
            first_look=inputs.first_look,
        )
        self._file: ResultLook | None = None
        self._progress: Progress | None = None
        self._asked_at = float("-inf")
        self._files_cost = 0.0  # seconds the last look at the files took
        self._idle = False  # nothing is left to write: SIGTERM should end us soon
        self._pace = Pace(now, rng)
        self._wanted: tuple[str, bool] | None = None  # row and finality of what waits to be written
        self._wanted_since = now
        self._sent: Statement | None = None
        self._job_missing_since: float | None = None
        self._timeouts = 0  # of writes
        self._unnotable = False  # what contradicts the verdict was added, or cannot be
        self.last: Observation | None = None
        self.verdict: Verdict = Pending(now)  # the newest, written or not
        self.statement: Statement | None = None  # what this process wrote last

    def run(self) -> LoopOutcome:
        """Look, decide and publish until there is nothing left to do."""
        while (outcome := self.step()) is None:
            self._sleep(self._next_pass())
        return outcome

    def step(self) -> LoopOutcome | None:
        """Make one pass; return an outcome when it was the last."""
        o = self._look()
        self.verdict = decide(o, self._options.policy)
        if outcome := self._stands():
            return outcome
        wanted = self._wants(o)
        if wanted and o.now >= self._hand_over_at(o):
            # Others need time to deliver it, and a request may hang until there is none.
            self._withhold(o)
        tried = wanted and self._pace.due(o, final=self._final)
        if tried and (outcome := self._publish()):
            return outcome
        outcome = self._ends()
        if outcome is LoopOutcome.GAVE_UP and not tried:
            # A back-off may reach beyond the end, and the end may be known only when it is over.
            return self._publish() or self._ends()
        return outcome

    def idle(self, done: Callable[[Observation], bool]) -> None:
        """Go on looking until `done` or SIGTERM; write only what contradicts a verdict given."""
        self._idle = True
        while True:
            o = self._look()
            owing = self._note_contradiction(o)
            if done(o) or (self._deadline_over(o) if owing else self._last_look_over(o)):
                return
            self._sleep(self._next_pass(owing=owing))

    @property
    def write_end(self) -> float:
        """Until when a write that is under way at SIGTERM may go on; -inf before it.

        The rest is enough for another one.
        """
        case = self._stopping()
        deadline = case.stop_deadline if case else None
        return float("-inf") if deadline is None else deadline - LEAST_BUDGET

    # Look: the Pod first, then the file. So "it has ended and left no file" is a true statement.

    def _look(self, *, fresh: bool = False) -> Observation:
        """Look; `fresh` asks the API about the Pod whatever the watch says."""
        # Read before the looks: what is seen after SIGTERM is what was left when it came.
        stopping = self._stop.requested_at
        pod = self._look_at_pod(fresh=fresh or self._ask_after_stop())
        file = self._look_at_files()
        if self._watched or fresh:
            self._file = file
        elif file != self._file and self._clock() >= self._asked_at + FILE_STEP:
            # Without a watch the adapter's state may be old, and this file may be its last word.
            self._asked_at = self._clock()
            pod = self._look_at_pod(fresh=True)
            self._file = file = self._look_at_files()
        now = self._clock()
        self._memory = remember(self._memory, now, self._wall(), pod, file)
        if known := pod_of(pod):
            self._job.expect(known.job_uid)
        standing = self._job.standing
        file = attributed(file, pod, self._memory)
        self.last = Observation(
            now=now,
            pod=pod,
            file=file,
            memory=self._memory,
            job=standing.job if standing else None,
            progress=self._progress,
            stopping_since=stopping,
            searched=self._look_around(pod, file),
        )
        self._telemetry.observed(self.last)
        return self.last

    @property
    def _watched(self) -> bool:
        return self._in.pod.next_look() == float("inf")

    def _look_at_pod(self, *, fresh: bool) -> PodLook:
        return self._in.pod.look(fresh=fresh, timeout=self._timeout())

    def _look_at_files(self) -> ResultLook:
        before = self._clock()
        file, self._progress = self._in.result.look(), self._in.progress.look()
        self._files_cost = self._clock() - before
        return file

    def _look_around(self, pod: PodLook, file: ResultLook) -> Searched | None:
        """After a good end without a result: what the adapter has left in its place."""
        shown = pod_of(pod)
        state = shown.adapter_state if shown else None
        if self._idle or not isinstance(state, Terminated) or not isinstance(file, FileAbsent):
            return None
        return self._in.result.look_around() if state.exit_code == 0 else None

    def _ask_after_stop(self) -> bool:
        """Return whether to ask about the Pod because SIGTERM came: soon, then again and again.

        At a natural end a watch shows the adapter's end within 15 ms, and nothing has to be asked.
        """
        stopped = self._stop.requested_at
        if stopped is None:
            return False
        calm = self._watched or self._memory.away
        due = max(self._asked_at + (CALM_STEP if calm else POLL_STEP), stopped)
        if self._watched:
            due = max(due, stopped + POLL_STEP)
        if self._clock() < due:
            return False
        self._asked_at = self._clock()
        return True

    def _attempt(self) -> Attempt:
        pod = self._memory.last_pod
        return Attempt(
            pod=self._options.pod_name,
            pod_uid=pod.uid if pod else "",
            created_at=pod.created_at if pod else None,
            waiting_since_at=self._memory.waiting_since_at,
            first_started_at=self._memory.first_started_at,
            restarts=pod.adapter.restarts if pod and pod.adapter else 0,
            index=pod.index if pod else None,
        )

    # Time

    def _case(self, o: Observation) -> Case:
        return Case(o, self._options.policy)

    def _stopping(self) -> Case | None:
        """Return what is known now that SIGTERM has come; nothing before it."""
        stopped = self._stop.requested_at
        if stopped is None or self.last is None:
            return None
        return self._case(replace(self.last, stopping_since=stopped))

    def _left(self, keep: float = 0.0) -> float | None:
        """Return the seconds until the next end that is ahead after SIGTERM; nothing before it.

        The kubelet may end this process at the first; where the Pod was never seen, writing goes on
        until the second. `keep`: an end comes so many seconds before the first, too.
        """
        case = self._stopping()
        if case is None:
            return None
        first, last = case.stop_deadline or 0.0, case.give_up_at or 0.0
        now = self._clock()
        return next((end for end in (first - keep, first) if end > now), last) - now

    def _ends_within(self, seconds: float) -> bool:
        """Return whether the kubelet may end this process so soon."""
        case = self._stopping()
        return case is not None and self._clock() >= (case.stop_deadline or 0.0) - seconds

    def _timeout(self) -> float:
        """Return how long a request may take: after SIGTERM there has to be time for another."""
        left = self._left()
        if left is None:
            return REQUEST_TIMEOUT
        longest = IDLE_TIMEOUT if self._idle else REQUEST_TIMEOUT
        return min(longest, max(LEAST_TIMEOUT, left / 2))

    def _next_pass(self, *, owing: bool = False) -> float:
        """Return when the next pass is due, if nothing wakes us before: the one place that says.

        While `idle`, only for the sake of looking; `owing` adds the next try to write.
        """
        o, now = self.last, self._clock()
        moments = [now + self._options.poll_interval, self._in.pod.next_look()]
        if o is None:
            return min(moments)
        if self._idle:
            if o.stopping_since is not None:
                moments.append(o.now + POLL_STEP)
            return min([*moments, self._pace.next_try] if owing else moments)
        case = self._case(o)
        later = [*self._pace.moments(), case.held_until, self._hand_over_at(o)]
        later += [end for end in (case.stop_deadline, case.give_up_at) if end is not None]
        moments += [end for end in later if end > now]
        if self._wants(o):
            moments.append(self._pace.next_try)
        if not isinstance(self.verdict, Settled):
            moments.append(self.verdict.next_look)
        return min(moments)

    def _sleep(self, until: float) -> None:
        pause = max(0.0, until - self._clock())
        if self._in.events is None:
            self._stop.wake.wait(pause)
        else:
            self._in.events.sleep(self._stop.wake, pause, cost=self._files_cost)

    def _ends(self) -> LoopOutcome | None:
        """Return whether time, or the lack of it, ends our work."""
        if (o := self.last) is None:
            return None
        now, wanted, case = self._clock(), self._wants(o), self._case(o)
        if case.stop_deadline is not None and case.give_up_at is not None:
            if now >= (case.give_up_at if wanted else case.stop_deadline):
                return LoopOutcome.GAVE_UP if wanted else LoopOutcome.STOPPED
            return LoopOutcome.STOPPED if not wanted and nothing_more(o, case.policy) else None
        if not wanted or case.form is Form.NATIVE or stays(o, case.policy):
            return None
        last = max(self._wanted_since, case.wait_end) + WRITE_BUDGET
        return LoopOutcome.GAVE_UP if now >= last else None

    def _deadline_over(self, o: Observation) -> bool:
        deadline = self._case(o).stop_deadline
        return deadline is not None and self._clock() >= deadline

    def _last_look_over(self, o: Observation) -> bool:
        if o.stopping_since is None:
            return False
        pod, case = pod_of(o.pod), self._case(o)
        last = o.stopping_since + LAST_LOOK
        if case.form is Form.NATIVE and interruption(case) is None and case.look_until:
            last = case.look_until  # the adapter has ended, and a busy node is late to say how
        ended = pod is None or isinstance(pod.adapter_state, Terminated)
        return ended or self._clock() >= last

    # Decide: is the verdict worth a write, and what stands already?

    @property
    def _row(self) -> str:
        return "" if isinstance(self.verdict, Pending) else self.verdict.report.row

    @property
    def _final(self) -> bool:
        return isinstance(self.verdict, Settled)

    def _wants(self, o: Observation) -> bool:
        """Return whether the present verdict is worth a write, and keep since when."""
        wanted = (self._row, self._final) if self._worth_it(o) else None
        if wanted != self._wanted:
            self._wanted, self._wanted_since = wanted, o.now
        return wanted is not None

    def _worth_it(self, o: Observation) -> bool:
        if isinstance(self.verdict, Pending) or o.now < self._case(o).held_until:
            return False
        report, standing = self.verdict.report, self._job.standing
        pod = pod_of(o.pod)
        running = pod is not None and isinstance(pod.adapter_state, Running)
        just_starting = report.row == "A" and not running and self._pace.starting(o)
        if standing is None:
            return not just_starting
        attempt = self._attempt()
        silent = not self._options.report_running or just_starting
        if report.row == "A" and silent and owner(standing, attempt) is not Owner.OURS:
            return False
        since = self._pace.since_write(o)
        return worth_writing(standing, attempt, report, final=self._final, since_last=since)

    def _stands(self) -> LoopOutcome | None:
        """Return whether what stands on the Job ends our work."""
        standing = self._job.standing
        if standing is None or standing.note is None:
            return None
        match owner(standing, self._attempt()):
            case Owner.NEWER:
                return LoopOutcome.SUPERSEDED
            case Owner.FAILED_INDEX:
                # Our own verdict is still needed: the classic form exits by it.
                return LoopOutcome.OTHER_INDEX_FAILED if self._final else None
            case Owner.OURS if standing.note.final:
                return LoopOutcome.FINAL
            case _:
                return None

    def _hand_over_at(self, o: Observation) -> float:
        """Return when others hear of the adapter's own word that its Job does not get."""
        case = self._case(o)
        dead = case.form is Form.NATIVE or isinstance(case.state, Terminated)
        if self._final and self._row == "R" and dead and o.stopping_since is not None:
            return max(o.stopping_since, self._wanted_since) + HAND_OVER
        return float("inf")

    def _withhold(self, o: Observation) -> None:
        """Report to others a final verdict that cannot be written, or not in time."""
        if isinstance(self.verdict, Settled):
            self._telemetry.withheld(self.verdict.report, evidence(o, self._wall()))

    def _hidden(self, o: Observation) -> bool:
        """Return whether what the verdict rests on is not seen now."""
        match o.pod:
            case PodUnknown():
                return True
            case PodRefused() | PodNeverSeen() | PodGone():
                return False
            case PodSeen(pod, current):
                return self._row in CURRENT and not (current or pod.taken_away)

    # Publish

    def _publish(self) -> LoopOutcome | None:
        """Read what stands, look and decide again, and write if that still differs."""
        began = self._clock()
        try:
            standing = self._job.read(timeout=self._timeout())
            self._job_missing_since = None
            self._recall(standing)
            if self._sent is not self.statement and self._carried_out(standing):
                self._accepted(began)
            o = self._look_again()
            if isinstance(self.verdict, Pending) or not self._worth_it(o):
                self._pace.unneeded(self._clock())
                return self._stands()
            if self._hidden(o):
                raise Unavailable("the Pod cannot be read now")
            self._sent = Statement(
                report=self.verdict.report,
                final=self._final,
                attempt=self._attempt(),
                evidence=evidence(o, self._wall()),
                wall=self._wall(),
            )
            shown = self._write(self._sent, o)
        except (NotFound, Gone) as error:
            self._telemetry.failed("job", error)
            return self._job_missing(error)
        except KubeError as error:
            self._telemetry.failed("job", error)
            self._failed(error)
            return None
        if shown != self._job.standing:
            what = "the annotation of the verdict is missing or was changed in the response"
            self._telemetry.failed("annotation", InvalidRequest(what))
        self._accepted(began)
        return self._stands()

    def _recall(self, standing: Standing) -> None:
        """Put back what an earlier start of this container has written down on the Job."""
        note = standing.note
        if note is not None and note.attempt.same(self._attempt()):
            started, waiting = note.attempt.first_started_at, note.attempt.waiting_since_at
            self._memory = recall(self._memory, self._clock(), self._wall(), started, waiting)

    def _look_again(self) -> Observation:
        seen = self.last
        # An attempt that cannot name its Pod must not outrank one that can.
        unknown = seen is None or isinstance(seen.pod, PodUnknown)
        # With at-exit a result of an adapter that seems to run rests on its end not having come.
        ended = seen is not None and self._case(seen).ended_run is not None
        unended = self._row == "R" and self._options.policy.at_exit and not ended
        o = self._look(fresh=unknown or unended or self._row in FRESH)
        self.verdict = decide(o, self._options.policy)
        return o

    def _write(self, statement: Statement, o: Observation) -> Standing:
        timeout, left, began = self._timeout(), self._left(), self._clock()
        if self._timeouts:
            timeout = SLOW_WRITES[min(self._timeouts, len(SLOW_WRITES)) - 1]
            if left is not None:
                timeout = min(timeout, max(LEAST_TIMEOUT, left))
                if left - timeout < HAND_OVER:
                    self._withhold(o)
        try:
            return self._job.write(statement, timeout=timeout)
        except Unavailable:
            self._timeouts += self._clock() - began >= timeout
            raise

    def _carried_out(self, standing: Standing) -> bool:
        """Return whether what was sent last stands, although its answer got lost."""
        sent, note = self._sent, standing.note
        if sent is None or note is None or owner(standing, sent.attempt) is not Owner.OURS:
            return False
        said = sent.report
        return (said.row, sent.final, said.status, said.reason, said.message) == (
            note.row,
            note.final,
            standing.status,
            standing.reason,
            standing.message,
        )

    def _accepted(self, began: float) -> None:
        if self._sent is not None:
            self._pace.written(self._clock(), final=self._sent.final)
            self.statement = self._sent
            self._telemetry.published(self._sent, self._clock() - began)
            if self._sent.final:
                self._announce(self._sent)

    def _failed(self, error: KubeError) -> None:
        """Back off, and let others hear of what may not get on the Job."""
        self._job_missing_since = None
        if isinstance(error, Forbidden | InvalidRequest):
            if not self._hidden(o := self._look_again()):
                self._withhold(o)
        elif self._ends_within(HAND_OVER) and self.last:
            self._withhold(self.last)
        # Whatever the server wishes, there is a try when others have to hear.
        self._pace.put_off(self._clock(), error, self._left(keep=HAND_OVER))

    def _job_missing(self, error: NotFound | Gone) -> LoopOutcome | None:
        pod = pod_of(self.last.pod) if self.last else None
        labelled = pod is not None and pod.job_uid and pod.job_name == self._options.job_name
        was_there = self._job.standing is not None or labelled
        # An API server that starts may not know the path yet, and names nothing.
        sure = isinstance(error, Gone) or (was_there and error.name == self._options.job_name)
        now = self._clock()
        if self._job_missing_since is None:
            self._job_missing_since = now
        if sure or now >= self._job_missing_since + JOB_PATIENCE:
            return LoopOutcome.JOB_GONE if was_there else LoopOutcome.JOB_NEVER_SEEN
        self._pace.put_off(now, error, self._left())
        return None

    def _announce(self, statement: Statement, *, late: bool = False) -> None:
        left = self._left()
        if left is not None and left < EVENT_LEAST:
            return
        timeout = EVENT_PATIENCE if left is None else min(EVENT_PATIENCE, left)
        try:
            self._job.announce(statement, timeout=timeout, late=late)
        except Conflict:
            pass  # it is there: this is its second try
        except KubeError as error:
            self._telemetry.failed("event", error)

    # After a final verdict

    def _note_contradiction(self, o: Observation) -> bool:
        """Add what contradicts a verdict given before, once; best effort.

        That is the adapter's end after a success, or a result after a timeout. The verdict may be
        one that an earlier start of this container has written. True while there is something left
        to add; the next try is at the pace's `next_try`.
        """
        if self._unnotable or self._contradiction(o) is None:
            return False
        if not self._pace.due(o):
            return True
        try:
            note = self._job.read(timeout=self._timeout()).note
            if found := self._contradiction(o):
                self._job.annotate(*found, timeout=self._timeout())
            # Where it is there already, the answer to an earlier try got lost.
            if note is not None and (found or note.amended):
                self._unnotable = True
                if isinstance(o.file, FileValid) and note.row == "T":
                    report = rows.late_result(o.file.result)
                    said = Statement(report, True, self._attempt(), {}, self._wall())
                    self._announce(said, late=True)
        except (Conflict, Unavailable) as error:
            self._telemetry.failed("job", error)
            self._pace.put_off(self._clock(), error, self._left())
            return True
        except KubeError as error:
            self._telemetry.failed("job", error)
            self._unnotable = True
        return False

    def _contradiction(self, o: Observation) -> tuple[str, Mapping[str, Any]] | None:
        """Return what is missing from the final verdict of ours that stands, if anything."""
        standing, pod = self._job.standing, pod_of(o.pod)
        note = standing.note if standing else None
        if standing is None or note is None or not note.final or note.amended:
            return None
        if owner(standing, self._attempt()) is not Owner.OURS:
            return None
        if note.row == "T" and isinstance(o.file, FileValid):
            return "late", late(o.file.result, self._wall())
        if note.ended or pod is None or not isinstance(pod.adapter_state, Terminated):
            return None
        after = contradiction(note.row, standing.status, pod.adapter_state)
        return ("after", after) if after else None
