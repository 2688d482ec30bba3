"""A Job, its newest Pod and that Pod's node as the API shows them, and what is decided of them."""

from __future__ import annotations

from typing import Any

from reporter.common.objects import epoch
from reporter.reap.decide import NewestPod, NodeLook, Reap, Scene, Why, conditions_owed, reap
from reporter.verdict import rows
from reporter.verdict.condition import (
    Attempt,
    Statement,
    decode_note,
    encode_annotation,
    read_standing,
)
from reporter.verdict.facts import ResultPayload
from tests.fakekube import make_job, make_pod, terminated, waiting

ENDED = "2030-01-01T12:10:00Z"
NOW = (epoch(ENDED) or 0.0) + 60.0
SETTLE = 60.0
KEY = "status-reporter.io/Available"
Object = dict[str, Any]
IMAGE = waiting("ErrImagePull", "not found")
KILLED = terminated(137)
DELETED_BY_GC = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


def ended(kind: str = "Failed", reason: str = "BackoffLimitExceeded") -> Object:
    return {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": ENDED}


def job(*conditions: Object, **spec: Any) -> Object:
    """A Job that began at 12:00."""
    made = make_job()
    made["spec"] |= spec
    made["status"]["conditions"] = list(conditions)
    return made


def said(
    made: Object,
    report: rows.Report,
    *,
    final: bool = False,
    pod: str = "validate-x7k2p",
    created: str = "2030-01-01T12:00:00Z",
    index: int | None = None,
    **evidence: Any,
) -> Object:
    """The Job with what a reporter has written on it."""
    uid = "22222222-2222-4222-8222-222222222222" if pod == "validate-x7k2p" else "another"
    at = epoch(created) or 0.0
    note = encode_annotation(
        Statement(report, final, Attempt(pod, uid, at, at, index=index), evidence, 0.0)
    )
    made["metadata"]["annotations"] = {KEY: note}
    made["status"]["conditions"].append(
        {
            "type": "Available",
            "status": report.status,
            "reason": report.reason,
            "message": report.message,
            "lastTransitionTime": ENDED,
        }
    )
    return made


RUNS = rows.running(None, None)
RESULT = rows.result(ResultPayload(True, "AllChecked", "12 of 12"))


def pod(
    made: Object | None = None,
    *,
    reporter: Object | None = None,
    deleted: str = "",
    conditions: tuple[Object, ...] = (),
    **shown: Any,
) -> Object:
    """The Job's Pod, whose reporter is in that state (running unless said)."""
    found = make_pod(made or make_job(), **shown)
    if reporter is not None:
        kind = "containerStatuses" if shown.get("form") == "classic" else "initContainerStatuses"
        own = next(c for c in found["status"][kind] if c["name"] == "status-reporter")
        own["state"] = reporter
    found["status"]["conditions"] += conditions
    if deleted:
        found["metadata"] |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    return found


def judged(
    made: Object, shown: Object | None, node: NodeLook = NodeLook.ALIVE, now: float = NOW
) -> Reap | Why:
    """Decide as the shell does."""
    (owed,) = conditions_owed(made)
    note = decode_note(made["metadata"].get("annotations", {}).get(KEY, ""))
    standing = read_standing(made, owed.type, note)
    pod = None if shown is None else NewestPod(shown, owed)
    return reap(Scene(made, owed, standing, pod, node, now, SETTLE))
