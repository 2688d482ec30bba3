"""What became of the last runs of a CronJob: its Jobs that are still there, and their verdicts."""

from collections.abc import Iterable, Iterator
from typing import Final

from reporter.common.objects import items, moment, section, text
from reporter.jobs.finding import Finding, Object, info, problem, warning
from reporter.jobs.job import ended, standing
from reporter.jobs.outcome import JobOutcome, outcome

LAST: Final = 5
"""So many runs are told."""


def last_runs(cron_job: Object, jobs: Iterable[Object]) -> list[Object]:
    """Return the Jobs that a CronJob has made, the newest first; at most `LAST`."""
    uid = text(section(cron_job, "metadata"), "uid")
    own = [
        job
        for job in jobs
        if any(
            text(owner, "uid") == uid
            for owner in items(section(job, "metadata"), "ownerReferences")
        )
    ]
    return sorted(own, key=_created, reverse=True)[:LAST]


def findings_of_runs(cron_job: Object, runs: list[Object]) -> list[Finding]:
    """Return what to know of a CronJob and its last runs, as `last_runs` returns them."""
    return [*_schedule(cron_job, runs), *(_run(job) for job in runs)]


def _schedule(cron_job: Object, runs: list[Object]) -> Iterator[Finding]:
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


def _run(job: Object) -> Finding:
    metadata = section(job, "metadata")
    found = standing(job)
    verdicts = [f"{each.type}={each.status} {each.reason}: {each.message}" for each in found]
    said = "; ".join(verdicts) or "no condition"
    what = f"Job {text(metadata, 'name')} of {text(metadata, 'creationTimestamp')}: {said}"
    became = outcome(job)
    if became is JobOutcome.GOOD:
        return info("run", what)
    if became is JobOutcome.FAILED:
        return problem("run", what)
    if ended(job):
        return warning("run", f"{what} (it ended without a final verdict)")
    what = f"{what} (it may still change)"
    failing = any(not each.good and not each.running for each in found)
    return problem("run", what) if failing else info("run", what)


def _created(job: Object) -> tuple[float, str]:
    metadata = section(job, "metadata")
    return moment(metadata, "creationTimestamp") or 0.0, text(metadata, "name")
