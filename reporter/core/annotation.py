"""The annotation beside the condition: whose report it is, whether it is final, and the evidence.

Published as `schemas/verdict.v1.schema.json`. What is read back is only what decides who may write
next; an annotation that does not fit is treated as none.
"""

import json
from collections.abc import Mapping
from typing import Any

from reporter.core.condition import Attempt, Note
from reporter.core.objects import epoch, json_object, moment, number, section, stamp, text
from reporter.core.rows import Report

SIZE_LIMIT = 4096  # bytes


def encode_note(
    attempt: Attempt,
    report: Report,
    evidence: Mapping[str, Any],
    *,
    final: bool,
) -> str:
    """Return the annotation's value, at most 4 KiB.

    Evidence that does not fit is left out, and that is said.
    """
    shown = {
        "version": 1,
        "final": final,
        # The condition's own: what exports annotations and no conditions needs them here.
        "status": report.status,
        "reason": report.reason,
        "rule": report.row,
        "attempt": _known(
            {
                "pod": attempt.pod,
                "podUID": attempt.pod_uid,
                "podCreatedAt": _at(attempt.created_at),
                "waitingSince": stamp(attempt.waiting_since_at),
                "adapterStartedAt": _at(attempt.first_started_at),
                "adapterRestarts": attempt.restarts,
            }
        ),
        "evidence": dict(evidence),
    }
    return _fitting(shown)


def add_after(value: str, after: Mapping[str, Any]) -> str:
    """Return an annotation that `decode_note` can read, with what the adapter's end said later."""
    return _fitting(json.loads(value) | {"after": dict(after)})


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
        ),
        final=final,
        row=text(shown, "rule"),
        ended=text(section(shown, "evidence", "adapter"), "state") == "terminated",
        contradicted="after" in shown,
    )


def _fitting(shown: dict[str, Any]) -> str:
    value = _compact(shown)
    if len(value.encode(errors="replace")) > SIZE_LIMIT:
        seen = text(section(shown, "evidence"), "observedAt")
        value = _compact(shown | {"evidence": {"observedAt": seen, "omitted": True}})
    return value


def _known(shown: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shown.items() if value not in (None, "")}


def _at(at: float | None) -> str | None:
    return None if at is None else stamp(at)


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
