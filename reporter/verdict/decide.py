"""The verdict: one pure function from what is known to what the Job's condition should say.

`decide` asks the situations below in this order and takes the first that applies; within a
situation the rows are asked in the order in which they stand. The letters are those of `rows.Row`.

1. the result is there: R; with RESULT_TRUST=at-exit not before the adapter's end
2. the adapter has ended for good: what a deadline would hide, O, E, D, N, I, W3, X or S
3. the Pod is taken away, or a deadline has passed: E, D, N, or what these would hide; the reporter
   alone is being stopped: R, N
4. the wait time is over: I, W1-W3, M, T
5. the adapter cannot start, and waiting does not help: W1-W3
6. work goes on: C, M, A
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reporter.verdict import rows
from reporter.verdict.case import CALM_POLL_STEP, POLL_STEP, READ_STEP, Case, Observation, Policy
from reporter.verdict.facts import (
    Disruption,
    FileValid,
    Form,
    Job,
    Pod,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodUnknown,
    ResultPayload,
    Running,
    Terminated,
    Waiting,
    pod_of,
)
from reporter.verdict.history import EndedRun
from reporter.verdict.not_starting import not_started, trouble_of
from reporter.verdict.rows import Report, Row

START_PATIENCE = 60.0  # seconds in one row before trouble with starting is reported

_REFUTED_BY_A_RESULT = frozenset({Row.INVALID_RESULT, Row.NO_RESULT, Row.SUCCEEDED, Row.TIMEOUT})
"""Rows that say that there is no valid result."""


@dataclass(frozen=True, slots=True)
class Pending:
    """There is no verdict yet; time alone can change that at `next_look` (monotonic)."""

    next_look: float


@dataclass(frozen=True, slots=True)
class Provisional:
    """True for now; this attempt may replace it."""

    report: Report
    next_look: float


@dataclass(frozen=True, slots=True)
class Settled:
    """Final for this attempt."""

    report: Report


Verdict = Pending | Provisional | Settled


def decide(o: Observation, policy: Policy) -> Verdict:
    """Return the verdict for this observation. Never raises, reads no clock, remembers nothing."""
    case = Case(o, policy)
    verdict = (
        _result(case)
        or _ended_for_good(case)
        or _taken_away(case)
        or _waited_enough(case)
        or _cannot_start(case)
        or _goes_on(case)
    )
    if case.read_error_may_pass and not isinstance(verdict, Pending):
        if verdict.report.row in _REFUTED_BY_A_RESULT:
            return Pending(_next_look(case))
        verdict = _provisional(case, verdict.report)
    if isinstance(verdict, Pending) or case.pod is None or o.job is None:
        return verdict
    report = rows.of_index(verdict.report, case.pod.index, completions=o.job.completions)
    return replace(verdict, report=report)


def nothing_more(o: Observation, policy: Policy) -> bool:
    """Return whether a stopped reporter with a provisional verdict has nothing left to wait for."""
    case = Case(o, policy)
    if o.now < case.end_shown_by or case.read_error_may_pass:
        return False
    return why_taken_away(case) is None


def stays(o: Observation, policy: Policy) -> bool:
    """Return whether the reporter must not end yet, because it would be restarted.

    That restart would count against the Job's back-off limit. It happens as long as the adapter can
    run again, or that is not known.
    """
    if isinstance(o.pod, PodGone):
        return False
    case = Case(o, policy)
    pod = case.pod
    if pod is not None and (pod.ended_for_good or not pod.restart.can_restart):
        return False
    return not (case.wait_over and (case.unobservable or isinstance(o.pod, PodUnknown)))


def restartable(o: Observation) -> bool:
    """Return whether the kubelet may restart the adapter or us, or that is not known."""
    pod = pod_of(o.pod) or o.history.last_pod
    return pod is None or pod.restart.can_restart or pod.own_restart.can_restart


def _result(case: Case) -> Verdict | None:
    received = _received(case)
    if received is None:
        return None
    report = rows.result(received)
    if case.policy.at_exit:
        return _at_exit(case, report)
    gone = isinstance(case.o.pod, PodGone)
    final = case.pod is not None and (gone or not case.pod.may_run_again)
    # Where the adapter's end can never be seen, the wait time stands for it. In the native form our
    # SIGTERM does, too: it comes when the adapter is dead. If the API has not answered at all, this
    # is for an aggregator: nothing is written on the Job by an attempt that cannot say whose it is.
    dead = case.pod is None and case.form is Form.NATIVE and case.stopping
    if final or dead or (case.unobservable and case.wait_over):
        return Settled(report)
    return _provisional(case, report)


def _received(case: Case) -> ResultPayload | None:
    """Return the valid result that is there.

    With RESULT_TRUST=at-exit, a result that the end of its run contradicts does not count. The end
    of a run that was stopped from outside contradicts nothing.
    """
    file = case.o.file
    if not isinstance(file, FileValid):
        return None
    ended = own_end(case) if case.policy.at_exit else None
    return None if ended and contradicts(ended.run, file.result) else file.result


def _at_exit(case: Case, report: Report) -> Verdict | None:
    """Return R once the adapter has ended, or if its end cannot be observed."""
    ended = isinstance(case.o.pod, PodGone) or (case.pod is not None and case.pod.ended_for_good)
    if not ended and case.may_be_shown:
        return None
    if ended or (case.wait_over and (case.started or case.unobservable)):
        return Settled(report)
    pod_hidden = case.refused or isinstance(case.o.pod, PodNeverSeen)
    return _provisional(case, report) if pod_hidden or case.wait_over else None


def _ended_for_good(case: Case) -> Verdict | None:
    pod = case.pod
    if pod is None or pod.adapter is None or not pod.ended_for_good:
        return None
    state, ended = pod.adapter.state, case.ended_run
    if report := hidden_cause(case):
        # Another run may have begun that the API does not show yet.
        return None if ended and not pod.finished else Settled(report)
    if ended and ended.out_of_memory:
        return Settled(rows.out_of_memory())
    interrupted = None if ended and ended_by_itself(pod, ended) else why_taken_away(case)
    if interrupted:
        return Settled(interrupted)
    if ended and ended.lost:
        return Settled(rows.interrupted("Adapter container was lost", state))
    if ended and not ended.never_started and (report := rows.invalid(case.o.file)):
        return Settled(report)
    if trouble := trouble_of(pod):
        return Settled(rows.trouble(trouble.row, trouble.text))
    if ended:
        required, searched = case.policy.result_required, case.o.searched
        return Settled(rows.exited(ended, result_required=required, searched=searched))
    return Settled(rows.interrupted(f"Pod ended ({pod.phase})", state))


def _taken_away(case: Case) -> Verdict | None:
    report = why_taken_away(case)
    if report is None:
        return _stopped_alone(case)
    # In the native form our SIGTERM comes when the adapter is dead and its file final; in the
    # classic form both get it at once, and an adapter that still writes its result is heard.
    heard = case.form is Form.NATIVE or case.o.now >= case.result_counts_until
    if case.stopping and heard:
        received = _received(case)
        return Settled(rows.result(received) if received else report)
    return _provisional(case, report)


def _stopped_alone(case: Case) -> Verdict | None:
    if not case.stopping:
        return None
    if case.o.now < case.cause_shown_by:
        return Pending(_next_look(case))
    if received := _received(case):
        return _provisional(case, rows.result(received))
    return _provisional(case, rows.interrupted("Reporter was stopped", case.state))


def _waited_enough(case: Case) -> Verdict | None:
    if not case.wait_over or case.may_be_shown:
        return None
    report = rows.invalid(case.o.file)
    if report is None and (trouble := _known_trouble(case)):
        return _provisional(case, trouble)
    report = report or _misfit(case)
    refused = isinstance(case.o.pod, PodRefused)
    report = report or rows.timeout(case.policy.wait, refused=refused)
    # Before its first start the adapter has not had its time yet.
    known = case.started or case.unobservable
    return Settled(report) if known else _provisional(case, report)


def _cannot_start(case: Case) -> Verdict | None:
    trouble = case.o.history.trouble
    if trouble is None or (report := _known_trouble(case)) is None:
        return None
    long_enough = case.o.now >= case.o.history.trouble_since + START_PATIENCE
    return _provisional(case, report) if trouble.at_once or long_enough else None


def _goes_on(case: Case) -> Verdict:
    adapter = case.pod.adapter if case.pod else None
    report = rows.crash_looping(adapter) if adapter else None
    report = report or _misfit(case)
    report = report or rows.running(case.state, case.o.progress, _received(case))
    return _provisional(case, report)


def _known_trouble(case: Case) -> Report | None:
    """Return the row of the remembered trouble, whose cause a back-off may hide by now."""
    trouble = case.o.history.trouble
    return rows.trouble(trouble.row, trouble.text) if trouble else None


def _misfit(case: Case) -> Report | None:
    if isinstance(case.o.pod, PodNeverSeen):
        return rows.misfit("the namespace has no Pod with the name in POD_NAME")
    if case.pod and case.pod.misfit:
        return rows.misfit(case.pod.misfit)
    return None


def _provisional(case: Case, report: Report) -> Provisional:
    return Provisional(report, _next_look(case))


def _next_look(case: Case) -> float:
    """Return when time alone can change the verdict."""
    return min((moment for moment in _moments(case) if moment > case.o.now), default=float("inf"))


def _moments(case: Case) -> Iterator[float]:
    yield case.wait_end
    yield case.refusal_counts_since
    if case.read_error_may_pass:
        yield from (case.read_error_passes_by, case.o.now + READ_STEP)
    if case.o.history.trouble is not None:
        yield case.o.history.trouble_since + START_PATIENCE
    yield from (case.cause_shown_by, case.end_shown_by, case.result_counts_until)
    if case.stopping and case.o.now < case.end_shown_by and why_taken_away(case) is None:
        yield case.o.now + (POLL_STEP if case.o.now < case.cause_shown_by else CALM_POLL_STEP)


# Why the platform ends the work, whatever the adapter does: rows E, D and N. A guess never becomes
# a False. A deadline does not hide what kept the adapter from a result, nor the back-off limit of a
# Job how the last run ended: so there are W1-W3, R, O, I, X and S as well.


@dataclass(frozen=True, slots=True)
class Deadline:
    """An `activeDeadlineSeconds` that passed; `owner` is `Job` or `Pod`."""

    owner: str
    seconds: float


def why_taken_away(case: Case) -> Report | None:
    """Return E, D or N if the Pod is taken away or a deadline has passed, or what they would hide.

    In this order; nothing while nobody ends the work.
    """
    pod, job = case.pod, case.o.job
    if pod is None:
        return None
    if reason := _disruption(case):
        return rows.evicted(reason.reason, reason.message)
    if passed := _deadline(pod, job):
        return _hidden_by(case, passed) or _deadline_alone(case, passed)
    gone = isinstance(case.o.pod, PodGone)
    stopped = pod.stopped_by_kubelet and not isinstance(case.state, Terminated)
    if not (pod.deleting or gone or stopped):
        return None
    last = case.o.history.last_run
    if job and job.failure == "BackoffLimitExceeded" and last:
        return judge(case, last)
    if job and job.suspended:
        cause = "Job was suspended"
    elif pod.deleting:
        cause = "Pod was deleted"
    else:
        cause = "Pod is gone" if gone else "Pod was stopped by the kubelet"
    return rows.interrupted(cause, case.state)


def hidden_cause(case: Case) -> Report | None:
    """Return what a deadline would hide: why the adapter never started, or how its runs ended."""
    pod = case.pod
    if pod is None or _disruption(case):
        return None
    passed = _deadline(pod, case.o.job)
    return _hidden_by(case, passed) if passed else None


def judge(case: Case, ended: EndedRun) -> Report:
    """Return the verdict on a run that ended by itself; a run that began later is ignored."""
    run = ended.run
    if isinstance(ended.file, FileValid) and not (
        case.policy.at_exit and contradicts(run, ended.file.result)
    ):
        return rows.result(ended.file.result)
    if run.out_of_memory:
        return rows.out_of_memory()
    if run.lost:
        return rows.interrupted("Adapter container was lost", run)
    if report := rows.invalid(ended.file):
        return report
    name = case.pod.adapter.name if case.pod and case.pod.adapter else ""
    if trouble := not_started(name, run):
        return rows.trouble(trouble.row, trouble.text)
    return rows.exited(run, result_required=case.policy.result_required)


def contradicts(run: Terminated, result: ResultPayload) -> bool:
    """Return whether a run that reported success ended badly. A lost one says nothing."""
    badly = run.out_of_memory or (run.exit_code != 0 and not run.lost)
    return result.success and badly


def ended_by_itself(pod: Pod, ended: Terminated) -> bool:
    """Return whether the adapter had ended before anything asked it to.

    The API's times are whole seconds: within the same second this cannot be told, and the answer is
    no. The shutdown of a node shows a reason but no time.
    """
    asked = [at for at in (pod.deletion_requested_at, pod.failing_at) if at is not None]
    if not asked:
        return not pod.disrupted and not pod.reason
    return ended.finished_at is not None and ended.finished_at < min(asked)


def own_end(case: Case) -> EndedRun | None:
    """Return the adapter's newest run if it ended by itself and no other one has begun.

    As remembered: at a deletion the API's `lastState` vanishes, and what a waiting container then
    shows may be an end that the kubelet has invented.
    """
    pod, last = case.pod, case.o.history.last_run
    adapter = pod.adapter if pod else None
    if pod is None or adapter is None or isinstance(adapter.state, Running):
        return None
    if last is not None and last.restarts == adapter.restarts:
        return last
    if isinstance(adapter.state, Terminated) and ended_by_itself(pod, adapter.state):
        return EndedRun(adapter.state, adapter.restarts, case.o.file)
    return None


def _disruption(case: Case) -> Disruption | None:
    """Return why the platform has removed the Pod; an intention to do so is not enough."""
    pod = case.pod
    taken = pod is not None and (pod.disrupted or isinstance(case.o.pod, PodGone))
    return pod.disruption if pod and taken else None


def _deadline_alone(case: Case, passed: Deadline) -> Report:
    """Return D if the adapter ran, or if nothing is known about it."""
    adapter = case.pod.adapter if case.pod else None
    last = case.o.history.last_run
    return rows.deadline(
        passed.owner,
        passed.seconds,
        restarts=adapter.restarts if adapter else 0,
        last=last.run if last else None,
    )


def _hidden_by(case: Case, passed: Deadline) -> Report | None:
    trouble, state = case.o.history.trouble, case.state
    over = isinstance(state, Terminated) and state.never_started
    if trouble is not None and not case.started and not over:
        report = rows.trouble(trouble.row, trouble.text)
    elif run := _between_runs(case):
        report = judge(case, run)
    else:
        return None
    return rows.after_deadline(report, passed.owner, passed.seconds)


def _between_runs(case: Case) -> EndedRun | None:
    """Return the failed run after which the kubelet was waiting to start the adapter again."""
    found = own_end(case)
    if found is None or case.pod is None:
        return None
    return found if case.pod.restart.restarts_after(found.run.exit_code) else None


def _deadline(pod: Pod, job: Job | None) -> Deadline | None:
    """Return the deadline that passed, calculated from the API's own times.

    The Job controller deletes the Pods before it says why, and the kubelet reports a Pod's deadline
    only after every container has ended.
    """
    if pod.deadline is not None and _pod_deadline_passed(pod, pod.deadline):
        return Deadline("Pod", pod.deadline)
    if job is None or job.deadline is None:
        return None
    passed = _passed(job.started_at, job.deadline, pod.deletion_requested_at)
    if passed or job.failure == "DeadlineExceeded":
        return Deadline("Job", job.deadline)
    return None


def _pod_deadline_passed(pod: Pod, deadline: float) -> bool:
    if pod.reason == "DeadlineExceeded" or _passed(pod.started_at, deadline, pod.failing_at):
        return True
    if not pod.stopped_by_kubelet or pod.deleting or pod.disruption is not None:
        return False
    # The condition's transition tells when the containers stopped being ready, which without a
    # running adapter was long before: at the Pod's start, or at the end of the run before.
    match pod.adapter_state:
        case Waiting():
            return True
        case Running(started_at):
            return (pod.failing_at or 0.0) <= (started_at or 0.0)
        case Terminated(exit_code):
            return pod.restart.restarts_after(exit_code)
        case _:
            return False


def _passed(started: float | None, deadline: float, seen: float | None) -> bool:
    return started is not None and seen is not None and started + deadline <= seen
