"""Jobs with verdicts on them, as reporters write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from tests.fakekube import make_job


class Report(Protocol):
    """What a condition says, and by which row of the contract."""

    @property
    def row(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...


class Verdict(NamedTuple):
    """A report in published words."""

    row: str
    status: str
    reason: str
    message: str


def result(success: bool, reason: str, message: str = "") -> Verdict:
    """What an adapter's file says."""
    return Verdict("R", "True" if success else "False", reason, message)


TIMEOUT = Verdict("T", "False", "AdapterTimeout", "Adapter did not produce results within 5m0s")
OUT_OF_MEMORY = Verdict(
    *("O", "False", "AdapterOOMKilled"),
    "Adapter container was killed due to out of memory (OOMKilled)",
)
RUNNING = Verdict("A", "Unknown", "AdapterRunning", "Adapter container cannot be observed")
NOT_PULLED = Verdict("W1", "False", "AdapterImagePullFailed", "ErrImagePull: not found")
INTERRUPTED = Verdict(
    *("N", "Unknown", "AdapterInterrupted"),
    "The Pod was deleted before a verdict was known; adapter container cannot be observed",
)


def note(report: Report, pod: str, *, final: bool = True, **members: Any) -> str:
    """Return the annotation that a reporter writes with this report."""
    attempt = {
        "pod": pod,
        "podUID": "uid",
        "podCreatedAt": "2030-03-17T17:46:40Z",
        "waitingSince": "2030-03-17T17:46:40Z",
        "adapterRestarts": 0,
    }
    shown = {
        "version": 1,
        "final": final,
        "status": report.status,
        "reason": report.reason,
        "rule": report.row,
        "attempt": attempt,
        "evidence": {},
    }
    return json.dumps(shown | members, separators=(",", ":"))


def with_verdicts(
    *reports: Report,
    final: bool = True,
    attempt: Mapping[str, Any] | None = None,
    since: str = "2020-01-01T12:00:30Z",
    details: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    late: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a Job with these reports, each under a type of its own, unchanged `since` then.

    `attempt`, `details` (its evidence), `after` and `late` are the annotations', `fields` the
    Job's.
    """
    made = make_job(**fields)
    made["spec"] |= spec or {}
    made["status"] |= status or {}
    conditions = list(made["status"].get("conditions", []))
    given = {"attempt": attempt, "evidence": details, "after": after, "late": late}
    members = {name: shown for name, shown in given.items() if shown}
    for number, report in enumerate(reports):
        kind = f"Other{number}" if number else "Available"
        pod = f"{made['metadata']['name']}-x7k2p"
        annotations = made["metadata"].setdefault("annotations", {})
        annotations[f"status-reporter.io/{kind}"] = note(report, pod, final=final, **members)
        conditions.append(
            {
                "type": kind,
                "status": report.status,
                "reason": report.reason,
                "message": report.message,
                "lastTransitionTime": since,
            }
        )
    made["status"]["conditions"] = conditions
    return made
