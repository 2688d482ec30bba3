"""Rules about times: the wait time, deadlines, the grace period, repetitions."""

from collections.abc import Iterator
from typing import Final

from reporter.common.objects import number, text
from reporter.common.text import go_duration
from reporter.jobs.setting import MARGIN
from reporter.lint.case import Case, Hit
from reporter.lint.jobs import Job, Place

_GRACE: Final = 5  # seconds; two of them are kept for the exit
_REAPED: Final = 120
"""Seconds after a Job's end, at most, when the reaper writes: its --settle and --interval."""
_BACKOFF_LIMIT: Final = 6  # the API server's default


def wait_beyond_deadline(case: Case) -> Iterator[Hit]:
    """A wait time that a deadline always comes before: only the grace period is left to write."""
    wait = _wait(case)
    for owner, place, limit in _deadlines(case):
        if wait is not None and wait >= limit:
            yield Hit(
                place,
                f"The reporter waits {go_duration(wait)}, but the {owner}'s activeDeadlineSeconds "
                f"ends all work after {go_duration(limit)}: that leaves little time to report an "
                "adapter that hangs.",
                _todo(wait, limit),
            )


def wait_near_deadline(case: Case) -> Iterator[Hit]:
    """A wait time that leaves no time to write."""
    wait = _wait(case)
    for owner, place, limit in _deadlines(case):
        if wait is not None and wait < limit < wait + MARGIN:
            yield Hit(
                place,
                f"The {owner}'s activeDeadlineSeconds comes {limit - wait} s after the end of the "
                "wait time, and counts from an earlier moment: the verdict may come too late.",
                _todo(wait, limit),
            )


def no_deadline(case: Case) -> Iterator[Hit]:
    """A timeout is reported and stops nothing."""
    if not _deadlines(case):
        yield Hit(
            (*case.job.spec_place, "activeDeadlineSeconds"),
            "The Job has no deadline: an adapter that hangs is reported, but the Job never ends.",
            f"Set activeDeadlineSeconds, at least {MARGIN} s longer than MAX_WAIT_TIME_SECONDS.",
        )


def grace_too_short(case: Case) -> Iterator[Hit]:
    """What is left for a verdict after SIGTERM."""
    grace = number(case.job.pod, "terminationGracePeriodSeconds")
    if grace is not None and grace < _GRACE:
        yield Hit(
            (*case.job.pod_place, "terminationGracePeriodSeconds"),
            f"The Pod has {grace} s to end: when it is deleted, the reporter has too little time "
            "to write the verdict.",
            f"Set terminationGracePeriodSeconds to at least {_GRACE}, or leave it out (30 s).",
        )


def ttl_too_short(case: Case) -> Iterator[Hit]:
    """A Job that is gone before its condition was read, or written by the reaper."""
    if not case.reporter.says_no("REPORT_CONDITION"):
        yield from ttl_too_short_for(case.job)


def ttl_too_short_for(job: Job) -> Iterator[Hit]:
    """The same for a Job that is yet to get its reporter."""
    ttl = number(job.spec, "ttlSecondsAfterFinished")
    if ttl is not None and ttl <= _REAPED:
        yield Hit(
            (*job.spec_place, "ttlSecondsAfterFinished"),
            f"The Job is deleted {ttl} s after its end: its condition may never be read, and "
            "where the reporter was lost, the reaper comes too late to write it.",
            f"Set ttlSecondsAfterFinished to more than {_REAPED}.",
        )


def repeated(case: Case) -> Iterator[Hit]:
    """A failure that the Job hides for minutes: by restarts, or by more Pods.

    A podFailurePolicy says already which failures count; it needs `restartPolicy: Never`.
    """
    job, restarts = case.job, text(case.job.pod, "restartPolicy") == "OnFailure"
    given = [number(job.spec, key) for key in ("backoffLimit", "backoffLimitPerIndex")]
    limit = min((each for each in given if each is not None), default=_BACKOFF_LIMIT)
    if limit < 1 or (job.spec.get("podFailurePolicy") and not restarts):
        return
    place = (*job.pod_place, "restartPolicy") if restarts else (*job.spec_place, "backoffLimit")
    count = "once" if limit == 1 else f"up to {limit} times, with growing pauses"
    never = "restartPolicy: Never and " if restarts else ""
    yield Hit(
        place,
        f"A check that exits with an error is repeated {count}, and its verdict may change until "
        "then.",
        f"Set {never}backoffLimit: 0, or keep it if repeating is intended (--ignore repeated).",
    )


def _wait(case: Case) -> int | None:
    """Return the wait time in seconds; None where it is not shown or no number."""
    written = case.reporter.value("MAX_WAIT_TIME_SECONDS") or ""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 12 else None


def _deadlines(case: Case) -> list[tuple[str, Place, int]]:
    job = case.job
    found = (
        ("Job", job.spec_place, number(job.spec, "activeDeadlineSeconds")),
        ("Pod", job.pod_place, number(job.pod, "activeDeadlineSeconds")),
    )
    return [
        (owner, (*place, "activeDeadlineSeconds"), limit)
        for owner, place, limit in found
        if limit is not None
    ]


def _todo(wait: int, limit: int) -> str:
    shorter = f"MAX_WAIT_TIME_SECONDS to at most {limit - MARGIN}, or " if limit > MARGIN else ""
    return f"Set {shorter}the deadline to at least {wait + MARGIN}."
