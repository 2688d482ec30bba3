"""The Job's status as a place for reports.

One GET to see what stands, one guarded PATCH to change it, and one Event for what is final.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from reporter.core.annotation import add_after, decode_note, encode_note
from reporter.core.condition import (
    Standing,
    Statement,
    annotation_key,
    annotation_patch,
    build_event,
    build_patch,
    details_key,
    read_standing,
)
from reporter.core.objects import section, text
from reporter.errors import Gone, InvalidRequest


class JobApi(Protocol):
    """The two calls this sink makes."""

    def get_job(self, namespace: str, name: str, *, timeout: float = ...) -> dict[str, Any]:
        """Return the Job. Raises KubeError."""

    def patch_job_status(
        self, namespace: str, name: str, body: dict[str, Any], *, timeout: float = ...
    ) -> dict[str, Any]:
        """Return the Job as patched. Raises KubeError."""


class EventApi(Protocol):
    """The call that announces a verdict."""

    def create_event(self, namespace: str, event: dict[str, Any], *, timeout: float = ...) -> None:
        """Create an Event. Raises KubeError."""


class JobCondition:
    """One condition type on one Job; with `events`, final verdicts are announced there.

    `standing` is what was read or written last, nothing before the first answer. Every call raises
    KubeError; `Gone` also when another Job has taken the name.
    """

    def __init__(
        self,
        api: JobApi,
        namespace: str,
        name: str,
        condition_type: str,
        events: EventApi | None = None,
    ) -> None:
        self._api, self._events = api, events
        self._namespace = namespace
        self._name = name
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
        return self._take(self._api.get_job(self._namespace, self._name, timeout=timeout))

    def write(self, statement: Statement, *, timeout: float = 5.0) -> Standing:
        """Write condition and annotations, if nobody has changed the Job since it was read.

        Details that the API refuses do not cost the verdict.
        """
        standing = self._read_already()
        annotation = encode_note(
            statement.attempt, statement.report, statement.evidence, final=statement.final
        )
        patch = build_patch(standing, self._type, statement.report, annotation, statement.wall)
        details = statement.report.details
        if details == self._details:
            return self._send(patch, timeout)
        annotations = patch["metadata"]["annotations"]
        annotations[details_key(self._type)] = details
        try:
            return self._send(patch, timeout)
        except InvalidRequest:
            if details is None:
                raise
            # All annotations of a Job together may have 256 KiB.
            annotations[details_key(self._type)] = None
            return self._send(patch, timeout)

    def annotate(self, after: Mapping[str, Any], *, timeout: float = 5.0) -> Standing:
        """Add what the adapter's end said later to the annotation that was read, and nothing else.

        There must be one of ours.
        """
        standing = self._read_already()
        value = add_after(self._annotation, after)
        return self._send(annotation_patch(standing, self._type, value), timeout)

    def announce(self, statement: Statement, *, timeout: float) -> None:
        """Create the Event that tells of a final statement, where Events are wanted."""
        if self._events is None:
            return
        event = build_event(
            statement.report,
            statement.attempt,
            statement.wall,
            namespace=self._namespace,
            job_name=self._name,
            job_uid=self._uid,
            condition_type=self._type,
        )
        self._events.create_event(self._namespace, event, timeout=timeout)

    def _read_already(self) -> Standing:
        if self.standing is None:
            raise RuntimeError("the Job has to be read before it is written")
        return self.standing

    def _send(self, patch: dict[str, Any], timeout: float) -> Standing:
        return self._take(
            self._api.patch_job_status(self._namespace, self._name, patch, timeout=timeout)
        )

    def _take(self, job: dict[str, Any]) -> Standing:
        annotations = section(job, "metadata", "annotations")
        self._annotation = text(annotations, annotation_key(self._type))
        self._details = text(annotations, details_key(self._type)) or None
        note = decode_note(self._annotation)
        standing = read_standing(job, self._type, note)
        if self._uid and standing.job.uid != self._uid:
            raise Gone(f"Job {self._name!r} was replaced by another Job")
        self._uid = standing.job.uid
        self.standing = standing
        return standing
