"""Rows E, D and N: why the platform ends the work, whatever the adapter does.

Never a False from a guess.
"""

from reporter.core import rows
from reporter.core.case import Case, Policy
from reporter.core.facts import Job, Pod, PodGone, Terminated
from reporter.core.memory import EndedRun
from reporter.core.payloads import FileValid, ResultPayload
from reporter.core.rows import Report
from reporter.core.trouble import not_started


def interruption(case: Case) -> Report | None:
    """Return E, D or N if the Pod is taken away or a deadline has passed; in this order."""
    pod, job = case.pod, case.o.job
    if pod is None:
        return None
    if pod.disruption:
        return rows.evicted(pod.disruption.reason, pod.disruption.message)
    if report := _deadline(pod, job):
        return report
    gone = isinstance(case.o.pod, PodGone)
    # A failed init container fails the Pod too: that is the adapter's trouble with starting.
    blocked = pod.blocker is not None and pod.blocker.for_good
    failing = pod.failing_at is not None and not isinstance(case.state, Terminated) and not blocked
    if not (pod.deleting or gone or failing):
        return None
    last = case.o.memory.last_run
    if job and job.failure == "BackoffLimitExceeded" and last:
        name = pod.adapter.name if pod.adapter else ""
        return judge(last, name, case.policy)
    if job and job.suspended:
        cause = "Job was suspended"
    elif pod.deleting:
        cause = "Pod was deleted"
    else:
        cause = "Pod is gone" if gone else "Pod was stopped by the kubelet"
    return rows.interrupted(cause, case.state)


def judge(ended: EndedRun, name: str, policy: Policy) -> Report:
    """Judge a run that used up the back-off limit by itself: the one after it is thrown away.

    `name` is the adapter's.
    """
    run = ended.run
    if isinstance(ended.file, FileValid) and not (
        policy.at_exit and contradicts(run, ended.file.result)
    ):
        return rows.result(ended.file.result)
    if run.out_of_memory:
        return rows.out_of_memory()
    if run.lost:
        return rows.interrupted("Adapter container was lost", run)
    if report := rows.invalid(ended.file):
        return report
    if trouble := not_started(name, run):
        return rows.trouble(trouble.row, trouble.text)
    return rows.exited(run, result_required=policy.result_required)


def contradicts(run: Terminated, result: ResultPayload) -> bool:
    """Say whether a run that reported success ended badly. A lost one tells nothing."""
    badly = run.out_of_memory or (run.exit_code != 0 and not run.lost)
    return result.success and badly


def ended_by_itself(pod: Pod, ended: Terminated) -> bool:
    """Say whether the adapter had ended before anybody asked for its end.

    The API's times are whole seconds, so within one second nobody can tell and the answer is no.
    A node's shutdown shows no time at all, only a reason.
    """
    asked = [at for at in (pod.deletion_requested_at, pod.failing_at) if at is not None]
    if not asked:
        return pod.disruption is None and not pod.reason
    return ended.finished_at is not None and ended.finished_at < min(asked)


def _deadline(pod: Pod, job: Job | None) -> Report | None:
    """Return D, by arithmetic on the API's own times.

    The Job controller deletes the Pods before it says why, the kubelet names a Pod's deadline only
    after every container has ended.
    """
    if pod.deadline is not None and (
        pod.reason == "DeadlineExceeded" or _passed(pod.started_at, pod.deadline, pod.failing_at)
    ):
        return rows.deadline("Pod", pod.deadline)
    if job is None or job.deadline is None:
        return None
    passed = _passed(job.started_at, job.deadline, pod.deletion_requested_at)
    if passed or job.failure == "DeadlineExceeded":
        return rows.deadline("Job", job.deadline)
    return None


def _passed(started: float | None, deadline: float, seen: float | None) -> bool:
    return started is not None and seen is not None and started + deadline <= seen
