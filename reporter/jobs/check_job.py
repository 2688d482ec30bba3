"""The whole diagnosis of a Job: what is on it, what became of it, what is in its way."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from reporter.common.objects import Object, View, number, section, text
from reporter.common.text import go_duration, last_lines
from reporter.jobs.check_pod import TROUBLES, PodView, check_pod
from reporter.jobs.finding import Finding, Weight, failures, last_event, log_command, say
from reporter.jobs.job import ENDED, JobView, Outcome, WrittenVerdict, newest_pod
from reporter.jobs.setting import MARGIN, Setup, find_setup
from reporter.jobs.verdict_words import verdict_finding
from reporter.run.names import RUN_LABEL, key_of
from reporter.run.plan import GLOBAL
from reporter.verdict.pod import find_adapter, read_container
from reporter.verdict.rows import Row, words_left

LAST: Final = 5
"""So many runs of a CronJob are told."""
_LINES: Final = 5  # of the end of the adapter's log
_OF_THE_CHECK: Final = {
    "",
    Row.RESULT,
    Row.TIMEOUT,
    Row.OUT_OF_MEMORY,
    Row.INVALID_RESULT,
    Row.NO_RESULT,
    Row.CRASH_LOOPING,
}
"""Rows of failures of the adapter itself; an older reporter writes none."""
_NO_CAUSE: Final = frozenset({"deadline", "stuck-terminating", "oom-killed", "link", "kept-alive"})
"""What keeps no reporter from writing."""


@dataclass(frozen=True)
class Look:
    """A Job and what was read beside it, at `now` (Unix seconds).

    `events` are of the Job and its newest Pod; `log` is the end of that Pod's reporter's, `printed`
    that of its adapter's; `unread` says what could not be read and why.
    """

    job: JobView
    pods: Sequence[Object]
    now: float
    events: Sequence[Object] = ()
    log: str = ""
    unread: Mapping[str, str] = field(default_factory=dict)
    printed: str = ""

    @cached_property
    def pod(self) -> PodView:
        """The newest Pod; an empty one where there is none."""
        pod = newest_pod(self.pods) or {}
        # Something may put a reporter into Pods that the template does not show.
        setup = next(iter(self.job.setups), None) or find_setup(section(pod, "spec"))
        verdicts = self.job.verdicts
        return PodView(pod, self.now, self.events, setup=setup, log=self.log, verdicts=verdicts)


def findings(look: Look) -> list[Finding]:
    """Return what happened and what to do, beginning with the verdicts on the Job. Never raises."""
    job, pod, setup, verdicts = look.job, look.pod, look.pod.setup, look.job.verdicts
    of_pod = list(check_pod(pod)) if look.pods else []
    said: list[Finding] = []
    for verdict in verdicts:
        again = [each for each in of_pod if _says(verdict, each, pod.name)]
        of_pod = [each for each in of_pod if each not in again]
        causes = (cause for each in again for cause in each.evidence)
        of_this = verdict.pod in {"", pod.name} and (verdict.failed or verdict.after)
        printed = last_lines(look.printed, _LINES, 2048) if of_this else []
        whose = verdict.pod or pod.name or f"job/{job.name}"
        adapter = text(section(verdict.evidence or {}, "adapter"), "container")
        log = log_command(whose, job.namespace, adapter)
        said.append(verdict_finding(verdict, log, *causes, printed=printed))
        said += _doubts(verdict, look)
    run = list(_of_run(job))
    settings = list(_settings(job, setup)) if setup or not (verdicts or run) else []
    said += [*_repeats(job), *run, *settings, *_of_job(job)]
    said += of_pod if look.pods else _no_pod(look)
    explained = any(each.code == "settings" for each in settings) or any(
        each.weight is not Weight.INFO and each.code not in _NO_CAUSE for each in of_pod
    )
    if look.pods and not verdicts and not explained and setup and setup.writes:
        said.append(pod.say("no-condition", reporter=setup.name))
    return said + [say("unread", what=what, why=why) for what, why in look.unread.items()]


def _says(verdict: WrittenVerdict, found: Finding, pod: str) -> bool:
    """Return whether the verdict on this Pod says already what was found of a container."""
    adapter = text(section(verdict.evidence or {}, "adapter"), "container")
    named = found.about == adapter or repr(found.about) in verdict.message
    return verdict.pod == pod and found.code == TROUBLES.get(verdict.row) and named


def _doubts(verdict: WrittenVerdict, look: Look) -> Iterator[Finding]:
    """Yield when a verdict is not about the present."""
    pod, over = look.pod.name, not look.pods or look.pod.over or look.job.ended
    setup = look.pod.setup
    words = words_left(read_container(look.pod.pod, setup.name)) if setup else ""
    if verdict.running and over and not words and "pods" not in look.unread:
        yield say("reporter-gone", namespace=look.job.namespace)
    if verdict.pod and pod and verdict.pod != pod:
        yield say("earlier-attempt", old=verdict.pod, pod=pod)
    if text(section(verdict.evidence or {}, "pod"), "look") == "forbidden":
        yield say("missing-rights/pod")


def _repeats(job: JobView) -> Iterator[Finding]:
    """Yield that the Job may repeat the check that its verdicts say has failed."""
    limit = number(job.spec, "backoffLimit") or 0
    failed = any(each.failed and each.row in _OF_THE_CHECK for each in job.verdicts)
    if not failed or limit < 1 or "backoffLimitPerIndex" in job.spec or job.ending:
        return
    restarts = text(job.template, "restartPolicy") == "OnFailure"
    how = "restarts it" if restarts else "starts another Pod"
    count = "once" if limit == 1 else f"up to {limit} times, with growing pauses"
    never = "restartPolicy: Never and " if restarts else ""
    yield say("repeated", job=job.name, namespace=job.namespace, how=how, count=count, never=never)


def _of_run(job: JobView) -> Iterator[Finding]:
    """Yield which run the Job belongs to, as what: its verdict is told there."""
    run = text(View(job.object).labels, RUN_LABEL)
    if not run:
        return
    key = key_of(job.object)
    part = "its aggregator"
    if key is not None:
        part = f"plugin {key.plugin}" + ("" if key.node == GLOBAL else f" on node {key.node}")
    yield say("of-run", run=run, part=part, namespace=job.namespace)


def _settings(job: JobView, setup: Setup | None) -> Iterator[Finding]:
    """Yield which settings cannot work, whatever the Pods do."""
    if setup is None:
        yield say("no-reporter")
        return
    for owner, spec in (("Job", job.spec), ("Pod", job.template)):
        limit = number(spec, "activeDeadlineSeconds")
        if limit is not None and setup.wait + MARGIN > limit:
            shorter = f"MAX_WAIT_TIME_SECONDS to at most {limit - MARGIN}, or "
            yield say(
                "wait-beyond-deadline",
                wait=go_duration(setup.wait),
                owner=owner,
                limit=go_duration(limit),
                shorter=shorter if limit > MARGIN else "",
                least=setup.wait + MARGIN,
            )
    if setup.poll >= setup.wait:
        yield say("settings/poll", poll=setup.poll, wait=setup.wait)
    for variable, told, whose, right in setup.elsewhere(job.object):
        yield say("settings/job", variable=variable, told=told, whose=whose, right=right)
    _, misfit, _ = find_adapter({"metadata": {}, "spec": job.template}, setup.names)
    if misfit:
        yield say("settings/adapter", misfit=misfit)
    if (number(job.spec, "parallelism") or 1) > 1:
        yield say("parallel")


def _of_job(job: JobView) -> Iterator[Finding]:
    if job.suspended:
        yield say("suspended", job=job.name, namespace=job.namespace)
    if job.deleting:
        yield say("deleting")
    over = View(job.object).condition(*ENDED, status="True")
    if text(over, "type") == "Complete":
        yield say("job-complete")
    elif over:
        reason = text(over, "reason")
        why = failures().get(reason, text(over, "message") or "without a reason")
        yield say("job-failed", reason=reason, why=why)


def _no_pod(look: Look) -> Iterator[Finding]:
    if "pods" in look.unread or look.job.deleting or look.job.suspended:
        return
    if look.job.ended:
        yield say("pods-gone")
    elif why := last_event(look.events, "FailedCreate", "FailedValidation"):
        yield say("no-pod/refused", why=why)
    else:
        yield say("no-pod", job=look.job.name, namespace=look.job.namespace)


def last_runs(cron_job: Object, jobs: Iterable[Object]) -> list[JobView]:
    """Return the Jobs that a CronJob has made, the newest first; at most `LAST`."""
    uid = View(cron_job).uid
    own = []
    for job in jobs:
        view = View(job)
        if any(text(owner, "uid") == uid for owner in view.owners):
            own.append((view.created or 0.0, view.name, job))
    newest = sorted(own, key=lambda each: each[:2], reverse=True)[:LAST]
    return [JobView(job) for _, _, job in newest]


def findings_of_runs(cron_job: Object, runs: list[JobView]) -> list[Finding]:
    """Return what to know of a CronJob and its last runs, as `last_runs` returns them."""
    return [*_schedule(cron_job, runs), *map(_run, runs)]


def _schedule(cron_job: Object, runs: list[JobView]) -> Iterator[Finding]:
    name, namespace = View(cron_job).name, View(cron_job).namespace
    spec, due = section(cron_job, "spec"), text(section(cron_job, "status"), "lastScheduleTime")
    if spec.get("suspend") is True:
        yield say("cron-suspended", name=name, namespace=namespace)
    if not due and not runs:
        yield say("not-due", schedule=text(spec, "schedule"))
    elif not runs:
        yield say("no-runs", due=due, name=name, namespace=namespace)


def _run(job: JobView) -> Finding:
    said = "; ".join(map(str, job.verdicts)) or "no condition"
    failing = any(each.failed for each in job.verdicts)
    match job.outcome:
        case Outcome.GOOD:
            code = "run"
        case Outcome.FAILED:
            code = "run/failed"
        case _ if job.ended:
            code = "run/ended"
        case _:
            code = "run/failing" if failing else "run/open"
    return say(code, job=job.name, created=job.created, said=said)
