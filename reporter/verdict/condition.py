"""What is on the Job, whether a report needs to be written, and what writes and announces it.

The annotation beside the condition says whose report it is and whether it is final; of what it
holds only that is read back, and one that does not fit is treated as none. It is published as
`schemas/verdict.v1.schema.json`. There is one patch of both, and the Kubernetes Event for people:
`kubectl describe job` shows it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from reporter.common.defaults import REPORTER
from reporter.common.objects import (
    Object,
    epoch,
    items,
    json_object,
    moment,
    number,
    section,
    stamp,
    text,
)
from reporter.verdict.facts import Job
from reporter.verdict.rows import FALSE, TRUE, Report, Row

ANNOTATION_PREFIX = "status-reporter.io/"
DETAILS_SUFFIX = ".details"
DEFAULT_TYPE = "Available"
RESERVED_TYPES = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended")
"""The Job controller's own: whoever writes one of them ends the Job."""
_ANNOTATION_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
SIZE_LIMIT = 4096  # bytes of an annotation
AMENDMENTS = frozenset({"after", "late"})
"""Members that are added later: how the adapter ended, and a result that came after the timeout."""
TEXT_PAUSE = (
    30.0  # seconds between two writes that change nothing but the message of a revisable report
)
_JOB_NAME_LIMIT = 200  # characters; with the hash a name stays far below the API's 253
_INSTANCE_LIMIT = 128  # the API's own
_THROTTLED = frozenset({Row.RUNNING, Row.CRASH_LOOPING, Row.IMAGE, Row.CONFIG, Row.START})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One Pod's attempt at the Job.

    If the Pod cannot be read, its name and our first start identify the attempt.
    """

    pod: str
    pod_uid: str
    created_at: float | None
    waiting_since_at: float
    first_started_at: float | None = None
    restarts: int = 0
    index: int | None = None  # the Pod's completion index

    def same(self, other: "Attempt") -> bool:
        """Return whether both are the same Pod's."""
        unknown = not self.pod_uid or not other.pod_uid
        return self.pod == other.pod and (unknown or self.pod_uid == other.pod_uid)

    def older_than(self, other: "Attempt") -> bool:
        """Return whether the other attempt is the newer one: by creation time, then by UID."""
        return not self.same(other) and self._order < other._order

    @property
    def _order(self) -> tuple[int, str]:
        at = self.waiting_since_at if self.created_at is None else self.created_at
        return int(at), self.pod_uid or self.pod


@dataclass(frozen=True, slots=True)
class Statement:
    """What is to be written: a report, whose it is, and what it is based on."""

    report: Report
    final: bool
    attempt: Attempt
    evidence: Mapping[str, Any]
    wall: float  # right after the look, epoch seconds


@dataclass(frozen=True, slots=True)
class Note:
    """What our annotation says about the report on the Job; empty where it does not say.

    Whether the condition still is what it speaks of, only `Standing` knows.
    """

    attempt: Attempt
    final: bool
    row: str
    status: str = ""
    reason: str = ""
    ended: bool = False  # the evidence shows the adapter's end
    amended: bool = False  # what contradicts it was added later


@dataclass(frozen=True, slots=True)
class Standing:
    """The Job as last read: its facts, the condition of our type, and whose that is."""

    job: Job
    resource_version: str
    status: str = ""
    reason: str = ""
    message: str = ""
    transition: str = ""  # RFC 3339, as stored
    note: Note | None = None

    @property
    def final(self) -> bool:
        """Whether a final report stands.

        Something may have removed or changed the condition since, or never let it in.
        """
        note = self.note
        if note is None or not self.status:
            return False
        return note.final and (note.status, note.reason) == (self.status, self.reason)


class Owner(Enum):
    """Whose report is on the Job, as seen by one attempt."""

    NOBODY = "nobody"  # no annotation of ours: nothing, or an older product's condition
    OURS = "ours"
    OLDER = "older"
    NEWER = "newer"
    FAILED_INDEX = "failedIndex"  # a final False of another completion index: the Job fails by it


def is_condition_type(text: str) -> bool:
    """Return whether a reporter may write conditions of this type."""
    return text not in RESERVED_TYPES and bool(_ANNOTATION_NAME.fullmatch(text.replace("/", ".")))


def annotation_key(condition_type: str) -> str:
    """Return the annotation that goes with a condition type.

    `/` is not allowed in its name part.
    """
    return ANNOTATION_PREFIX + condition_type.replace("/", ".")


def details_key(condition_type: str) -> str:
    """Return the annotation that holds the details of a result."""
    return annotation_key(condition_type) + DETAILS_SUFFIX


def read_job(job: Object) -> Job:
    """Read the facts of an API Job. Never raises."""
    metadata, spec, status = section(job, "metadata"), section(job, "spec"), section(job, "status")
    deadline = number(spec, "activeDeadlineSeconds")
    failures = (
        text(condition, "reason")
        for condition in items(status, "conditions")
        if text(condition, "type") in {"FailureTarget", "Failed"}
        and text(condition, "status") == "True"
    )
    return Job(
        uid=text(metadata, "uid"),
        started_at=moment(status, "startTime"),
        deadline=None if deadline is None else float(deadline),
        suspended=spec.get("suspend") is True,
        deleting="deletionTimestamp" in metadata,
        failure=next(failures, ""),
        parallel=(number(spec, "parallelism") or 1) > 1,
        completions=number(spec, "completions") or 1,
    )


def read_standing(job: Object, condition_type: str, note: Note | None) -> Standing:
    """Read our condition and whose it is from an API Job; `note` is its decoded annotation."""
    found = next(
        (
            c
            for c in items(section(job, "status"), "conditions")
            if text(c, "type") == condition_type
        ),
        {},
    )
    return Standing(
        job=read_job(job),
        resource_version=text(section(job, "metadata"), "resourceVersion"),
        status=text(found, "status"),
        reason=text(found, "reason"),
        message=text(found, "message"),
        transition=text(found, "lastTransitionTime"),
        note=note,
    )


def owner(standing: Standing, attempt: Attempt) -> Owner:
    """Return whose report is on the Job."""
    if standing.note is None:
        return Owner.NOBODY
    theirs = standing.note.attempt
    if theirs.same(attempt):
        return Owner.OURS
    if attempt.older_than(theirs):
        return Owner.NEWER
    other = None not in (theirs.index, attempt.index) and theirs.index != attempt.index
    if other and standing.final and standing.status == FALSE:
        return Owner.FAILED_INDEX
    return Owner.OLDER


def worth_writing(
    standing: Standing,
    attempt: Attempt,
    report: Report,
    *,
    final: bool,
    since_last: float = TEXT_PAUSE,
) -> bool:
    """Return whether a report has to be written; our last write was `since_last` seconds ago.

    A final report of the same attempt, a report of a newer attempt and a final False of another
    completion index are never replaced.
    Differences in the times of the condition and in the evidence do not matter.
    """
    whose = owner(standing, attempt)
    if whose in {Owner.NEWER, Owner.FAILED_INDEX}:
        return False
    note = standing.note
    if whose is not Owner.OURS or note is None:
        return True
    if standing.final:
        return False
    kind = (standing.status, standing.reason, note.row, standing.final)
    if kind != (report.status, report.reason, report.row, final):
        return True
    if standing.message == report.message:
        return False
    return report.row not in _THROTTLED or since_last >= TEXT_PAUSE


def encode_annotation(statement: Statement) -> str:
    """Return the annotation's value, at most 4 KiB.

    Evidence that does not fit is left out, and that is said.
    """
    report, attempt = statement.report, statement.attempt
    shown = {
        "version": 1,
        "final": statement.final,
        # The condition's own: what exports annotations and no conditions needs them here.
        "status": report.status,
        "reason": report.reason,
        "rule": report.row,
        "attempt": known(
            {
                "pod": attempt.pod,
                "podUID": attempt.pod_uid,
                "podCreatedAt": stamp_of(attempt.created_at),
                "waitingSince": stamp(attempt.waiting_since_at),
                "adapterStartedAt": stamp_of(attempt.first_started_at),
                "adapterRestarts": attempt.restarts,
                "index": attempt.index,
            }
        ),
        "evidence": dict(statement.evidence),
    }
    return _fitting(shown)


def amend(value: str, member: str, shown: Mapping[str, Any]) -> str:
    """Return an annotation that `decode_note` can read, with a member of `AMENDMENTS` added."""
    return _fitting(json.loads(value) | {member: dict(shown)})


def decode_note(value: str) -> Note | None:
    """Read an annotation back; nothing for one that is absent or does not fit."""
    shown = json_object(value) or {}
    attempt = section(shown, "attempt")
    since = moment(attempt, "waitingSince")
    final = shown.get("final")
    if not isinstance(final, bool) or not text(attempt, "pod") or since is None:
        return None
    return Note(
        Attempt(
            pod=text(attempt, "pod"),
            pod_uid=text(attempt, "podUID"),
            created_at=epoch(text(attempt, "podCreatedAt")),
            waiting_since_at=since,
            first_started_at=epoch(text(attempt, "adapterStartedAt")),
            restarts=number(attempt, "adapterRestarts") or 0,
            index=number(attempt, "index"),
        ),
        final=final,
        row=text(shown, "rule"),
        status=text(shown, "status"),
        reason=text(shown, "reason"),
        ended=text(section(shown, "evidence", "adapter"), "state") == "terminated",
        amended=not AMENDMENTS.isdisjoint(shown),
    )


def _fitting(shown: dict[str, Any]) -> str:
    value = _compact(shown)
    if len(value.encode(errors="replace")) > SIZE_LIMIT:
        seen = text(section(shown, "evidence"), "observedAt")
        value = _compact(shown | {"evidence": {"observedAt": seen, "omitted": True}})
    return value


def known(shown: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of some facts."""
    return {key: value for key, value in shown.items() if value not in (None, "")}


def stamp_of(at: float | None) -> str | None:
    """Return a moment as it is shown, if it is known."""
    return None if at is None else stamp(at)


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def build_patch(
    standing: Standing, condition_type: str, report: Report, annotation: str, now: float
) -> dict[str, Any]:
    """Build the strategic merge patch: condition and annotation in one write.

    It applies only to the Job and the version that were read. `lastTransitionTime` is kept as long
    as the status is the same.
    """
    seen = stamp(now)
    kept = standing.transition if standing.status == report.status else ""
    condition = {
        "type": condition_type,
        "status": report.status,
        "reason": report.reason,
        "message": report.message,
        "lastProbeTime": seen,
        "lastTransitionTime": kept or seen,
    }
    return {
        **annotation_patch(standing, condition_type, annotation),
        "status": {"conditions": [condition]},
    }


def annotation_patch(standing: Standing, condition_type: str, annotation: str) -> dict[str, Any]:
    """Build the patch that writes the annotation alone."""
    metadata = {
        "uid": standing.job.uid,
        "resourceVersion": standing.resource_version,
        "annotations": {annotation_key(condition_type): annotation},
    }
    return {"metadata": metadata}


def build_event(
    statement: Statement,
    *,
    namespace: str,
    job_name: str,
    job_uid: str,
    condition_type: str,
    late: bool = False,
) -> dict[str, Any]:
    """Build the Event of events.k8s.io/v1 for a final report.

    An attempt has one final verdict per type, and one `late` result, so the name follows from both,
    and an Event that is sent again already exists. Reason and message of a report are within the
    API's limits.
    """
    report, attempt = statement.report, statement.attempt
    whose = f"{attempt.pod_uid or attempt.pod}/{condition_type}{'/late' if late else ''}"
    digest = hashlib.sha256(whose.encode()).hexdigest()[:16]
    at = datetime.fromtimestamp(statement.wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{job_name[:_JOB_NAME_LIMIT].rstrip('-.')}.{digest}",
            "namespace": namespace,
        },
        "eventTime": at,
        "reportingController": REPORTER,
        "reportingInstance": attempt.pod[:_INSTANCE_LIMIT],
        "action": "Report",
        "type": "Normal" if report.status == TRUE else "Warning",
        "reason": report.reason,
        "note": report.message,
        "regarding": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": namespace,
            "name": job_name,
            "uid": job_uid,
        },
    }
