"""Look, decide, act: the one loop of the product.

Each pass looks at the Pod and then at the file, asks `decide` for the verdict on the latest facts,
and writes it if it differs from what stands. A missed event cannot matter: wake-ups only make a
pass come early. The loop knows neither Kubernetes nor files; it is used by the sidecar and by
`status-ctl try`.
"""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from reporter.core.case import Case, Observation
from reporter.core.condition import TEXT_PAUSE, Owner, Standing, owner, worth_writing
from reporter.core.evidence import contradiction, evidence
from reporter.core.facts import (
    Form,
    PodLook,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Running,
    Terminated,
    pod_of,
)
from reporter.core.retry import next_delay
from reporter.core.verdict import Pending, Settled, Verdict, decide, nothing_more, stays
from reporter.errors import Conflict, Gone, KubeError, NotFound, Refused, Unavailable
from reporter.look import POLL_STEP, Looker
from reporter.seams import Inputs, Options, Sink, Stop, Telemetry, Wake
from reporter.sinks.statement import Statement

WRITE_BUDGET = 60.0  # the classic form tries so long, and never less than the wait time plus this
FIRST_PATIENCE = 2.0  # a container usually starts this soon after ours: one write instead of two
JOB_PATIENCE = 5.0  # an absent Job is looked for again so long before it counts as never seen
LAST_LOOK = 3 * POLL_STEP  # after SIGTERM, for what contradicts a verdict already given
REPEAT_PAUSE = 1.0  # between two writes of one revisable row: a conflict costs the controller 1 s
NEIGHBOUR_PAUSE = 0.05  # after events of files that are none of ours
CHATTY = 4.0  # a writer that never rests gets at most a fifth of our time
FRESH = frozenset({"T", "I", "M", "C", "W1", "W2", "W3", "N", "D", "E"})
"""Rows that rest on something not having happened: the Pod is asked again before the write."""
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
        self._looker = Looker(
            inputs,
            sink,
            stop,
            policy=options.policy,
            pod_name=options.pod_name,
            clock=clock,
            wall=wall,
        )
        self._began = clock()
        self._verdict: Verdict = Pending(self._began)
        self._sent: Statement | None = None
        self._written: Statement | None = None
        self._written_at = float("-inf")
        self._wanted: tuple[str, bool] | None = None  # row and finality of what waits to be written
        self._wanted_since = self._began
        self._job_missing_since: float | None = None
        self._failures = 0
        self._next_try = self._began
        self._hurried = False

    @property
    def last(self) -> Observation | None:
        """The newest observation."""
        return self._looker.seen

    @property
    def statement(self) -> Statement | None:
        """What this process wrote last."""
        return self._written

    def run(self) -> Outcome:
        """Look, decide and act until there is nothing left to do."""
        while (outcome := self.step()) is None:
            self._sleep(self._next_moments())
        return outcome

    def step(self) -> Outcome | None:
        """Make one pass; return an outcome when it was the last."""
        o = self._observe()
        self._verdict = decide(o, self._options.policy)
        if outcome := self._stands():
            return outcome
        due = self._follow_wants(o) and (o.now >= self._next_try or self._hurry())
        if due and (outcome := self._publish()):
            return outcome
        return self._ends()

    def idle(self, done: Callable[[Observation], bool]) -> None:
        """Go on looking until `done` or SIGTERM; write only what contradicts a verdict given."""
        noted = False
        self._looker.idle = True
        while True:
            o = self._observe()
            noted = noted or self._note_contradiction(o)
            if done(o) or self._last_look_over(o):
                return
            stopping = o.stopping_since is not None
            pause = POLL_STEP if stopping else self._options.poll_interval
            self._sleep([o.now + pause, self._in.pod.next_look()])

    def _observe(self, *, fresh: bool = False) -> Observation:
        o = self._looker.observe(fresh=fresh)
        self._telemetry.observed(o)
        return o

    def _wants(self, o: Observation) -> bool:
        """Say whether the present verdict is worth a write."""
        if isinstance(self._verdict, Pending):
            return False
        report, standing = self._verdict.report, self._sink.standing
        if standing is None:
            return not self._just_starting(o)
        attempt = self._looker.attempt()
        silent = not self._options.report_running or self._just_starting(o)
        if report.row == "A" and owner(standing, attempt) is not Owner.OURS and silent:
            return False
        since = o.now - self._written_at
        final = isinstance(self._verdict, Settled)
        repeated = self._written is not None and self._written.report.row == report.row
        if repeated and not final and since < REPEAT_PAUSE and o.stopping_since is None:
            return False
        return worth_writing(standing, attempt, report, final=final, since_last=since)

    def _follow_wants(self, o: Observation) -> bool:
        """Keep since when the present verdict waits to be written; say whether it does."""
        wanted = None
        if not isinstance(self._verdict, Pending) and self._wants(o):
            wanted = (self._verdict.report.row, isinstance(self._verdict, Settled))
        if wanted != self._wanted:
            self._wanted, self._wanted_since = wanted, o.now
        return wanted is not None

    def _just_starting(self, o: Observation) -> bool:
        verdict, pod = self._verdict, pod_of(o.pod)
        if isinstance(verdict, Pending) or verdict.report.row != "A":
            return False
        running = pod is not None and isinstance(pod.adapter_state, Running)
        return not running and o.now < self._began + FIRST_PATIENCE

    def _publish(self) -> Outcome | None:
        """Read what stands, look and decide again, and write if that still differs."""
        began = self._clock()
        try:
            standing = self._sink.read(timeout=self._looker.timeout())
            self._job_missing_since = None
            self._looker.recall(standing)
            if self._sent is not self._written and self._carried_out(standing):
                self._accepted(began)
            row = "" if isinstance(self._verdict, Pending) else self._verdict.report.row
            # An attempt that cannot name its Pod must not outrank one that can.
            unknown = self.last is None or isinstance(self.last.pod, PodUnknown)
            o = self._observe(fresh=unknown or row in FRESH)
            self._verdict = decide(o, self._options.policy)
            if isinstance(self._verdict, Pending) or not self._wants(o):
                return self._stands()
            if isinstance(o.pod, PodUnknown):
                raise Unavailable("the Pod has not been read yet")
            if self._verdict.report.row in CURRENT and not _shown(o.pod):
                raise Unavailable("the Pod cannot be read now")
            self._sent = Statement(
                report=self._verdict.report,
                final=isinstance(self._verdict, Settled),
                attempt=self._looker.attempt(),
                evidence=evidence(o, self._wall()),
                wall=self._wall(),
            )
            self._sink.write(self._sent, timeout=self._looker.timeout())
        except (NotFound, Gone) as error:
            self._telemetry.failed("job", error)
            return self._job_missing(error)
        except KubeError as error:
            self._telemetry.failed("job", error)
            self._put_off(error)
            return None
        self._accepted(began)
        return self._stands()

    def _carried_out(self, standing: Standing) -> bool:
        """Say whether what was sent last stands, although its answer got lost."""
        sent, note = self._sent, standing.note
        if sent is None or note is None or owner(standing, sent.attempt) is not Owner.OURS:
            return False
        said = sent.report
        return (said.row, sent.final) == (note.row, note.final) and (
            (said.status, said.reason, said.message)
            == (standing.status, standing.reason, standing.message)
        )

    def _accepted(self, began: float) -> None:
        if self._sent is not None:
            self._failures = 0
            self._next_try = self._written_at = self._clock()
            self._written = self._sent
            self._telemetry.published(self._sent, self._clock() - began)

    def _stands(self) -> Outcome | None:
        """Say whether what stands on the Job ends our work."""
        standing = self._sink.standing
        if standing is None or standing.note is None:
            return None
        whose = owner(standing, self._looker.attempt())
        if whose is Owner.NEWER:
            return Outcome.SUPERSEDED
        return Outcome.FINAL if whose is Owner.OURS and standing.note.final else None

    def _job_missing(self, error: KubeError) -> Outcome | None:
        pod = pod_of(self.last.pod) if self.last else None
        labelled = pod is not None and pod.job_uid and pod.job_name == self._options.job_name
        if self._sink.standing is not None or labelled:
            return Outcome.JOB_GONE
        now = self._clock()
        self._job_missing_since = self._job_missing_since or now
        if isinstance(error, Gone) or now >= self._job_missing_since + JOB_PATIENCE:
            return Outcome.JOB_NEVER_SEEN
        self._put_off(error)
        return None

    def _put_off(self, error: KubeError) -> None:
        self._failures += 1
        longest = 5.0 if self._stop.requested_at is None else 0.5
        delay = next_delay(
            self._failures,
            self._rng,
            retry_after=error.retry_after,
            remaining=self._looker.left(),
            first=0.02
            if isinstance(error, Conflict)
            else longest
            if isinstance(error, Refused)
            else 0.1,
            longest=longest,
        )
        self._next_try = self._clock() + (delay or 0.0)

    def _hurry(self) -> bool:
        """Say, once, that SIGTERM has come: there is no time to sit out an old back-off."""
        if self._stop.requested_at is None or self._hurried:
            return False
        self._hurried = True
        return True

    def _ends(self) -> Outcome | None:
        """Say whether time, or the lack of it, ends our work."""
        o = self.last
        if o is None:
            return None
        now, wanted = self._clock(), self._follow_wants(o)
        case = Case(o, self._options.policy)
        if case.stop_budget is not None:
            if now >= case.stop_budget:
                return Outcome.GAVE_UP if wanted else Outcome.STOPPED
            return Outcome.STOPPED if not wanted and nothing_more(o, case.policy) else None
        if not wanted or case.form is Form.NATIVE or stays(o, case.policy):
            return None
        last = max(self._wanted_since, case.wait_end) + WRITE_BUDGET
        return Outcome.GAVE_UP if now >= last else None

    def _note_contradiction(self, o: Observation) -> bool:
        """Add what the adapter's end said against a good verdict given before; best effort."""
        pod, said = pod_of(o.pod), self._written
        if said is None or not said.final or pod is None:
            return False
        if not isinstance(pod.adapter_state, Terminated):
            return False
        after = contradiction(said.report.row, said.report.status, pod.adapter_state)
        if after is None or said.evidence.get("adapter", {}).get("state") == "terminated":
            return True
        try:
            standing = self._sink.read(timeout=self._looker.timeout())
            if owner(standing, said.attempt) is Owner.OURS:
                self._written = replace(said, after=after)
                self._sink.annotate(self._written, timeout=self._looker.timeout())
        except KubeError as error:
            self._telemetry.failed("job", error)
        return True

    def _last_look_over(self, o: Observation) -> bool:
        if o.stopping_since is None:
            return False
        pod = pod_of(o.pod)
        ended = pod is None or isinstance(pod.adapter_state, Terminated)
        return ended or self._clock() >= o.stopping_since + LAST_LOOK

    def _next_moments(self) -> list[float]:
        """List when the next pass is due, whatever wakes us before."""
        o, now = self.last, self._clock()
        moments = [now + self._options.poll_interval, self._in.pod.next_look()]
        if o is None:
            return moments
        if not isinstance(self._verdict, Settled):
            moments.append(self._verdict.next_look)
        if self._wants(o):
            moments.append(self._next_try)
        pauses = [self._began + FIRST_PATIENCE]
        pauses += [self._written_at + pause for pause in (REPEAT_PAUSE, TEXT_PAUSE)]
        moments += [end for end in pauses if end > now]
        budget = Case(o, self._options.policy).stop_budget
        return moments if budget is None else [*moments, budget]

    def _sleep(self, moments: list[float]) -> None:
        pause = max(0.0, min(moments) - self._clock())
        events = self._in.events
        if events is None:
            self._wake.wait(pause)
            return
        if events.repair():
            return  # what the directory holds now may have come while nobody watched it
        end = self._clock() + pause
        while events.fileno() in self._wake.wait(pause, (events.fileno(),)):
            began = self._clock()
            ours = events.drain()
            cost = CHATTY * self._looker.files_cost if ours else NEIGHBOUR_PAUSE
            self._wake.wait(min(cost, self._options.poll_interval))
            pause = end - self._clock()
            woken = self._clock() < began + NEIGHBOUR_PAUSE
            if ours or woken or pause <= 0:
                return


def _shown(look: PodLook) -> bool:
    if isinstance(look, PodRefused | PodNeverSeen):
        return True
    return isinstance(look, PodSeen) and look.current
