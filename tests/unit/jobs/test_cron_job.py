"""The last runs of a CronJob, as a person is told of them."""

import pytest

from reporter.jobs.check_job import LAST, findings_of_runs, last_runs
from reporter.jobs.job import JobView
from reporter.verdict import rows
from reporter.verdict.facts import ResultPayload
from tests.verdicts import with_verdicts

CRON = {"metadata": {"name": "nightly", "uid": "u"}, "spec": {"schedule": "@daily"}}
GOOD = rows.result(ResultPayload(True, "Fine", "m"))
BAD = rows.result(ResultPayload(False, "Bad", "m"))
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def run(day, *reports, owner="u", limit=0, **more):
    made = with_verdicts(*reports, name=f"n-{day}", spec={"backoffLimit": limit}, **more)
    stamp = f"2030-01-{day:02}T00:00:00Z"
    made["metadata"] |= {"ownerReferences": [{"uid": owner}], "creationTimestamp": stamp}
    return made


def test_the_newest_come_first():
    """Of its own."""
    jobs = [run(day) for day in (3, 1, 9, 7, 5, 2)] + [run(10, owner="other")]

    assert [9, 7, 5, 3, 2] == [int(job.name[2:]) for job in last_runs(CRON, jobs)]
    assert 5 == LAST


@pytest.mark.parametrize(
    ("job", "weight", "ending"),
    [
        (run(1, GOOD), "info", "Available=True Fine: m"),
        (run(1, rows.timeout(300)), "problem", "within 5m0s"),
        (run(1), "info", "no condition (it may still change)"),
        (run(1, rows.running(None, None), final=False), "info", "(it may still change)"),
        (run(1, BAD, final=False, limit=6), "problem", "Bad: m (it may still change)"),
        (run(1, BAD, limit=6), "problem", "Bad: m (it may still change)"),
        (run(1, GOOD, final=False, limit=6), "info", "Fine: m (it may still change)"),
        (run(1, status=COMPLETE), "warning", "no condition (it ended without a final verdict)"),
    ],
)
def test_a_run(job, weight, ending):
    """By its outcome."""
    (found,) = findings_of_runs(CRON, [JobView(job)])

    assert ("run", weight) == (found.code, found.weight)
    assert found.what.startswith("Job n-1 of 2030-01-01T00:00:00Z: ")
    assert found.what.endswith(ending)


@pytest.mark.parametrize(
    ("status", "spec", "codes"),
    [
        ({}, {}, ["not-due"]),
        ({"lastScheduleTime": "2030-01-01T00:00:00Z"}, {}, ["no-runs"]),
        ({}, {"suspend": True}, ["cron-suspended", "not-due"]),
    ],
)
def test_without_runs(status, spec, codes):
    """Why there are none."""
    cron = CRON | {"status": status, "spec": CRON["spec"] | spec}

    assert codes == [each.code for each in findings_of_runs(cron, [])]
