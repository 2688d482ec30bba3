"""Whether the verdict on a Job is decided: for those who wait for it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from reporter.common.objects import section, text
from reporter.jobs.finding import Object
from reporter.jobs.job import ended, standing
from reporter.jobs.repeats import is_last
from reporter.jobs.setting import find_setups


class JobOutcome(StrEnum):
    """What has become of a Job."""

    OPEN = "open"
    GOOD = "good"
    FAILED = "failed"


_NOT_FINAL: Final = {
    **dict.fromkeys("RSCX", "not final: the adapter may run again"),
    **dict.fromkeys(("W1", "W2", "W3"), "not final: the adapter may still start"),
    **dict.fromkeys("EDN", "not final: a result may still arrive"),
}


def outcome(job: Object) -> JobOutcome:
    """Return what has become of a Job: decided once all that write wrote their final verdict."""
    found = standing(job)
    writers = sum(each.writes for each in find_setups(section(job, "spec", "template", "spec")))
    if len(found) < max(writers, 1) or not all(is_last(each, job) for each in found):
        return JobOutcome.OPEN
    return JobOutcome.GOOD if all(each.good for each in found) else JobOutcome.FAILED


def open_because(job: Object) -> str:
    """Return why a Job is not decided, if that is worth a remark: its verdict may not stay."""
    if section(job, "spec").get("suspend") is True:
        return "suspended; waiting"
    found = standing(job)
    reporters = find_setups(section(job, "spec", "template", "spec"))
    if not found and not reporters:
        return "no status reporter in its Pod template; waiting"
    if not found and not any(each.writes for each in reporters):
        return "its status reporter writes no condition (REPORT_CONDITION=false); waiting"
    for each in found:
        if not each.running and not is_last(each, job):
            why = "the Job may start another Pod"
            if each.final is False:
                why = _NOT_FINAL.get("" if ended(job) else each.row, "not final yet")
            return f"{each.type}={each.status} {each.reason}: {each.message} ({why}); waiting"
    return ""


def nobody_writes(job: Object, pods: Sequence[Object]) -> bool:
    """Return whether no reporter can still write: the Job and its Pods have ended."""
    return ended(job) and all(
        text(section(pod, "status"), "phase") in {"Succeeded", "Failed"} for pod in pods
    )
