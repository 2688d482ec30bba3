"""Conditions on a Job, as patches say them and as the server shows them."""

from typing import Any

THEN = "2030-01-01T12:00:00Z"


def condition(kind: str = "Available", **fields: Any) -> dict[str, Any]:
    whole = {
        "type": kind,
        "status": "True",
        "reason": "AllGood",
        "message": "words",
        "lastProbeTime": THEN,
        "lastTransitionTime": THEN,
    }
    return whole | fields


def conditions(job: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = job["status"].get("conditions", [])
    return found


def types(job: dict[str, Any]) -> list[str]:
    return [found["type"] for found in conditions(job)]


def version(job: dict[str, Any]) -> str:
    return str(job["metadata"]["resourceVersion"])
