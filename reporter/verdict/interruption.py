"""Rows E, D and N: why the platform ends the work, whatever the adapter does.

A guess never becomes a False, and a deadline does not hide what kept the adapter from a result.
"""

from dataclasses import dataclass

from reporter.verdict import rows
from reporter.verdict.case import Case
from reporter.verdict.facts import Disruption, Job, Pod, PodGone, Running, Terminated, Waiting
from reporter.verdict.memory import EndedRun
from reporter.verdict.not_starting import not_started
from reporter.verdict.payloads import FileValid, ResultPayload
from reporter.verdict.rows import Report


@dataclass(frozen=True, slots=True)
class Deadline:
    """An `activeDeadlineSeconds` that passed; `owner` is `Job` or `Pod`."""

    owner: str
    seconds: float


def interruption(case: Case) -> Report | None:
    """Return E, D or N if the Pod is taken away or a deadline has passed; in this order."""
    pod, job = case.pod, case.o.job
    if pod is None:
        return None
    if reason := _disruption(case):
        return rows.evicted(reason.reason, reason.message)
    if passed := _deadline(pod, job):
        return _behind(case, passed) or _late(case, passed)
    gone = isinstance(case.o.pod, PodGone)
    given_up = pod.given_up and not isinstance(case.state, Terminated)
    if not (pod.deleting or gone or given_up):
        return None
    last = case.o.memory.last_run
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
    return _behind(case, passed) if passed else None


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
    pod, last = case.pod, case.o.memory.last_run
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


def _late(case: Case, passed: Deadline) -> Report:
    """Return D if the adapter ran, or if nothing is known about it."""
    adapter = case.pod.adapter if case.pod else None
    last = case.o.memory.last_run
    return rows.deadline(
        passed.owner,
        passed.seconds,
        restarts=adapter.restarts if adapter else 0,
        last=last.run if last else None,
    )


def _behind(case: Case, passed: Deadline) -> Report | None:
    trouble, state = case.o.memory.trouble, case.state
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
    if not pod.given_up or pod.deleting or pod.disruption is not None:
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
