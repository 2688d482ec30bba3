"""Look, decide, act: the one loop of the product.

Each pass looks at the Pod and then at the file, asks for the verdict on the latest facts, and has
it written if it differs from what stands. A missed event cannot matter: wake-ups only make a pass
come early. The loop knows neither Kubernetes nor files; it is used by the sidecar and by
`status-ctl try`.
"""

import random
import time
from collections.abc import Callable

from reporter.sidecar.interfaces import Inputs, Options, Sink, Stop, Telemetry, Wake
from reporter.sidecar.look import Looker
from reporter.sidecar.publish import LoopOutcome, Publisher
from reporter.verdict.case import POLL_STEP, Case, Observation
from reporter.verdict.condition import Statement
from reporter.verdict.decide import Settled, Verdict, nothing_more, stays
from reporter.verdict.facts import Form, Terminated, pod_of
from reporter.verdict.interruption import interruption

WRITE_BUDGET = 60.0  # the classic form tries so long, and never less than the wait time plus this
LAST_LOOK = 3 * POLL_STEP
"""Seconds after SIGTERM for what contradicts a verdict already given: in the classic form the
adapter may run for long, and of a Pod that is being deleted no end is shown."""


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
        began: float | None = None,
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
            began=began,
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

    @property
    def write_end(self) -> float:
        """Until when a write that is under way at SIGTERM may go on; -inf before it."""
        return self._looker.write_end()

    def run(self) -> LoopOutcome:
        """Look, decide and act until there is nothing left to do."""
        while (outcome := self.step()) is None:
            self._sleep(self._next_pass())
        return outcome

    def step(self) -> LoopOutcome | None:
        """Make one pass; return an outcome when it was the last."""
        o = self._looker.observe()
        if outcome := self._publisher.judge(o):
            return outcome
        wanted = self._publisher.wants(o)
        if wanted:
            self._publisher.hand_over(o)
        final = isinstance(self._publisher.verdict, Settled)
        tried = wanted and self._publisher.pace.due(o, final=final)
        if tried and (outcome := self._publisher.publish()):
            return outcome
        outcome = self._ends()
        if outcome is LoopOutcome.GAVE_UP and not tried:
            # A back-off may reach beyond the end, and the end may be known only when it is over.
            return self._publisher.publish() or self._ends()
        return outcome

    def idle(self, done: Callable[[Observation], bool]) -> None:
        """Go on looking until `done` or SIGTERM; write only what contradicts a verdict given."""
        self._looker.idle = True
        while True:
            o = self._looker.observe()
            owing = self._publisher.note_contradiction(o)
            if done(o) or (self._deadline_over(o) if owing else self._last_look_over(o)):
                return
            self._sleep(self._next_pass(owing=owing))

    def _ends(self) -> LoopOutcome | None:
        """Return whether time, or the lack of it, ends our work."""
        o = self.last
        if o is None:
            return None
        now, wanted = self._clock(), self._publisher.wants(o)
        case = Case(o, self._options.policy)
        if case.stop_deadline is not None and case.give_up_at is not None:
            if now >= (case.give_up_at if wanted else case.stop_deadline):
                return LoopOutcome.GAVE_UP if wanted else LoopOutcome.STOPPED
            return LoopOutcome.STOPPED if not wanted and nothing_more(o, case.policy) else None
        if not wanted or case.form is Form.NATIVE or stays(o, case.policy):
            return None
        last = max(self._publisher.wanted_since, case.wait_end) + WRITE_BUDGET
        return LoopOutcome.GAVE_UP if now >= last else None

    def _deadline_over(self, o: Observation) -> bool:
        deadline = Case(o, self._options.policy).stop_deadline
        return deadline is not None and self._clock() >= deadline

    def _last_look_over(self, o: Observation) -> bool:
        if o.stopping_since is None:
            return False
        pod, case = pod_of(o.pod), Case(o, self._options.policy)
        last = o.stopping_since + LAST_LOOK
        if case.form is Form.NATIVE and interruption(case) is None and case.look_until:
            last = case.look_until  # the adapter has ended, and a busy node is late to say how
        ended = pod is None or isinstance(pod.adapter_state, Terminated)
        return ended or self._clock() >= last

    def _next_pass(self, *, owing: bool = False) -> float:
        """Return when the next pass is due, if nothing wakes us before: the one place that says.

        While `idle`, only for the sake of looking; `owing` adds the next try to write.
        """
        o, publisher = self.last, self._publisher
        moments = [self._clock() + self._options.poll_interval, self._in.pod.next_look()]
        if o is None:
            return min(moments)
        if self._looker.idle:
            if o.stopping_since is not None:
                moments.append(o.now + POLL_STEP)
            return min([*moments, publisher.pace.next_try] if owing else moments)
        moments += publisher.moments(o)
        if not isinstance(publisher.verdict, Settled):
            moments.append(publisher.verdict.next_look)
        case = Case(o, self._options.policy)
        ends = [end for end in (case.stop_deadline, case.give_up_at) if end is not None]
        return min([*moments, *(end for end in ends if end > self._clock())])

    def _sleep(self, until: float) -> None:
        pause = max(0.0, until - self._clock())
        if self._in.events is None:
            self._wake.wait(pause)
        else:
            self._in.events.sleep(self._wake, pause, cost=self._looker.files_cost)
