"""The Kubernetes Event that tells people of a final verdict: `kubectl describe job` shows it."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from reporter.core.condition import Attempt
from reporter.core.rows import TRUE, Report

REPORTER = "status-reporter"
"""Who an Event of ours is from."""
_JOB_NAME_LIMIT = 200  # characters; with the hash a name stays far below the API's 253
_INSTANCE_LIMIT = 128  # the API's own


def build_event(
    report: Report,
    attempt: Attempt,
    now: float,
    *,
    namespace: str,
    job_name: str,
    job_uid: str,
    condition_type: str,
) -> dict[str, Any]:
    """Build the Event of events.k8s.io/v1 for a final report; `now` in epoch seconds.

    An attempt has one final verdict per type, so the name follows from both, and an Event that is
    sent again already exists. Reason and message of a report are within the API's limits.
    """
    whose = f"{attempt.pod_uid or attempt.pod}/{condition_type}"
    digest = hashlib.sha256(whose.encode()).hexdigest()[:16]
    at = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
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
