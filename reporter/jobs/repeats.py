"""Whether a Job does its work again after a failure, so that the verdict on it may change."""

from collections.abc import Iterator, Sequence
from typing import Final

from reporter.common.objects import items, number, section, text
from reporter.jobs.finding import Finding, Object, info
from reporter.jobs.written_verdict import WrittenVerdict

_ENDING: Final = frozenset({"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})
_OF_THE_CHECK: Final = frozenset({"R", "T", "O", "I", "X", "C", ""})
"""Rows of failures of the adapter itself; an older reporter writes none."""


def is_last(verdict: WrittenVerdict, job: Object) -> bool:
    """Return whether this verdict stays.

    A final one is the last of its Pod. Unless it is good and the Job needs no second success, the
    Job may start another Pod, whose verdict replaces it.
    """
    # An older reporter writes its verdicts once, and says of none that it is final.
    settled = verdict.final is not False and not verdict.running
    enough = verdict.good and (number(section(job, "spec"), "completions") or 1) <= 1
    return settled and (enough or no_pod_follows(job))


def no_pod_follows(job: Object) -> bool:
    """Return whether the Job starts no further Pod: it is ending, or does not retry."""
    spec = section(job, "spec")
    if _ends(job):
        return True
    if spec.get("suspend") is True or number(spec, "backoffLimit") != 0:
        return False
    if (number(spec, "completions") or 1) > 1 or (number(spec, "parallelism") or 1) > 1:
        return False
    # Failures that a rule ignores are not counted.
    rules = items(section(spec, "podFailurePolicy"), "rules")
    return not any(text(rule, "action") == "Ignore" for rule in rules)


def repeats(job: Object, verdicts: Sequence[WrittenVerdict]) -> Iterator[Finding]:
    """Yield that the Job may repeat the check that these verdicts say has failed."""
    spec, name = section(job, "spec"), text(section(job, "metadata"), "name")
    limit = number(spec, "backoffLimit") or 0
    failed = any(
        not each.good and not each.running and each.row in _OF_THE_CHECK for each in verdicts
    )
    if not failed or limit < 1 or "backoffLimitPerIndex" in spec or _ends(job):
        return
    restarts = text(section(spec, "template", "spec"), "restartPolicy") == "OnFailure"
    how = "restarts it" if restarts else "starts another Pod"
    count = "once" if limit == 1 else f"up to {limit} times, with growing pauses"
    never = "restartPolicy: Never and " if restarts else ""
    yield info(
        "repeated",
        f"If the check exits with an error, the Job {how}, {count}: the verdict may change until "
        "then.",
        f'To stop this, kubectl patch job {name} -p \'{{"spec":{{"backoffLimit":0}}}}\'; for later '
        f"Jobs, set {never}backoffLimit: 0.",
    )


def _ends(job: Object) -> bool:
    """Return whether the Job is over, or about to be."""
    return any(
        text(each, "type") in _ENDING and text(each, "status") == "True"
        for each in items(section(job, "status"), "conditions")
    )
