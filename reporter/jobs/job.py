"""One look at a Job: its reporters, the verdicts on it, and what has become of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from reporter.common.objects import Object, View, items, json_object, number, section, text
from reporter.jobs.setting import find_setups
from reporter.verdict.condition import ANNOTATION_PREFIX, RESERVED_TYPES, annotation_key
from reporter.verdict.rows import Row

ENDED: Final = ("Complete", "Failed")
_NOT_FINAL: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (Row.RESULT, Row.SUCCEEDED, Row.CRASH_LOOPING, Row.NO_RESULT),
        "not final: the adapter may run again",
    ),
    **dict.fromkeys((Row.IMAGE, Row.CONFIG, Row.START), "not final: the adapter may still start"),
    **dict.fromkeys(
        (Row.EVICTED, Row.DEADLINE, Row.INTERRUPTED), "not final: a result may still arrive"
    ),
}


@dataclass(frozen=True, slots=True)
class WrittenVerdict:
    """One condition with its annotation. `row` is empty where there is no annotation.

    `evidence`, `after` and `late` are from the annotation; `final` is None where it is not known.
    """

    type: str
    status: str
    reason: str
    message: str
    since: str
    row: str = ""
    final: bool | None = None
    pod: str = ""
    evidence: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    late: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.type}={self.status} {self.reason}: {self.message}"

    @property
    def good(self) -> bool:
        """Whether the verdict is a success."""
        return self.status == "True"

    @property
    def running(self) -> bool:
        """Whether the verdict says that the work is still going on."""
        return self.row == Row.RUNNING or (not self.row and self.reason == Row.RUNNING.reason)

    @property
    def failed(self) -> bool:
        """Whether the verdict is a failure, or that nothing is known."""
        return not self.good and not self.running


class Outcome(StrEnum):
    """What has become of a Job."""

    OPEN = "open"
    GOOD = "good"
    FAILED = "failed"


class JobView:
    """A Job; `verdicts` has that of an older reporter, too, if a reporter is set up."""

    def __init__(self, job: Object) -> None:
        metadata = section(job, "metadata")
        self.object, self.spec = job, section(job, "spec")
        self.name, self.namespace = text(metadata, "name"), text(metadata, "namespace")
        self.uid, self.created = text(metadata, "uid"), text(metadata, "creationTimestamp")
        self.template = section(self.spec, "template", "spec")
        self.setups = find_setups(self.template)
        self.verdicts = written_verdicts(job, self.setups[0].condition if self.setups else "")
        self.completions = number(self.spec, "completions") or 1
        self.suspended = self.spec.get("suspend") is True
        self.deleting = "deletionTimestamp" in metadata
        self.ended = ended(job)

    @property
    def ending(self) -> bool:
        """Whether the Job is over, or about to be."""
        known = (*ENDED, "FailureTarget", "SuccessCriteriaMet")
        return bool(View(self.object).condition(*known, status="True"))

    @property
    def last_pod(self) -> bool:
        """Whether the Job starts no further Pod: it is ending, or does not retry."""
        if self.ending:
            return True
        if self.suspended or number(self.spec, "backoffLimit") != 0:
            return False
        if self.completions > 1 or (number(self.spec, "parallelism") or 1) > 1:
            return False
        # Failures that a rule ignores are not counted.
        rules = items(section(self.spec, "podFailurePolicy"), "rules")
        return not any(text(rule, "action") == "Ignore" for rule in rules)

    def stays(self, verdict: WrittenVerdict) -> bool:
        """Return whether this verdict is the last one.

        A final one is the last of its Pod. Unless it is good and the Job needs no second success,
        the Job may start another Pod, whose verdict replaces it.
        """
        # An older reporter writes its verdicts once, and says of none that it is final.
        settled = verdict.final is not False and not verdict.running
        enough = verdict.good and self.completions <= 1
        return settled and (enough or self.last_pod)

    @property
    def outcome(self) -> Outcome:
        """What has become of it: decided once all that write wrote their final verdict."""
        writers = sum(each.writes for each in self.setups)
        if len(self.verdicts) < max(writers, 1) or not all(map(self.stays, self.verdicts)):
            return Outcome.OPEN
        return Outcome.GOOD if all(each.good for each in self.verdicts) else Outcome.FAILED

    @property
    def open_because(self) -> str:
        """Why it is not decided, if that is worth a remark: its verdict may not stay."""
        if self.suspended:
            return "suspended; waiting"
        if not self.verdicts and not self.setups:
            return "no status reporter in its Pod template; waiting"
        if not self.verdicts and not any(each.writes for each in self.setups):
            return "its status reporter writes no condition (REPORT_CONDITION=false); waiting"
        for each in self.verdicts:
            if not each.running and not self.stays(each):
                why = "the Job may start another Pod"
                if each.final is False:
                    why = _NOT_FINAL.get("" if self.ended else each.row, "not final yet")
                return f"{each} ({why}); waiting"
        return ""

    def nobody_writes(self, pods: Sequence[Object]) -> bool:
        """Return whether no reporter can still write: the Job and its Pods have ended."""
        return self.ended and all(
            text(section(pod, "status"), "phase") in {"Succeeded", "Failed"} for pod in pods
        )


def written_verdicts(job: Object, also: str = "") -> list[WrittenVerdict]:
    """Return what a reporter has written on the Job: conditions with our annotation.

    `also` is a type that counts without one, as an older reporter writes it.
    """
    notes = {
        key: note
        for key, value in View(job).annotations.items()
        if key.startswith(ANNOTATION_PREFIX) and isinstance(value, str)
        if (note := json_object(value)) and section(note, "attempt")
    }
    found = []
    for condition in View(job).conditions:
        kind = text(condition, "type")
        note = notes.get(annotation_key(kind))
        if kind in RESERVED_TYPES or (note is None and (not also or kind != also)):
            continue
        note = note or {}
        final = note.get("final")
        found.append(
            WrittenVerdict(
                kind,
                text(condition, "status"),
                text(condition, "reason"),
                text(condition, "message"),
                text(condition, "lastTransitionTime"),
                text(note, "rule"),
                final if isinstance(final, bool) else None,
                text(section(note, "attempt"), "pod"),
                section(note, "evidence"),
                section(note, "after") or None,
                section(note, "late") or None,
            )
        )
    return found


def ended(job: Object) -> bool:
    """Return whether the Job itself is over: complete or failed."""
    return bool(View(job).condition(*ENDED, status="True"))


def pods_selector(job: Object) -> str:
    """Return the labels of a Job's Pods, `KEY=VALUE,...`; empty where it does not say."""
    labels = section(job, "spec", "selector", "matchLabels")
    return ",".join(f"{key}={value}" for key, value in labels.items())


def newest_pod(pods: Sequence[Object]) -> Object | None:
    """Return the Pod that counts: the newest; of the same second, the one with the greater UID."""
    return max(pods, key=_created, default=None)


def _created(pod: Object) -> tuple[float, str]:
    return View(pod).created or 0.0, View(pod).uid
