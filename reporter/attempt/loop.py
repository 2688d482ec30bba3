"""Look, decide, act: the one loop of the product.

Each pass looks at the Pod and then at the file, asks for the verdict on the latest facts, and has
it written if it differs from what stands. A missed event cannot matter: wake-ups only make a pass
come early. The loop knows neither Kubernetes nor files; it is used by the sidecar and by
`status-ctl try`.
"""

import random
import time
from collections.abc import Callable

from reporter.attempt.look import POLL_STEP, Looker
from reporter.attempt.publish import Outcome, Publisher
from reporter.attempt.seams import Inputs, Options, Sink, Stop, Telemetry, Wake
from reporter.core.case import Case, Observation
from reporter.core.facts import Form, Terminated, pod_of
from reporter.core.verdict import Settled, Verdict, nothing_more, stays
from reporter.sinks.statement import Statement

WRITE_BUDGET = 60.0  # the classic form tries so long, and never less than the wait time plus this
LAST_LOOK = 3 * POLL_STEP  # after SIGTERM, for what contradicts a verdict already given
BURST = 20  # events of files that are none of ours, before we look at them less often
NEIGHBOUR_PAUSE = 0.05
CHATTY = 4.0  # a writer that never rests gets at most a fifth of our time


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
        self._in, self._options, self._wake, self._clock = inputs, options, wake, clock
        self._looker = Looker(
            inputs,
            sink,
            stop,
            telemetry,
            policy=options.policy,
            pod_name=options.pod_name,
            clock=clock,
            wall=wall,
        )
        self._publisher = Publisher(
            self._looker, sink, options, telemetry, clock=clock, wall=wall, rng=rng
        )

    @property
    def last(self) -> Observation | None:
        """The newest observation."""
        return self._looker.seen

    @property
    def verdict(self) -> Verdict:
        """The newest verdict, written or not."""
        return self._publisher.verdict

    @property
    def statement(self) -> Statement | None:
        """What this process wrote last."""
        return self._publisher.statement

    def run(self) -> Outcome:
        """Look, decide and act until there is nothing left to do."""
        while (outcome := self.step()) is None:
            self._sleep(self._next_moments())
        return outcome

    def step(self) -> Outcome | None:
        """Make one pass; return an outcome when it was the last."""
        o = self._looker.observe()
        if outcome := self._publisher.judge(o):
            return outcome
        due = self._publisher.wants(o) and self._publisher.due(o)
        if due and (outcome := self._publisher.publish()):
            return outcome
        return self._ends()

    def idle(self, done: Callable[[Observation], bool]) -> None:
        """Go on looking until `done` or SIGTERM; write only what contradicts a verdict given."""
        self._looker.idle = True
        while True:
            o = self._looker.observe()
            owing = self._publisher.note_contradiction(o)
            if done(o) or (self._budget_over(o) if owing else self._last_look_over(o)):
                return
            stopping = o.stopping_since is not None
            pause = POLL_STEP if stopping else self._options.poll_interval
            moments = [o.now + pause, self._in.pod.next_look()]
            self._sleep([*moments, self._publisher.next_try] if owing else moments)

    def _ends(self) -> Outcome | None:
        """Say whether time, or the lack of it, ends our work."""
        o = self.last
        if o is None:
            return None
        now, wanted = self._clock(), self._publisher.wants(o)
        case = Case(o, self._options.policy)
        if case.stop_deadline is not None:
            if now >= case.stop_deadline:
                return Outcome.GAVE_UP if wanted else Outcome.STOPPED
            return Outcome.STOPPED if not wanted and nothing_more(o, case.policy) else None
        if not wanted or case.form is Form.NATIVE or stays(o, case.policy):
            return None
        last = max(self._publisher.wanted_since, case.wait_end) + WRITE_BUDGET
        return Outcome.GAVE_UP if now >= last else None

    def _budget_over(self, o: Observation) -> bool:
        budget = Case(o, self._options.policy).stop_deadline
        return budget is not None and self._clock() >= budget

    def _last_look_over(self, o: Observation) -> bool:
        if o.stopping_since is None:
            return False
        pod = pod_of(o.pod)
        ended = pod is None or isinstance(pod.adapter_state, Terminated)
        return ended or self._clock() >= o.stopping_since + LAST_LOOK

    def _next_moments(self) -> list[float]:
        """List when the next pass is due, whatever wakes us before."""
        o, verdict = self.last, self._publisher.verdict
        moments = [self._clock() + self._options.poll_interval, self._in.pod.next_look()]
        if o is None:
            return moments
        moments += self._publisher.moments(o)
        if not isinstance(verdict, Settled):
            moments.append(verdict.next_look)
        budget = Case(o, self._options.policy).stop_deadline
        return moments if budget is None else [*moments, budget]

    def _sleep(self, moments: list[float]) -> None:
        pause = max(0.0, min(moments) - self._clock())
        events = self._in.events
        if events is None:
            self._wake.wait(pause)
            return
        if events.repair():
            return  # what the directory holds now may have come while nobody watched it
        end, others = self._clock() + pause, 0
        while pause > 0 and self._wake.wait(pause, (events.fileno(),)):
            if events.drain():
                self._wake.wait(min(CHATTY * self._looker.files_cost, self._options.poll_interval))
                return
            # A few are the temporary file that is renamed next; many are a busy neighbour.
            others += 1
            if others > BURST and self._wake.wait(NEIGHBOUR_PAUSE) is None:
                return
            pause = end - self._clock()
