"""The whole diagnosis of a Job: what is on it, what became of it, what is in its way."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from reporter.common.objects import items, moment, number, section, text
from reporter.common.text import go_duration
from reporter.jobs.check_pod import PodView, check_pod, kept_running
from reporter.jobs.finding import (
    Finding,
    Object,
    Weight,
    info,
    last_event,
    problem,
    true_condition,
    warning,
)
from reporter.jobs.job import ENDED, JobView, Outcome, WrittenVerdict, newest_pod
from reporter.jobs.setting import MARGIN, Setup, find_setup
from reporter.jobs.verdict_words import verdict_finding
from reporter.run.names import RUN_LABEL, key_of
from reporter.run.plan import GLOBAL
from reporter.verdict.pod import find_adapter

LAST: Final = 5
"""So many runs of a CronJob are told."""
_FAILURES: Final = {
    "BackoffLimitExceeded": "its Pods failed more often than backoffLimit allows",
    "DeadlineExceeded": "it ran longer than its activeDeadlineSeconds",
    "PodFailurePolicy": "a rule of its podFailurePolicy ended it",
    "FailedIndexes": "some of its indexes failed",
    "MaxFailedIndexesExceeded": "more indexes failed than maxFailedIndexes allows",
}
_OF_THE_CHECK: Final = frozenset({"R", "T", "O", "I", "X", "C", ""})
"""Rows of failures of the adapter itself; an older reporter writes none."""
_HIDDEN: Final = frozenset({"W1", "W2", "W3", "O", "I", "X"})
"""Rows that a deadline would have hidden."""
_TROUBLES: Final = {"W1": "image-trouble", "W2": "config-trouble", "W3": "start-trouble"}
_NO_CAUSE: Final = frozenset({"deadline", "stuck-terminating", "oom-killed", "link", "kept-alive"})
"""What keeps no reporter from writing."""


@dataclass(frozen=True)
class Look:
    """A Job and what was read beside it, at `now` (Unix seconds).

    `events` are of the Job and its newest Pod; `log` is the end of that Pod's reporter's; `unread`
    says what could not be read and why.
    """

    job: JobView
    pods: Sequence[Object]
    now: float
    events: Sequence[Object] = ()
    log: str = ""
    unread: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def pod(self) -> Object:
        """The newest Pod; an empty one where there is none."""
        return newest_pod(self.pods) or {}

    @cached_property
    def pod_name(self) -> str:
        """The newest Pod's."""
        return text(section(self.pod, "metadata"), "name")

    @cached_property
    def setup(self) -> Setup | None:
        """The reporter; something may put it into Pods that the template does not show."""
        return next(iter(self.job.setups), None) or find_setup(section(self.pod, "spec"))


def findings(look: Look) -> list[Finding]:
    """Return what happened and what to do, beginning with the verdicts on the Job. Never raises."""
    job, setup, verdicts = look.job, look.setup, look.job.verdicts
    of_pod = list(_of_pod(look)) if look.pods else []
    said: list[Finding] = []
    for verdict in verdicts:
        again = _said_again(verdict, look, of_pod)
        of_pod = [each for each in of_pod if each not in again]
        causes = (cause for each in again for cause in each.evidence)
        said += [verdict_finding(verdict, *causes), *_doubts(verdict, look)]
    run = list(_of_run(job))
    said += [*_repeats(job), *run]
    settings = list(_settings(job, setup)) if setup or not (verdicts or run) else []
    said += [*settings, *_of_job(job), *(of_pod if look.pods else _no_pod(look))]
    causes_known = [each for each in of_pod if each.weight is not Weight.INFO]
    explained = any(each.code not in _NO_CAUSE for each in causes_known) or any(
        each.code == "settings" for each in settings
    )
    if look.pods and not verdicts and not explained and setup and setup.writes:
        said.append(
            problem(
                "no-condition",
                f"The reporter has written nothing on the Job yet (Pod {look.pod_name}).",
                "If this lasts, see what it is waiting for: kubectl logs "
                f"{look.pod_name} -c {setup.name}",
            )
        )
    for what, why in look.unread.items():
        said.append(warning("unread", f"The {what} could not be read: {why}"))
    return said


def _of_pod(look: Look) -> Iterator[Finding]:
    name, verdicts = look.pod_name, look.job.verdicts
    view = PodView(
        look.pod,
        look.now,
        look.events,
        look.setup,
        look.log,
        # An older reporter says neither of which Pod its word is nor whether it is the last.
        judged=any(
            each.final is not False and not each.running and each.pod in {"", name}
            for each in verdicts
        ),
        hidden=any(each.final and each.pod == name and each.row in _HIDDEN for each in verdicts),
    )
    yield from check_pod(view)
    if look.setup is not None:
        yield from kept_running(view, look.setup)


def _said_again(verdict: WrittenVerdict, look: Look, of_pod: list[Finding]) -> list[Finding]:
    """Return the findings about a container that the verdict on its Pod says already."""
    adapter = text(section(verdict.evidence or {}, "adapter"), "container")
    return [
        each
        for each in of_pod
        if each.code == _TROUBLES.get(verdict.row)
        and verdict.pod == look.pod_name
        and (each.about == adapter or repr(each.about) in verdict.message)
    ]


def _doubts(verdict: WrittenVerdict, look: Look) -> Iterator[Finding]:
    """Yield when a verdict is not about the present."""
    phase = text(section(look.pod, "status"), "phase")
    over = not look.pods or phase in {"Succeeded", "Failed"} or look.job.ended
    if verdict.running and over and "pods" not in look.unread:
        yield problem(
            "reporter-gone",
            "It says that work is in progress, but nothing is running: the reporter was killed "
            "together with its Pod and could not write the outcome.",
            "This is all that is known; run the Job again if that is not enough. "
            "`status-ctl reap` makes the condition final.",
        )
    if verdict.pod and look.pod_name and verdict.pod != look.pod_name:
        yield info(
            "earlier-attempt",
            f"This verdict belongs to an earlier attempt (Pod {verdict.pod}); "
            f"there is now Pod {look.pod_name}.",
        )
    if text(section(verdict.evidence or {}, "pod"), "look") == "forbidden":
        yield problem(
            "missing-rights",
            "The reporter is not allowed to read its Pod, so only the result file counts.",
            "Bind the Role of deploy/base to the Pod's service account (pods: get, watch).",
        )


def _repeats(job: JobView) -> Iterator[Finding]:
    """Yield that the Job may repeat the check that its verdicts say has failed."""
    limit = number(job.spec, "backoffLimit") or 0
    failed = any(
        not each.good and not each.running and each.row in _OF_THE_CHECK for each in job.verdicts
    )
    if not failed or limit < 1 or "backoffLimitPerIndex" in job.spec or job.ending:
        return
    restarts = text(job.template, "restartPolicy") == "OnFailure"
    how = "restarts it" if restarts else "starts another Pod"
    count = "once" if limit == 1 else f"up to {limit} times, with growing pauses"
    never = "restartPolicy: Never and " if restarts else ""
    yield info(
        "repeated",
        f"If the check exits with an error, the Job {how}, {count}: the verdict may change until "
        "then.",
        f'To stop this, kubectl patch job {job.name} -p \'{{"spec":{{"backoffLimit":0}}}}\'; for '
        f"later Jobs, set {never}backoffLimit: 0.",
    )


def _of_run(job: JobView) -> Iterator[Finding]:
    """Yield which run the Job belongs to, as what: its verdict is told there."""
    run = text(section(job.object, "metadata", "labels"), RUN_LABEL)
    if not run:
        return
    key = key_of(job.object)
    part = "its aggregator"
    if key is not None:
        part = f"plugin {key.plugin}" + ("" if key.node == GLOBAL else f" on node {key.node}")
    yield info(
        "of-run",
        f"The Job belongs to run {run} ({part}), whose status has the verdict.",
        f"status-ctl status {run} -n {job.namespace}",
    )


def _settings(job: JobView, setup: Setup | None) -> Iterator[Finding]:
    """Yield which settings cannot work, whatever the Pods do."""
    if setup is None:
        yield problem(
            "no-reporter",
            "No status reporter runs in this Job's Pods, so no condition is written.",
            "Add the sidecar to the Pod template (deploy/ has it as a kustomize component), or "
            "check the Job's name.",
        )
        return
    for owner, spec in (("Job", job.spec), ("Pod", job.template)):
        limit = number(spec, "activeDeadlineSeconds")
        if limit is not None and setup.wait + MARGIN > limit:
            shorter = f"MAX_WAIT_TIME_SECONDS to at most {limit - MARGIN}, or "
            yield warning(
                "wait-beyond-deadline",
                f"The reporter may wait {go_duration(setup.wait)}, but the {owner}'s "
                f"activeDeadlineSeconds ends all work after {go_duration(limit)}: that leaves "
                "little time to report an adapter that hangs.",
                f"Set {shorter if limit > MARGIN else ''}the deadline to at least "
                f"{setup.wait + MARGIN}.",
            )
    if setup.poll >= setup.wait:
        yield warning(
            "settings",
            f"POLL_INTERVAL_SECONDS ({setup.poll}) has to be less than MAX_WAIT_TIME_SECONDS "
            f"({setup.wait}): the reporter uses a shorter one.",
            "Set a shorter interval or a longer wait.",
        )
    for variable, told, whose, right in setup.elsewhere(job.object):
        yield problem(
            "settings",
            f"The reporter has {variable}={told}, but this Job's {whose} is {right}: it writes "
            "to another Job or to none.",
            f"Set {variable} to {right}, or take it from the Pod's labels and namespace.",
        )
    _, misfit, _ = find_adapter({"metadata": {}, "spec": job.template}, setup.names)
    if misfit:
        yield problem(
            "settings",
            f"The reporter finds no adapter: {misfit}.",
            "Set ADAPTER_CONTAINER_NAME to the adapter container.",
        )
    if (number(job.spec, "parallelism") or 1) > 1:
        yield warning(
            "parallel",
            "The Job runs several Pods at once: only the verdict of the newest one counts.",
            "Use one Job for each verdict.",
        )


def _of_job(job: JobView) -> Iterator[Finding]:
    if job.suspended:
        yield problem(
            "suspended",
            "The Job is suspended: it has no Pods until it is resumed.",
            f'kubectl patch job {job.name} -p \'{{"spec":{{"suspend":false}}}}\'',
        )
    if job.deleting:
        yield info("deleting", "The Job is being deleted.")
    over = true_condition(job.object, *ENDED)
    if text(over, "type") == "Complete":
        yield info("job-complete", "The Job itself is complete.")
    elif over:
        reason = text(over, "reason")
        why = _FAILURES.get(reason, text(over, "message") or "without a reason")
        yield info("job-failed", f"The Job itself has failed ({reason}): {why}.")


def _no_pod(look: Look) -> Iterator[Finding]:
    if "pods" in look.unread or look.job.deleting or look.job.suspended:
        return
    if look.job.ended:
        yield info(
            "pods-gone",
            "Its Pods are gone, and their logs with them: the conditions above are all that is "
            "left.",
        )
    elif why := last_event(look.events, "FailedCreate", "FailedValidation"):
        yield problem(
            "no-pod",
            f"The Job cannot create its Pod ({why}).",
            "A quota, an admission policy or a missing service account prevents it: see the "
            "message.",
        )
    else:
        yield problem(
            "no-pod",
            "The Job has no Pod.",
            "If this lasts longer than a few seconds, check that the controller manager is "
            "running: kubectl describe job",
        )


def last_runs(cron_job: Object, jobs: Iterable[Object]) -> list[JobView]:
    """Return the Jobs that a CronJob has made, the newest first; at most `LAST`."""
    uid = text(section(cron_job, "metadata"), "uid")
    own = []
    for job in jobs:
        metadata = section(job, "metadata")
        if any(text(owner, "uid") == uid for owner in items(metadata, "ownerReferences")):
            created = moment(metadata, "creationTimestamp") or 0.0
            own.append((created, text(metadata, "name"), job))
    newest = sorted(own, key=lambda each: each[:2], reverse=True)[:LAST]
    return [JobView(job) for _, _, job in newest]


def findings_of_runs(cron_job: Object, runs: list[JobView]) -> list[Finding]:
    """Return what to know of a CronJob and its last runs, as `last_runs` returns them."""
    return [*_schedule(cron_job, runs), *map(_run, runs)]


def _schedule(cron_job: Object, runs: list[JobView]) -> Iterator[Finding]:
    name = text(section(cron_job, "metadata"), "name")
    spec, due = section(cron_job, "spec"), text(section(cron_job, "status"), "lastScheduleTime")
    if spec.get("suspend") is True:
        yield problem(
            "cron-suspended",
            "The CronJob is suspended: it creates no Jobs until it is resumed.",
            f'kubectl patch cronjob {name} -p \'{{"spec":{{"suspend":false}}}}\'',
        )
    if not due and not runs:
        yield info("not-due", f"It has not been due yet (schedule {text(spec, 'schedule')!r}).")
    elif not runs:
        yield warning(
            "no-runs",
            f"It was last due at {due}, but none of its Jobs is left.",
            "See its Events (kubectl describe cronjob); failedJobsHistoryLimit and "
            "ttlSecondsAfterFinished say how long Jobs are kept.",
        )


def _run(job: JobView) -> Finding:
    said = "; ".join(map(str, job.verdicts)) or "no condition"
    what = f"Job {job.name} of {job.created}: {said}"
    match job.outcome:
        case Outcome.GOOD:
            return info("run", what)
        case Outcome.FAILED:
            return problem("run", what)
        case _ if job.ended:
            return warning("run", f"{what} (it ended without a final verdict)")
    failing = any(not each.good and not each.running for each in job.verdicts)
    return (problem if failing else info)("run", f"{what} (it may still change)")
