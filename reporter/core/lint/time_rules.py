"""Rules about times: the wait time, deadlines, the grace period."""

from collections.abc import Iterator
from typing import Final

from reporter.core.diagnosis.setting import MARGIN
from reporter.core.lint.case import Case, Hit
from reporter.core.lint.jobs import Place
from reporter.core.objects import number
from reporter.core.text import go_duration

_GRACE: Final = 5  # seconds; two of them are kept for the exit


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
