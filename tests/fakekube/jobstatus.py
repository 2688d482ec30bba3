"""PATCH of `jobs/status`: decoding, merging, and what the server checks and does not check."""

import copy
import json
import re
from typing import Any

from tests.fakekube.answers import ApiError, NotImitated, conflict, invalid, undecodable
from tests.fakekube.merge import merge_conditions, merge_maps

STRATEGIC = "application/strategic-merge-patch+json"
TIMES = ("lastProbeTime", "lastTransitionTime")
_CONDITION = {"type", "status", "reason", "message", *TIMES}
_STATUS = {
    "active",
    "completedIndexes",
    "completionTime",
    "conditions",
    "failed",
    "failedIndexes",
    "ready",
    "startTime",
    "succeeded",
    "terminating",
    "uncountedTerminatedPods",
}
_STORED_META = ("annotations", "labels", "finalizers", "ownerReferences")
_META = {
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
    *_STORED_META,
}
_TOP = {"apiVersion", "kind", "metadata", "spec", "status"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def patched(live: dict[str, Any], body: bytes, validation: str) -> tuple[dict[str, Any], list[str]]:
    """Return the Job after the patch, still of the old version, and warnings. Raises ApiError."""
    name = live["metadata"]["name"]
    text, patch = decode_patch(body)
    new = _merge(live, patch)
    complaints = _unknown(patch)
    if complaints and validation == "Strict":
        raise undecodable(text, "strict decoding error: " + ", ".join(complaints))
    _check_metadata(live, new, name)
    merged = copy.deepcopy(live)
    merged["status"] = new.get("status", {})
    for key in _STORED_META:
        merged["metadata"].pop(key, None)
        if new["metadata"].get(key):
            merged["metadata"][key] = new["metadata"][key]
    return merged, complaints if validation != "Ignore" else []


def decode_patch(body: bytes) -> tuple[str, dict[str, Any]]:
    """Return a patch as text and value. 400 for no JSON."""
    try:
        return body.decode(), decode_json(body)
    except ValueError as error:
        raise ApiError(400, "BadRequest", f"error decoding patch: {error}") from None


def decode_json(body: bytes) -> dict[str, Any]:
    """Return an object, or ValueError."""
    given = json.loads(body)
    if not isinstance(given, dict):
        raise ValueError("not an object")
    return given


def _merge(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    given = patch.get("status", {})
    rest = {key: value for key, value in given.items() if key != "conditions"}
    new = merge_maps(live, patch | {"status": rest})
    before = live.get("status", {}).get("conditions", [])
    after = merge_conditions(before, given.get("conditions", []))
    if after:
        new["status"]["conditions"] = [_stored(condition) for condition in after]
    return new


def _stored(given: dict[str, Any]) -> dict[str, Any]:
    """Return a condition in the order and with the nulls that the server stores."""
    times = {key: given.get(key) for key in TIMES}
    if not all(at is None or _TIME.fullmatch(at) for at in times.values()):
        raise NotImitated("a time but in whole seconds of UTC")
    texts = {key: given[key] for key in ("reason", "message") if given.get(key)}
    return {"type": given["type"], "status": given.get("status", "")} | texts | times


def _unknown(patch: dict[str, Any]) -> list[str]:
    found = [key for key in patch if key not in _TOP]
    found += [f"metadata.{key}" for key in patch.get("metadata") or {} if key not in _META]
    status = patch.get("status") or {}
    found += [f"status.{key}" for key in status if key not in _STATUS]
    for place, condition in enumerate(status.get("conditions") or []):
        extra = [key for key in condition if key not in _CONDITION]
        found += [f"status.conditions[{place}].{key}" for key in extra]
    return [f'unknown field "{path}"' for path in found]


def _check_metadata(live: dict[str, Any], new: dict[str, Any], name: str) -> None:
    before, after = live["metadata"], new["metadata"]
    if after.get("resourceVersion") not in {None, before["resourceVersion"]}:
        raise conflict("Job", name)
    if after.get("uid") not in {None, "", before["uid"]}:
        why = f'Invalid value: "{after["uid"]}": field is immutable'
        raise invalid("Job", name, "metadata.uid", why)
