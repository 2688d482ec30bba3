"""PATCH of a Pod's annotations with a JSON merge patch; other parts of a Pod are not imitated."""

import re
from typing import Any

from tests.fakekube.answers import NotImitated, invalid, undecodable
from tests.fakekube.jobstatus import decode_patch
from tests.fakekube.merge import merge_maps

JSON_MERGE = "application/merge-patch+json"
MAX_ANNOTATIONS = 256 * 1024

_KEY = re.compile(r"(?:[a-z0-9.-]+/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.IGNORECASE)


def annotated(live: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Return the Pod after the patch, still of the old version. Raises ApiError."""
    text, patch = decode_patch(body)
    meta = patch.get("metadata", {})
    if set(patch) - {"metadata"} or not isinstance(meta, dict) or set(meta) - {"annotations"}:
        raise NotImitated("a patch of more of a Pod than its annotations")
    new = merge_maps(live, patch)
    _check(new["metadata"].get("annotations", {}), text, live["metadata"]["name"])
    if not new["metadata"].get("annotations"):
        new["metadata"].pop("annotations", None)
    return new


def _check(annotations: Any, text: str, name: str) -> None:
    if not isinstance(annotations, dict) or not all(
        isinstance(value, str) for value in annotations.values()
    ):
        where = "ObjectMeta.metadata.annotations of type map[string]string"
        raise undecodable(text, f"json: cannot unmarshal into Go struct field {where}")
    for key in annotations:
        if not _KEY.fullmatch(key):
            why = f'Invalid value: "{key}": name part must consist of alphanumeric characters'
            raise invalid("Pod", name, "metadata.annotations", why)
    if sum(len(part.encode()) for item in annotations.items() for part in item) > MAX_ANNOTATIONS:
        why = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        raise invalid("Pod", name, "metadata.annotations", why, reason="FieldValueTooLong")
