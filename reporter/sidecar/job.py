"""The Job's status as a place for reports.

One GET to see what stands, one guarded PATCH to change it, and one Event for what is final.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from reporter.common.objects import View, items, section, text
from reporter.errors import Forbidden, Gone, InvalidRequest
from reporter.kube.resources import NEW_EVENT
from reporter.verdict.condition import (
    Standing,
    Statement,
    amend,
    annotation_key,
    annotation_patch,
    build_event,
    build_patch,
    decode_note,
    details_key,
    encode_annotation,
    read_standing,
)

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi


class JobApi(Protocol):
    """The two calls that reports are read and written by. They raise KubeError."""

    def get(
        self, kind: str, namespace: str, name: str, /, *, part: str, timeout: float
    ) -> dict[str, Any]: ...

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        body: dict[str, Any],
        /,
        *,
        part: str,
        timeout: float,
    ) -> dict[str, Any]: ...


class JobCondition:
    """One condition type on one Job; with `events`, final verdicts are announced there.

    Without `writes` the Job is only read: what would be patched is kept in this process, and shown
    as the API server would show it. `standing` is what was read or written last, nothing before the
    first answer. Every call raises KubeError; `Gone` also when another Job has taken the name.
    """

    def __init__(
        self,
        api: JobApi,
        namespace: str,
        name: str,
        condition_type: str,
        events: "KubeApi | None" = None,
        *,
        writes: bool = True,
    ) -> None:
        self._api, self._events, self._writes = api, events, writes
        self._kept: Mapping[str, Any] = {}
        self._namespace = namespace
        self.name = name
        self._type = condition_type
        self._uid = ""
        self._annotation = ""  # as last read
        self._details: str | None = None
        self.standing: Standing | None = None

    def expect(self, uid: str) -> None:
        """Say which Job is meant, as the Pod's label shows it; else it is the first one seen."""
        self._uid = uid or self._uid

    def read(self, *, timeout: float = 5.0) -> Standing:
        """Read what stands on the Job."""
        job = self._api.get("Job", self._namespace, self.name, part="status", timeout=timeout)
        return self._take(job if self._writes else patched(job, self._kept))

    def write(self, statement: Statement, *, timeout: float = 5.0) -> bool:
        """Write condition and annotations, if nobody has changed the Job since it was read.

        Details that the API refuses do not cost the verdict. Raises InvalidRequest where the answer
        does not show what was sent. Of a final statement its status and reason are enough: False
        says that something has changed or removed its annotation, which `standing` has all the
        same.
        """
        standing = self._read_already()
        annotation = encode_annotation(statement)
        patch = build_patch(standing, self._type, statement.report, annotation, statement.wall)
        report, details = statement.report, statement.report.details
        annotations = patch["metadata"]["annotations"]
        if details != self._details:
            annotations[details_key(self._type)] = details
        try:
            shown = self._send(patch, timeout)
        except (Forbidden, InvalidRequest):
            if details is None or details_key(self._type) not in annotations:
                raise
            # All annotations of a Job together may have 256 KiB, and a webhook may allow fewer.
            annotations[details_key(self._type)] = None
            shown = self._send(patch, timeout)
        kept = self._annotation == annotation
        as_sent = kept and shown.message == report.message
        if (shown.status, shown.reason) != (report.status, report.reason) or not (
            statement.final or as_sent
        ):
            raise InvalidRequest(
                f"PATCH Job {self.name}: accepted, but the response does not have the condition "
                "and annotation that were sent: does an admission webhook change them?"
            )
        meant = decode_note(annotation)
        if shown.note == meant:
            return True
        self.standing = replace(shown, note=meant)
        return False

    def annotate(self, member: str, shown: Mapping[str, Any], *, timeout: float = 5.0) -> Standing:
        """Add a member to the annotation that was read, and change nothing else.

        There must be one of ours.
        """
        standing = self._read_already()
        value = amend(self._annotation, member, shown)
        return self._send(annotation_patch(standing, self._type, value), timeout)

    def announce(self, statement: Statement, *, timeout: float, late: bool = False) -> None:
        """Create the Event of a final statement, or of a late result, where Events are wanted."""
        if self._events is None:
            return
        event = build_event(
            statement,
            namespace=self._namespace,
            job_name=self.name,
            job_uid=self._uid,
            condition_type=self._type,
            late=late,
        )
        self._events.create(NEW_EVENT, self._namespace, event, timeout=timeout)

    def _read_already(self) -> Standing:
        if self.standing is None:
            raise RuntimeError("the Job has to be read before it is written")
        return self.standing

    def _send(self, patch: dict[str, Any], timeout: float) -> Standing:
        if not self._writes:
            self._kept = patched(self._kept, patch)
            return self.read(timeout=timeout)
        return self._take(
            self._api.patch(
                "Job", self._namespace, self.name, patch, part="status", timeout=timeout
            )
        )

    def _take(self, job: dict[str, Any]) -> Standing:
        annotations = View(job).annotations
        self._annotation = text(annotations, annotation_key(self._type))
        self._details = text(annotations, details_key(self._type)) or None
        note = decode_note(self._annotation)
        standing = read_standing(job, self._type, note)
        if self._uid and standing.job.uid != self._uid:
            raise Gone(f"Job {self.name!r} was replaced by another Job")
        self._uid = standing.job.uid
        self.standing = standing
        return standing


def patched(job: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Job with a patch of ours: annotations merged by key and conditions by type."""
    metadata, status = section(job, "metadata"), section(job, "status")
    merged = {**section(metadata, "annotations"), **View(body).annotations}
    conditions = {text(c, "type"): c for c in items(status, "conditions")}
    for condition in View(body).conditions:
        kind = text(condition, "type")
        conditions[kind] = {**conditions.get(kind, {}), **condition}
    return {
        **job,
        "metadata": {
            **metadata,
            "annotations": {key: value for key, value in merged.items() if value is not None},
        },
        "status": {**status, "conditions": list(conditions.values())},
    }
