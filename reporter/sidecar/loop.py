"""Look, decide, publish: the main loop of the sidecar and of `status-ctl try`.

Each pass looks at the Pod and then at the file, asks for the verdict on the latest facts, and has
it written if it differs from what stands. A missed event cannot matter: wake-ups only make a pass
come early.

The words, in the order in which a verdict comes to be:

- `PodLook`, `ResultLook`: what one look at the Pod, or at the result file, has found
- `History`: what earlier looks have shown, and the API shows no more
- `Observation`: all of that at one moment; `Case` adds what several rules derive from it
- `Row`: a situation of the contract, by its letter; the annotation and the log call it `rule`
- `Report`: a row filled in, with status, reason and message
- `Verdict`: a report that is `Settled` or `Provisional`, or none yet (`Pending`)
- `Pass`: an observation, its verdict, and the `Attempt` (the Pod) that has made them
- `Statement`: a report with all that is written beside it; `evidence` are the facts behind it
- `Standing`: the Job as last read; `Note` is what its annotation of ours says
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from reporter.common.lifecycle import Stop
from reporter.sidecar.files import ProgressFile, ResultFile
from reporter.sidecar.inotify import DirectoryWatch
from reporter.sidecar.job import JobCondition
from reporter.sidecar.pace import Pace, TimeLeft
from reporter.sidecar.publish import Listener, LoopOutcome, Pass, Publisher
from reporter.verdict.case import NEVER, POLL_STEP, WRITE_BUDGET, Case, Observation, Policy
from reporter.verdict.condition import Attempt, Standing, Statement
from reporter.verdict.decide import Settled, Verdict, decide, nothing_more, stays, why_taken_away
from reporter.verdict.facts import (
    FileAbsent,
    FileBeforeStart,
    Form,
    PodLook,
    Progress,
    ResultLook,
    Searched,
    Terminated,
    pod_of,
)
from reporter.verdict.history import History, attributed, earlier_start, remember

CONTRADICTION_PATIENCE = 3 * POLL_STEP
"""Seconds after SIGTERM for what contradicts a verdict already given: in the classic form the
adapter may run for long, and of a Pod that is being deleted no end is shown."""
FILE_STEP = 1.0  # between two questions about the Pod because a file changed
CALM_STEP = 0.5  # a watch that seems healthy may be half open; an API that is away may come back


class PodSource(Protocol):
    """Where the Pod is looked at: `PodWatch` in the sidecar, the child process in `try`."""

    def look(self, *, fresh: bool = False, timeout: float = ...) -> PodLook:
        """Return the newest state; `fresh` asks whoever knows now."""

    def next_request(self) -> float:
        """Return when a look will ask again by itself; infinity if something wakes the loop."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything the loop looks at."""

    pod: PodSource
    result: ResultFile
    progress: ProgressFile
    file_events: DirectoryWatch | None = None
    file_before_start: FileBeforeStart | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What the user set, as far as the loop's acting depends on it."""

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
        self._stop, self._telemetry, self._clock = stop, telemetry, clock
        self.time = TimeLeft(lambda: stop.requested_at, options.policy, clock, wall)
        now = clock()
        since = now if began is None else began
        self._history = History(
            waiting_since=since,
            waiting_since_at=wall() - (now - since),
            file_before_start=inputs.file_before_start,
        )
        self._publisher = Publisher(
            job,
            telemetry,
            self.time,
            Pace(now, rng),
            self._look_again,
            report_running=options.report_running,
        )
        self._progress: Progress | None = None
        self._file_asked_about: ResultLook | None = None  # there when the Pod was last asked about
        self._asked_at = float("-inf")
        self._files_cost = 0.0  # seconds the last look at the files took
        self._seen: Pass  # the newest one

    @property
    def verdict(self) -> Verdict:
        """The newest verdict, written or not, after the first pass."""
        return self._seen.verdict

    @property
    def last(self) -> Observation | None:
        """The newest observation."""
        return self.time.last

    @property
    def statement(self) -> Statement | None:
        """What this process wrote last."""
        return self._publisher.statement

    def run(self) -> LoopOutcome:
        """Look, decide and publish until there is nothing left to do."""
        while (outcome := self.step()) is None:
            self._sleep(self._next_pass())
        return outcome

    def step(self) -> LoopOutcome | None:
        """Make one pass; return an outcome when it was the last."""
        seen = self._look_and_decide()
        if outcome := self._publisher.outcome_on_job(seen):
            return outcome
        self._publisher.follow(seen)
        self._publisher.hand_over_in_time(seen)
        tried = self._publisher.is_due(seen)
        if tried and (outcome := self._publish()):
            return outcome
        outcome = self._outcome_of_time()
        if outcome is LoopOutcome.GAVE_UP and not tried:
            # A back-off may reach beyond the end, and the end may be known only when it is over.
            return self._publish() or self._outcome_of_time()
        return outcome

    def _publish(self) -> LoopOutcome | None:
        """Publish the newest verdict. That is another one afterwards: there was another look."""
        outcome = self._publisher.publish(self._seen)
        self._publisher.follow(self._seen)
        return outcome

    def idle(self, done: Callable[[Observation], bool]) -> None:
        """Go on looking until `done` or SIGTERM; write only what contradicts a verdict given."""
        self.time.idle = True
        while True:
            o = self._look()
            owing = self._publisher.add_contradiction(o, self._attempt())
            if done(o) or self._clock() >= self._idle_end(o, owing=owing):
                return
            self._sleep(self._next_idle_look(o, owing=owing))

    # Look: the Pod first, then the file. So "it has ended and left no file" is a true statement.

    def _look(self, *, fresh: bool = False) -> Observation:
        """Look; `fresh` asks the API about the Pod whatever the watch says."""
        # Read before the looks: what is seen after SIGTERM is what was left when it came.
        stopping = self._stop.requested_at
        pod = self._look_at_pod(fresh=fresh or self._ask_after_stop())
        file = self._look_at_files()
        if self._pod_wakes_us or fresh:
            self._file_asked_about = file
        elif file != self._file_asked_about and self._clock() >= self._asked_at + FILE_STEP:
            # Without a watch the adapter's state may be old, and this file may be its last word.
            self._asked_at = self._clock()
            pod = self._look_at_pod(fresh=True)
            self._file_asked_about = file = self._look_at_files()
        now = self._clock()
        self._history = remember(self._history, now, self.time.wall(), pod, file)
        if known := pod_of(pod):
            self._job.expect(known.job_uid)
        standing = self._job.standing
        own_file = attributed(file, pod, self._history)
        o = Observation(
            now=now,
            pod=pod,
            file=own_file,
            history=self._history,
            job=standing.job if standing else None,
            progress=self._progress,
            stopping_since=stopping,
            searched=self._search(pod, own_file),
        )
        self.time.last = o
        self._telemetry.observed(o)
        return o

    @property
    def _pod_wakes_us(self) -> bool:
        """Whether every change of the Pod is shown by itself, or none can come."""
        return self._in.pod.next_request() == NEVER

    def _look_at_pod(self, *, fresh: bool) -> PodLook:
        return self._in.pod.look(fresh=fresh, timeout=self.time.for_request())

    def _look_at_files(self) -> ResultLook:
        before = self._clock()
        file, self._progress = self._in.result.look(), self._in.progress.look()
        self._files_cost = self._clock() - before
        return file

    def _search(self, pod: PodLook, file: ResultLook) -> Searched | None:
        """After a good end without a result: what the adapter has left in its place."""
        shown = pod_of(pod)
        state = shown.adapter_state if shown else None
        if self.time.idle or not isinstance(state, Terminated) or not isinstance(file, FileAbsent):
            return None
        return self._in.result.search() if state.exit_code == 0 else None

    def _ask_after_stop(self) -> bool:
        """Return whether to ask about the Pod because SIGTERM came: soon, then again and again.

        At a natural end a watch shows the adapter's end within 15 ms, and nothing has to be asked.
        """
        stopped = self._stop.requested_at
        if stopped is None:
            return False
        history = self._history
        # Thousands may have waited for the API to come back.
        calm = self._pod_wakes_us or history.away or (history.returned or 0.0) >= stopped
        due = max(self._asked_at + (CALM_STEP if calm else POLL_STEP), stopped)
        if self._pod_wakes_us:
            due = max(due, stopped + POLL_STEP)
        if self._clock() < due:
            return False
        self._asked_at = self._clock()
        return True

    # Decide

    def _look_and_decide(self, *, fresh: bool = False) -> Pass:
        o = self._look(fresh=fresh)
        self._seen = Pass(self._case(o), decide(o, self._options.policy), self._attempt())
        return self._seen

    def _look_again(self, fresh: bool, standing: Standing | None) -> Pass:
        note = standing.note if standing else None
        if note is not None and note.attempt.same(self._attempt()):
            # What an earlier start of this container has written down on the Job.
            started, waiting = note.attempt.first_started_at, note.attempt.waiting_since_at
            now, wall = self._clock(), self.time.wall()
            self._history = earlier_start(self._history, now, wall, started, waiting)
        return self._look_and_decide(fresh=fresh)

    def _attempt(self) -> Attempt:
        pod = self._history.last_pod
        return Attempt(
            pod=self._options.pod_name,
            pod_uid=pod.uid if pod else "",
            created_at=pod.created_at if pod else None,
            waiting_since_at=self._history.waiting_since_at,
            first_started_at=self._history.first_started_at,
            restarts=pod.adapter.restarts if pod and pod.adapter else 0,
            index=pod.index if pod else None,
        )

    def _case(self, o: Observation) -> Case:
        return Case(o, self._options.policy)

    # Time

    def _next_pass(self) -> float:
        """Return when the next pass is due, if nothing wakes us before."""
        now, seen = self._clock(), self._seen
        ends = (seen.case.stop_deadline, seen.case.write_until)
        later = (moment for moment in (*self._publisher.moments(seen), *ends) if moment > now)
        moments = [self._next_request(now), *later]
        if self._publisher.waiting:
            moments.append(self._publisher.pace.next_try)
        if not isinstance(seen.verdict, Settled):
            moments.append(seen.verdict.next_look)
        return min(moments)

    def _next_idle_look(self, o: Observation, *, owing: bool) -> float:
        """The same while idle: only for the sake of looking; `owing` adds the next try to write."""
        moments = [self._next_request(self._clock())]
        if o.stopping_since is not None:
            moments.append(o.now + POLL_STEP)
        if owing:
            moments.append(self._publisher.pace.next_try)
        return min(moments)

    def _next_request(self, now: float) -> float:
        return min(now + self._options.poll_interval, self._in.pod.next_request())

    def _sleep(self, until: float) -> None:
        pause = max(0.0, until - self._clock())
        if self._in.file_events is None:
            self._stop.wake.wait(pause)
        else:
            self._in.file_events.sleep(self._stop.wake, pause, cost=self._files_cost)

    def _outcome_of_time(self) -> LoopOutcome | None:
        """Return the outcome if time, or the lack of it, ends our work."""
        now, case, publisher = self._clock(), self._seen.case, self._publisher
        if case.stopping:
            if now >= (case.write_until if publisher.waiting else case.stop_deadline):
                return LoopOutcome.GAVE_UP if publisher.waiting else LoopOutcome.STOPPED
            over = not publisher.waiting and nothing_more(case.o, case.policy)
            return LoopOutcome.STOPPED if over else None
        if not publisher.waiting or case.form is Form.NATIVE or stays(case.o, case.policy):
            return None
        last = max(publisher.waiting_since, case.wait_end) + WRITE_BUDGET
        return LoopOutcome.GAVE_UP if now >= last else None

    def _idle_end(self, o: Observation, *, owing: bool) -> float:
        """Return until when it looks after SIGTERM for what contradicts a verdict already given."""
        pod, case = pod_of(o.pod), self._case(o)
        if owing or not case.stopping:
            return case.stop_deadline
        if pod is None or isinstance(pod.adapter_state, Terminated):
            return case.stopped
        if case.form is Form.NATIVE and why_taken_away(case) is None:
            return case.end_shown_by  # the adapter has ended, and a busy node is late to say how
        return case.stopped + CONTRADICTION_PATIENCE
