"""PATCH of `jobs/status`: decoding, merging, and what the server checks and does not check."""

import copy
import json
import re
from datetime import UTC, datetime
from typing import Any

from tests.fakekube.answers import ApiError, conflict, internal, invalid, undecodable
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
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_TERMINAL = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")


def patched(live: dict[str, Any], body: bytes, validation: str) -> tuple[dict[str, Any], list[str]]:
    """Return the Job after the patch, still of the old version, and warnings. Raises ApiError."""
    name = live["metadata"]["name"]
    text, patch, complaints = decode_patch(body)
    new = _merge(live, patch)
    try:
        _normalise(new)
    except (TypeError, ValueError) as error:
        raise undecodable(text, str(error)) from None
    complaints += _unknown(patch)
    if complaints and validation == "Strict":
        raise undecodable(text, "strict decoding error: " + ", ".join(complaints))
    _check_metadata(live, new, name)
    _check_terminal(live, new, name)
    merged = copy.deepcopy(live)
    merged["status"] = new.get("status", {})
    for key in _STORED_META:
        merged["metadata"].pop(key, None)
        if new["metadata"].get(key):
            merged["metadata"][key] = new["metadata"][key]
    return merged, complaints if validation != "Ignore" else []


def decode_patch(body: bytes) -> tuple[str, dict[str, Any], list[str]]:
    """Return a patch as text and value, and complaints about doubled fields. 400 for no JSON."""
    try:
        return decode_json(body)
    except ValueError as error:
        raise ApiError(400, "BadRequest", f"error decoding patch: {error}") from None


def decode_json(body: bytes) -> tuple[str, dict[str, Any], list[str]]:
    """Return an object as text and value, and complaints about doubled fields, or ValueError."""
    duplicates: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in found]
        duplicates.extend(
            f'duplicate field "{key}"' for key in dict.fromkeys(keys) if keys.count(key) > 1
        )
        return dict(found)

    def no_constant(constant: str) -> None:
        raise ValueError(f"invalid character in {constant}")

    text = body.decode(errors="replace")
    patch = json.loads(text, object_pairs_hook=pairs, parse_constant=no_constant)
    if not isinstance(patch, dict):
        raise ValueError("not an object")
    # A lone surrogate cannot be stored.
    return (
        text,
        json.loads(re.sub("[\ud800-\udfff]", "\ufffd", json.dumps(patch, ensure_ascii=False))),
        duplicates,
    )


def _merge(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    given = patch.get("status")
    if not isinstance(given, dict) or not isinstance(given.get("conditions"), list):
        return merge_maps(live, patch)
    rest = {key: value for key, value in given.items() if key != "conditions"}
    new = merge_maps(live, patch | {"status": rest})
    before = live.get("status", {}).get("conditions", [])
    new["status"]["conditions"] = merge_conditions(before, given["conditions"])
    return new


def _normalise(new: dict[str, Any]) -> None:
    """Bring the merged Job into stored form; TypeError or ValueError where it is none."""
    for key in ("metadata", "status"):
        if not isinstance(new.setdefault(key, {}), dict):
            raise TypeError(f"json: cannot unmarshal into {key}")
    annotations = new["metadata"].get("annotations", {})
    if not all(isinstance(value, str) for value in annotations.values()):
        raise TypeError(
            "json: cannot unmarshal into Go struct field metadata.annotations of type string"
        )
    conditions = new["status"].get("conditions", [])
    new["status"]["conditions"] = [_condition(condition) for condition in conditions]
    if not conditions:
        del new["status"]["conditions"]


def _condition(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": given.get("type", ""), "status": given.get("status", "")}
    for key in ("reason", "message"):
        if given.get(key, "") != "":
            found[key] = given[key]
    for key, value in found.items():
        if not isinstance(value, str):
            raise TypeError(
                f"json: cannot unmarshal into Go struct field JobCondition.{key} of type string"
            )
    return found | {key: _time(given.get(key)) for key in TIMES}


def _time(given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not _RFC3339.fullmatch(given):
        raise ValueError(f'parsing time "{given}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    return datetime.fromisoformat(given).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _unknown(patch: dict[str, Any]) -> list[str]:
    found = [key for key in patch if key not in _TOP]
    found += [f"metadata.{key}" for key in patch.get("metadata") or {} if key not in _META]
    status = patch.get("status") or {}
    found += [f"status.{key}" for key in status if key not in _STATUS]
    for place, condition in enumerate(status.get("conditions") or []):
        extra = [key for key in condition if key not in _CONDITION and key != "$patch"]
        found += [f"status.conditions[{place}].{key}" for key in extra]
    return [f'unknown field "{path}"' for path in found]


def _check_metadata(live: dict[str, Any], new: dict[str, Any], name: str) -> None:
    before, after = live["metadata"], new["metadata"]
    if after.get("name") != name:
        raise ApiError(
            400,
            "BadRequest",
            f"the name of the object ({after.get('name')}) does not match the name on the URL "
            f"({name})",
        )
    version = after.get("resourceVersion") or before["resourceVersion"]
    if not version.isdigit():
        raise internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version != before["resourceVersion"]:
        raise conflict("Job", name)
    if after.get("uid") not in {None, "", before["uid"]}:
        why = f'Invalid value: "{after["uid"]}": field is immutable'
        raise invalid("Job", name, "metadata.uid", why)


def _check_terminal(live: dict[str, Any], new: dict[str, Any], name: str) -> None:
    before, after = _true_types(live), _true_types(new)
    for kind in _TERMINAL:
        if kind in before and kind not in after:
            why = f"Invalid value: cannot disable {kind}=True condition"
            raise invalid("Job", name, "status.conditions", why)
        # Only the Job controller may end a Job like that, after the target condition.
        if kind in {"Complete", "Failed"} and kind in after and kind not in before:
            why = f"Invalid value: cannot set {kind}=True condition without its target condition"
            raise invalid("Job", name, "status.conditions", why)


def _true_types(job: dict[str, Any]) -> set[str]:
    conditions = job.get("status", {}).get("conditions", [])
    return {condition["type"] for condition in conditions if condition["status"] == "True"}
