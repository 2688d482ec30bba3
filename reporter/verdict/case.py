"""What a verdict is made from: the observation, the policy, and the times that follow from both."""

from dataclasses import dataclass, field

from reporter.common.defaults import WAIT_SECONDS
from reporter.verdict.facts import (
    FileReadFailed,
    Form,
    Job,
    Pod,
    PodLook,
    PodRefused,
    PodSeen,
    PodUnknown,
    Progress,
    ResultLook,
    Searched,
    State,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.verdict.history import History

POLL_STEP = 0.05  # between two looks after SIGTERM
CALM_POLL_STEP = 1.0  # the same once it has been reported that nobody knows why it came
CAUSE_AFTER_STOP = 2.0  # a natural end shows in the API within 15 ms of SIGTERM on a calm node
CAUSE_AFTER_RETURN = 10.0  # the kubelet reports late after an outage
END_AFTER_STOP = 30.0  # it repeats a report that failed on a tick of 10 s, before it kills
GRACE_MARGIN = 2.0  # kept free before the kubelet kills
LEAST_GRACE = 2.0  # the kubelet leaves so long even when the grace period is used up
LEAST_BUDGET = 1.5  # of that
USUAL_GRACE = 30.0  # of a Pod that nobody has seen
LONGEST_GRACE = 600.0  # it may be this
READ_PATIENCE = 10.0  # a file server restarts, descriptors run out
READ_STEP = 0.5  # between two tries to read meanwhile
REFUSAL_PATIENCE = 30.0  # a binding is replaced, an authorizer restarts
LAST_WRITE = 1.0  # time kept for writing what was heard last
WRITE_BUDGET = 60.0  # the classic form tries so long, and never less than the wait time plus this
CONTROLLER_PAUSE = 1.5  # the Job controller's own write, and its second try after 1 s
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user set, as far as a verdict depends on it; `wait` in seconds."""

    wait: float = WAIT_SECONDS
    result_required: bool = True
    at_exit: bool = False  # a result becomes the verdict when the adapter has ended
    form: Form | None = None  # nothing: as the Pod shows it


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything known at one moment.

    `file` is what the present run of the adapter can have written, `job` what the last try to write
    has read: nothing before the first.
    """

    now: float
    pod: PodLook
    file: ResultLook
    history: History
    job: Job | None = None
    progress: Progress | None = None
    stopping_since: float | None = None  # our own SIGTERM
    searched: Searched | None = None  # what lies there after an end without a result


@dataclass(frozen=True, slots=True)
class Case:
    """An observation together with what several rules derive from it."""

    o: Observation
    policy: Policy
    pod: Pod | None = field(init=False)  # as last shown, also where the API refuses it by now
    form: Form = field(init=False)

    def __post_init__(self) -> None:
        pod = pod_of(self.o.pod) or self.o.history.last_pod
        form = self.policy.form or (pod.form if pod else None) or Form.CLASSIC
        object.__setattr__(self, "pod", pod)
        object.__setattr__(self, "form", form)

    @property
    def state(self) -> State | None:
        """The adapter's state, where one is known."""
        return self.pod.adapter_state if self.pod else None

    @property
    def ended_run(self) -> Terminated | None:
        """The adapter's newest run, if the API shows its end."""
        adapter = self.pod.adapter if self.pod else None
        run = adapter and (adapter.last if isinstance(adapter.state, Waiting) else adapter.state)
        return run if isinstance(run, Terminated) else None

    @property
    def started(self) -> bool:
        """Whether the adapter has ever started."""
        return self.o.history.first_started is not None

    @property
    def unobservable(self) -> bool:
        """Whether the end of the adapter can never be observed.

        That is so when the Pod is refused or absent, or the names do not fit. An API that does not
        answer does not count, nor one that has refused for a moment: it may come back.
        """
        if isinstance(self.o.pod, PodUnknown | PodRefused):
            return self.refused
        return self.pod is None or self.pod.adapter is None

    @property
    def refusal_counts_since(self) -> float:
        """When the file alone decides, because the API has refused the Pod for so long.

        A reporter that is being stopped cannot wait for a better answer.
        """
        since = self.o.history.refused_since
        if since is None:
            return NEVER
        return since if self.stopping else since + REFUSAL_PATIENCE

    @property
    def refused(self) -> bool:
        """Whether the API refuses the Pod for good, as far as can be waited for."""
        return self.o.now >= self.refusal_counts_since

    @property
    def may_be_shown(self) -> bool:
        """Whether the API refuses the Pod, but not for long yet."""
        return isinstance(self.o.pod, PodRefused) and not self.refused

    @property
    def read_error_passes_by(self) -> float:
        """Until when errors of reading the file may pass, and with that reveal a result."""
        since = self.o.history.read_failing_since
        if since is None or not isinstance(self.o.file, FileReadFailed):
            return float("-inf")
        return min(since + READ_PATIENCE, self.stop_deadline - LAST_WRITE)

    @property
    def read_error_may_pass(self) -> bool:
        """Whether an error of reading the file may still pass."""
        return self.o.now < self.read_error_passes_by

    @property
    def wait_end(self) -> float:
        """When the wait time is over, counted from the adapter's first start, or else from ours."""
        return self.o.history.waiting_from + self.policy.wait

    @property
    def wait_over(self) -> bool:
        """Whether the wait time is over."""
        return self.o.now >= self.wait_end

    @property
    def stopping(self) -> bool:
        """Whether the reporter's own SIGTERM has come."""
        return self.o.stopping_since is not None

    @property
    def stopped(self) -> float:
        """When that SIGTERM came; `NEVER` before it, and so is all that follows."""
        return NEVER if self.o.stopping_since is None else self.o.stopping_since

    # What follows SIGTERM, with the usual grace period of 30 s:
    #
    #      0 s  stopped
    #      2 s  cause_shown_by        the Pod has shown why, or N is written for the time being
    #     27 s  result_counts_until   the classic form has heard an adapter that is stopped with it
    #     28 s  end_shown_by          the native form has looked for what replaces N
    #     28 s  stop_deadline         nothing more begins; write_until, if the Pod was seen
    #     30 s  alive_until           the kubelet kills

    @property
    def alive_until(self) -> float:
        """When the kubelet kills the reporter, at the earliest."""
        grace = self.pod.grace if self.pod else USUAL_GRACE
        if self.pod and self.pod.deletion_grace is not None:
            grace = self.pod.deletion_grace
        # The kubelet gives every container the whole grace period from its SIGTERM, and a busy one
        # sends that seconds after the deletion. A sidecar's comes when the others have ended, with
        # what they left of the Pod's. While the API is away the deletion can be seen long after.
        began, taken_away = self.stopped, self.o.history.taken_away_since
        if self.form is Form.NATIVE and taken_away is not None:
            began = min(began, taken_away)
        return max(self.stopped + LEAST_GRACE, began + grace)

    @property
    def stop_deadline(self) -> float:
        """Until when the reporter can count on going on."""
        return max(self.stopped + LEAST_BUDGET, self.alive_until - GRACE_MARGIN)

    @property
    def write_until(self) -> float:
        """Until when it tries to write.

        Where the API has never shown the Pod, its grace period may be longer than usual. The
        kubelet then ends what goes on too long, and nothing is lost by that.
        """
        return self.stop_deadline if self.pod is not None else self.stopped + LONGEST_GRACE

    @property
    def cause_shown_by(self) -> float:
        """Until when a stopped reporter waits for the API to show why."""
        until, last = self.stopped + CAUSE_AFTER_STOP, self.stop_deadline - LAST_WRITE / 2
        if self.o.history.away:
            return last
        if self.o.history.returned is not None:
            until = max(until, self.o.history.returned + CAUSE_AFTER_RETURN)
        return min(until, last)

    @property
    def end_shown_by(self) -> float:
        """Until when a stopped reporter looks for what replaces N.

        The classic form may be stopped long before its adapter ends.
        """
        if self.form is Form.CLASSIC or self.unobservable:
            return self.cause_shown_by
        if self.o.history.away:
            return self.stop_deadline
        again = max(self.stopped, self.o.history.returned or 0.0)
        return min(again + END_AFTER_STOP, self.stop_deadline)

    @property
    def result_counts_until(self) -> float:
        """Until when the result counts of an adapter that is stopped with us."""
        return self.stop_deadline - LAST_WRITE

    @property
    def no_write_before(self) -> float:
        """Until when nothing is written, because a write could keep the Job from failing.

        Under OnFailure the Job controller adds up the restarts of unfinished Pods, deletes the Pod
        when they reach `backoffLimit`, and then writes why. If we write in between, its write is a
        conflict. When it tries again a second later, the Pod has ended and is no longer counted,
        and the controller creates a new one.
        """
        seen = self.o.history.taken_away_since
        pod = self.o.pod.pod if isinstance(self.o.pod, PodSeen) else None
        if seen is None or pod is None or not pod.restart.can_restart:
            return float("-inf")
        return min(seen + CONTROLLER_PAUSE, self.stop_deadline - LAST_WRITE)
