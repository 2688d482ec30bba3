"""Look, decide, act: the one loop of the product.

Each pass looks at the Pod and then at the file, asks `decide` for the verdict on the latest facts,
and writes it if it differs from what stands. A missed event cannot matter: wake-ups only make a
pass come early. The loop knows neither Kubernetes nor files; it is used by the sidecar and by
`status-ctl try`.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from reporter.core.case import Case, Observation, Policy
from reporter.core.condition import Attempt, Owner, Standing, owner, worth_writing
from reporter.core.evidence import contradiction, evidence
from reporter.core.facts import (
    Form,
    PodLook,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    Running,
    Terminated,
    pod_of,
)
from reporter.core.memory import Memory, attributed, recall, remember
from reporter.core.payloads import Progress, ResultLook
from reporter.core.retry import next_delay
from reporter.core.verdict import (
    Pending,
    Settled,
    Verdict,
    decide,
    nothing_more,
)
from reporter.errors import Conflict, Gone, KubeError, NotFound, Unavailable
from reporter.sinks.statement import Statement

REQUEST_TIMEOUT = 5.0
WRITE_BUDGET = (
    60.0  # the classic form tries a verdict so long, and never less than the wait time plus this
)
START_PATIENCE = 2.0  # a container usually starts this soon after ours: one write instead of two
JOB_PATIENCE = 5.0  # an absent Job is looked for again so long before it counts as never seen
CHATTY = 4.0  # a writer that never rests gets at most a fifth of our time
FRESH = frozenset({"T", "I", "M", "C", "W1", "W2", "W3", "N", "D", "E"})
"""Rows that rest on something not having happened.

The Pod is asked again before they are written.
"""
CURRENT = FRESH - {"N", "D", "E"}
"""Rows that are not written at all while the API does not show the Pod."""


class Outcome(Enum):
    """How the loop ended."""

    FINAL = "final"  # a final verdict of this attempt is on the Job
    SUPERSEDED = "superseded"  # a newer attempt has written
    JOB_GONE = "jobGone"
    JOB_NEVER_SEEN = "jobNeverSeen"
    GAVE_UP = "gaveUp"  # the verdict could not be written in time
    STOPPED = "stopped"  # SIGTERM, with no final verdict to be had


class PodSource(Protocol):
    """Where the Pod, or what stands for it, is looked at."""

    def look(self, *, fresh: bool = False, timeout: float = ...) -> PodLook:
        """Return the newest state; `fresh` asks whoever knows now."""

    def next_look(self) -> float:
        """Return when looking again is worth it by itself; infinity if something wakes the loop."""


class ResultSource(Protocol):
    """Where the result file is looked at."""

    def look(self) -> ResultLook:
        """Return what lies there now."""


class ProgressSource(Protocol):
    """Where progress is looked at."""

    def look(self) -> Progress | None:
        """Return the newest good progress."""


class FileEvents(Protocol):
    """What wakes the loop when a file changes."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""

    def drain(self) -> bool:
        """Take all events; say whether any mattered."""

    def repair(self) -> object:
        """Watch again what has come back."""


class Sink(Protocol):
    """Where reports go."""

    @property
    def standing(self) -> Standing | None:
        """What was read or written last."""

    def expect(self, uid: str) -> None:
        """Name the Job that is meant."""

    def read(self, *, timeout: float = ...) -> Standing:
        """Read what stands. Raises KubeError."""

    def write(self, statement: Statement, *, timeout: float = ...) -> Standing:
        """Write on what was read. Raises KubeError."""

    def annotate(self, statement: Statement, *, timeout: float = ...) -> Standing:
        """Write the annotation alone. Raises KubeError."""


class Telemetry(Protocol):
    """Who is told what the loop does."""

    def observed(self, o: Observation) -> None:
        """Hear of every pass."""

    def published(self, statement: Statement, seconds: float) -> None:
        """Hear of every write that was accepted."""

    def failed(self, what: str, error: KubeError) -> None:
        """Hear of every request that failed."""


class Stop(Protocol):
    """Whether the process was asked to end."""

    @property
    def requested_at(self) -> float | None:
        """Monotonic time of the first request."""


class Wake(Protocol):
    """What the loop sleeps on."""

    def wait(self, timeout: float | None, extra_fds: Any = ...) -> set[int]:
        """Sleep until woken, a descriptor is readable, or `timeout` seconds are over."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything the loop looks at."""

    pod: PodSource
    result: ResultSource
    progress: ProgressSource
    events: FileEvents | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What the user set, as far as the loop's acting depends on it."""

    job_name: str
    pod_name: str
    policy: Policy
    report_running: bool = True
    poll_interval: float = 2.0


class Loop:
    """One attempt's loop. `run` returns how it ended; `idle` goes on looking afterwards."""

    def __init__(
        self,
        inputs: Inputs,
        sink: Sink,
        options: Options,
        *,
        wake: Wake,
        stop: Stop,
        telemetry: Telemetry,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._in, self._sink, self._options = inputs, sink, options
        self._wake, self._stop, self._telemetry = wake, stop, telemetry
        self._clock, self._wall, self._rng = clock, wall, rng
        self._began = clock()
        self._memory = Memory(waiting_since=self._began, waiting_since_at=wall())
        self._seen: Observation | None = None
        self._verdict: Verdict = Pending(self._began)
        self._written: Statement | None = None
        self._written_at = float("-inf")
        self._settled_since: float | None = None
        self._job_missing_since: float | None = None
        self._failures = 0
        self._next_try = self._began
        self._asked_at = float("-inf")
        self._look_cost = 0.0

    @property
    def last(self) -> Observation:
        """Return the newest observation."""
        return self._seen or self._observe()

    @property
    def looked(self) -> bool:
        """Say whether there has been a first pass."""
        return self._seen is not None

    @property
    def statement(self) -> Statement | None:
        """Return what this process wrote last."""
        return self._written

    def run(self) -> Outcome:
        """Look, decide and act until there is nothing left to do."""
        while (outcome := self.step()) is None:
            self._sleep()
        return outcome

    def step(self) -> Outcome | None:
        """Make one pass; return an outcome when it was the last."""
        o = self._observe()
        self._verdict = decide(o, self._options.policy)
        if outcome := self._stands():
            return outcome
        if self._wants(self._verdict, o):
            if isinstance(self._verdict, Settled) and self._settled_since is None:
                self._settled_since = o.now
            if (o.now >= self._next_try or self._just_stopped(o)) and (outcome := self._publish()):
                return outcome
        else:
            self._settled_since = None
        return self._finished()

    def idle(self, done: Callable[[Observation], bool]) -> None:
        """Go on looking until `done` or SIGTERM.

        Write only what contradicts a verdict already given.
        """
        noted = False
        while True:
            o = self._observe(fresh=self._stop.requested_at is not None)
            noted = noted or self._note_contradiction(o)
            if done(o) or self._stopped_for(o, 3 * _STEP):
                return
            self._verdict = Pending(o.now + _STEP if o.stopping_since is not None else float("inf"))
            self._sleep()

    def _observe(self, *, fresh: bool = False) -> Observation:
        timeout = self._timeout()
        fresh = fresh or self._ask_after_stop()
        pod = self._in.pod.look(fresh=fresh, timeout=timeout)
        file = self._look_at_file()
        if (
            self._seen is not None
            and file != self._raw
            and not fresh
            and self._in.pod.next_look() != float("inf")
        ):
            # Without a watch the adapter's state may be 10 s old, and this file may be its last
            # word.
            pod = self._in.pod.look(fresh=True, timeout=timeout)
            file = self._look_at_file()
        self._raw = file
        now, wall = self._clock(), self._wall()
        self._memory = remember(self._memory, now, wall, pod, file)
        known = pod_of(pod)
        if known is not None:
            self._sink.expect(known.job_uid)
        standing = self._sink.standing
        self._seen = Observation(
            now=now,
            pod=pod,
            file=attributed(file, pod, self._memory),
            memory=self._memory,
            job=standing.job if standing else None,
            progress=self._in.progress.look(),
            stopping_since=self._stop.requested_at,
        )
        self._telemetry.observed(self._seen)
        return self._seen

    _raw: ResultLook | None = None

    def _look_at_file(self) -> ResultLook:
        before = self._clock()
        file = self._in.result.look()
        self._look_cost = self._clock() - before
        return file

    def _ask_after_stop(self) -> bool:
        """Ask about the Pod after SIGTERM even if the watch seems healthy.

        At once, then twice a second.
        """
        if self._stop.requested_at is None:
            return False
        watched = self._in.pod.next_look() == float("inf")
        if self._clock() - self._asked_at < (0.5 if watched else _STEP):
            return False
        self._asked_at = self._clock()
        return True

    def _attempt(self, o: Observation) -> Attempt:
        pod = pod_of(o.pod) or o.memory.last_pod
        return Attempt(
            pod=self._options.pod_name,
            pod_uid=pod.uid if pod else "",
            created_at=pod.created_at if pod else None,
            waiting_since_at=o.memory.waiting_since_at,
            first_started_at=o.memory.first_started_at,
            restarts=pod.adapter.restarts if pod and pod.adapter else 0,
        )

    def _wants(self, verdict: Verdict, o: Observation) -> bool:
        if isinstance(verdict, Pending):
            return False
        standing, attempt = self._sink.standing, self._attempt(o)
        if standing is None:
            return not self._just_starting(verdict, o)
        final = isinstance(verdict, Settled)
        whose = owner(standing, attempt)
        silent = not self._options.report_running or self._just_starting(verdict, o)
        if verdict.report.row == "A" and whose is not Owner.OURS and silent:
            return False
        since = o.now - self._written_at
        return worth_writing(standing, attempt, verdict.report, final=final, since_last=since)

    def _just_starting(self, verdict: Verdict, o: Observation) -> bool:
        if (
            isinstance(verdict, Pending)
            or verdict.report.row != "A"
            or o.now >= self._began + START_PATIENCE
        ):
            return False
        pod = pod_of(o.pod)
        return not (pod and isinstance(pod.adapter_state, Running))

    def _publish(self) -> Outcome | None:
        began = self._clock()
        try:
            standing = self._sink.read(timeout=self._timeout())
            self._job_missing_since = None
            self._recall(standing)
            row = "" if isinstance(self._verdict, Pending) else self._verdict.report.row
            o = self._observe(fresh=row in FRESH)
            self._verdict = decide(o, self._options.policy)
            if not self._wants(self._verdict, o) or isinstance(self._verdict, Pending):
                return self._stands()
            if self._verdict.report.row in CURRENT and not _shown(o.pod):
                raise Unavailable("the Pod cannot be read now")
            statement = Statement(
                report=self._verdict.report,
                final=isinstance(self._verdict, Settled),
                attempt=self._attempt(o),
                evidence=evidence(o, self._wall()),
                wall=self._wall(),
            )
            self._sink.write(statement, timeout=self._timeout())
        except (NotFound, Gone) as error:
            self._telemetry.failed("job", error)
            return self._job_missing(error)
        except KubeError as error:
            self._telemetry.failed("job", error)
            self._put_off(error)
            return None
        self._failures = 0
        self._next_try = self._written_at = self._clock()
        self._written = statement
        self._telemetry.published(statement, self._clock() - began)
        return self._stands()

    def _recall(self, standing: Standing) -> None:
        note = standing.note
        if (
            self._seen is not None
            and note is not None
            and note.attempt.same(self._attempt(self._seen))
        ):
            theirs = note.attempt
            now, wall = self._clock(), self._wall()
            self._memory = recall(
                self._memory, now, wall, theirs.first_started_at, theirs.waiting_since_at
            )

    def _stands(self) -> Outcome | None:
        """Say whether what stands on the Job ends our work."""
        standing = self._sink.standing
        if standing is None or standing.note is None or self._seen is None:
            return None
        whose = owner(standing, self._attempt(self._seen))
        if whose is Owner.NEWER:
            return Outcome.SUPERSEDED
        return Outcome.FINAL if whose is Owner.OURS and standing.note.final else None

    def _job_missing(self, error: KubeError) -> Outcome | None:
        pod = pod_of(self.last.pod)
        if self._sink.standing is not None or (
            pod and pod.job_uid and self._is_named(pod.job_name)
        ):
            return Outcome.JOB_GONE
        now = self._clock()
        self._job_missing_since = self._job_missing_since or now
        if isinstance(error, Gone) or now >= self._job_missing_since + JOB_PATIENCE:
            return Outcome.JOB_NEVER_SEEN
        self._put_off(error)
        return None

    def _is_named(self, job_name: str) -> bool:
        return job_name == self._options.job_name

    def _put_off(self, error: KubeError) -> None:
        self._failures += 1
        stopping = self._stop.requested_at is not None
        first = 0.02 if isinstance(error, Conflict) else 0.1
        longest = 0.5 if stopping else 5.0
        delay = next_delay(
            self._failures, self._rng, retry_after=error.retry_after, first=first, longest=longest
        )
        self._next_try = self._clock() + (delay or 0.0)

    def _just_stopped(self, o: Observation) -> bool:
        """Say whether SIGTERM came after the last failure.

        There is no time to sit out an old back-off.
        """
        stopped = o.stopping_since
        if stopped is None or self._hurried:
            return False
        self._hurried = True
        return True

    _hurried = False

    def _finished(self) -> Outcome | None:
        o, now = self.last, self._clock()
        wanted = self._wants(self._verdict, o)
        case = Case(o, self._options.policy)
        budget = case.stop_budget
        if budget is not None:
            if now >= budget:
                return Outcome.GAVE_UP if wanted else Outcome.STOPPED
            return Outcome.STOPPED if not wanted and nothing_more(o, self._options.policy) else None
        if self._settled_since is None or not wanted:
            return None
        if case.form is Form.NATIVE:
            return None
        last = max(self._settled_since, case.wait_end) + WRITE_BUDGET
        return Outcome.GAVE_UP if now >= last else None

    def _note_contradiction(self, o: Observation) -> bool:
        """Add to a good verdict that was given while the adapter ran what its end said.

        Best effort, once.
        """
        pod, said = pod_of(o.pod), self._written
        if (
            said is None
            or not said.final
            or pod is None
            or not isinstance(pod.adapter_state, Terminated)
        ):
            return False
        after = contradiction(said.report.row, said.report.status, pod.adapter_state)
        if after is None or said.evidence.get("adapter", {}).get("state") == "terminated":
            return True
        try:
            standing = self._sink.read(timeout=self._timeout())
            if owner(standing, said.attempt) is Owner.OURS:
                self._written = replace(said, after=after)
                self._sink.annotate(self._written, timeout=self._timeout())
        except KubeError as error:
            self._telemetry.failed("job", error)
        return True

    def _stopped_for(self, o: Observation, seconds: float) -> bool:
        if o.stopping_since is None:
            return False
        pod = pod_of(o.pod)
        ended = pod is None or isinstance(pod.adapter_state, Terminated)
        return ended or self._clock() >= o.stopping_since + seconds

    def _timeout(self) -> float:
        if self._stop.requested_at is None or self._seen is None:
            return REQUEST_TIMEOUT
        stopping = replace(self._seen, stopping_since=self._stop.requested_at)
        budget = Case(stopping, self._options.policy).stop_budget or 0.0
        return min(REQUEST_TIMEOUT, max(0.2, budget - self._clock()))

    def _sleep(self) -> None:
        o, now = self.last, self._clock()
        moments = [now + self._options.poll_interval, self._in.pod.next_look()]
        if not isinstance(self._verdict, Settled):
            moments.append(self._verdict.next_look)
        if not isinstance(self._verdict, Pending) and self._wants(self._verdict, o):
            moments.append(max(self._next_try, now))
        elif self._began + START_PATIENCE > now:
            moments.append(self._began + START_PATIENCE)
        if o.stopping_since is not None:
            case = Case(o, self._options.policy)
            moments += [m for m in (case.poll_end, case.stop_budget) if m is not None and m > now]
        events = self._in.events
        if events is None:
            self._wake.wait(max(0.0, min(moments) - now))
            return
        events.repair()
        if events.fileno() in self._wake.wait(max(0.0, min(moments) - now), (events.fileno(),)):
            events.drain()
            self._wake.wait(min(CHATTY * self._look_cost, self._options.poll_interval))


_STEP = 0.05


def _shown(look: PodLook) -> bool:
    return isinstance(look, PodRefused | PodNeverSeen) or (
        isinstance(look, PodSeen) and look.current
    )
