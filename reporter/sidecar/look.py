"""One look at everything: the Pod first, then the file, folded into what is remembered.

The order makes "the adapter has ended and left no file" a true statement.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from reporter.sidecar.interfaces import Inputs, Sink, Stop, Telemetry
from reporter.verdict.case import LEAST_BUDGET, POLL_STEP, Case, Observation, Policy
from reporter.verdict.condition import Attempt, Standing
from reporter.verdict.facts import PodLook, Terminated, pod_of
from reporter.verdict.memory import Memory, attributed, recall, remember
from reporter.verdict.payloads import FileAbsent, Progress, ResultLook, Searched

REQUEST_TIMEOUT = 5.0
"""Seconds for a request: the API server answers in far less, and a pass is blocked meanwhile."""
LEAST_TIMEOUT = 0.2
"""Seconds for a request at the very end: with less none would have a chance."""
IDLE_TIMEOUT = 0.5
"""Seconds for a request after SIGTERM when all is written: nothing is lost by an early end."""
FILE_STEP = 1.0  # between two questions about the Pod because a file changed
CALM_STEP = 0.5  # a watch that seems healthy may be half open; an API that is away may come back


class Looker:
    """Makes observations; `seen` is the newest. Times are readings of `clock`, in seconds.

    `began` is when the process was started, if that was earlier.
    """

    def __init__(
        self,
        inputs: Inputs,
        sink: Sink,
        stop: Stop,
        telemetry: Telemetry,
        *,
        policy: Policy,
        pod_name: str,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        began: float | None = None,
    ) -> None:
        self._in, self._sink, self._stop, self._telemetry = inputs, sink, stop, telemetry
        self._policy, self._pod_name = policy, pod_name
        self._clock, self._wall = clock, wall
        since = clock() if began is None else began
        self._memory = Memory(
            waiting_since=since,
            waiting_since_at=wall() - (clock() - since),
            first_look=inputs.first_look,
        )
        self._file: ResultLook | None = None
        self._progress: Progress | None = None
        self._asked_at = float("-inf")
        self.idle = False  # nothing is left to write: SIGTERM should end us soon
        self.files_cost = 0.0  # seconds the last look at the files took
        self.seen: Observation | None = None

    def observe(self, *, fresh: bool = False) -> Observation:
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
            self._sink.expect(known.job_uid)
        standing = self._sink.standing
        file = attributed(file, pod, self._memory)
        self.seen = Observation(
            now=now,
            pod=pod,
            file=file,
            memory=self._memory,
            job=standing.job if standing else None,
            progress=self._progress,
            stopping_since=stopping,
            searched=self._look_around(pod, file),
        )
        self._telemetry.observed(self.seen)
        return self.seen

    def attempt(self) -> Attempt:
        """Return whose observations these are."""
        pod = self._memory.last_pod
        return Attempt(
            pod=self._pod_name,
            pod_uid=pod.uid if pod else "",
            created_at=pod.created_at if pod else None,
            waiting_since_at=self._memory.waiting_since_at,
            first_started_at=self._memory.first_started_at,
            restarts=pod.adapter.restarts if pod and pod.adapter else 0,
            index=pod.index if pod else None,
        )

    def recall(self, standing: Standing) -> None:
        """Put back what an earlier start of this container has written down on the Job."""
        note = standing.note
        if note is not None and note.attempt.same(self.attempt()):
            theirs = note.attempt
            self._memory = recall(
                self._memory,
                self._clock(),
                self._wall(),
                theirs.first_started_at,
                theirs.waiting_since_at,
            )

    def left(self, keep: float = 0.0) -> float | None:
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

    def ends_within(self, seconds: float) -> bool:
        """Return whether the kubelet may end this process so soon."""
        case = self._stopping()
        return case is not None and self._clock() >= (case.stop_deadline or 0.0) - seconds

    def write_end(self) -> float:
        """Return until when a write that is under way at SIGTERM may go on; -inf before it.

        The rest is enough for another one.
        """
        case = self._stopping()
        deadline = case.stop_deadline if case else None
        return float("-inf") if deadline is None else deadline - LEAST_BUDGET

    def _stopping(self) -> Case | None:
        stopped = self._stop.requested_at
        if stopped is None or self.seen is None:
            return None
        return Case(replace(self.seen, stopping_since=stopped), self._policy)

    def timeout(self) -> float:
        """Return how long a request may take: after SIGTERM there has to be time for another."""
        left = self.left()
        if left is None:
            return REQUEST_TIMEOUT
        longest = IDLE_TIMEOUT if self.idle else REQUEST_TIMEOUT
        return min(longest, max(LEAST_TIMEOUT, left / 2))

    @property
    def _watched(self) -> bool:
        return self._in.pod.next_look() == float("inf")

    def _look_at_pod(self, *, fresh: bool) -> PodLook:
        return self._in.pod.look(fresh=fresh, timeout=self.timeout())

    def _look_at_files(self) -> ResultLook:
        before = self._clock()
        file, self._progress = self._in.result.look(), self._in.progress.look()
        self.files_cost = self._clock() - before
        return file

    def _look_around(self, pod: PodLook, file: ResultLook) -> Searched | None:
        """After a good end without a result: what the adapter has left in its place."""
        shown = pod_of(pod)
        state = shown.adapter_state if shown else None
        if self.idle or not isinstance(state, Terminated) or not isinstance(file, FileAbsent):
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
