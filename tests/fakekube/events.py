"""POST of an Event to events.k8s.io/v1: what the server checks, and the form it is stored in.

An Event has two faces: it is written as events.k8s.io/v1 and listed as v1, under other names.
"""

import re
from typing import Any

from tests.fakekube.answers import ApiError, NotImitated
from tests.fakekube.jobstatus import decode_json

Object = dict[str, Any]

GROUP = "events.k8s.io"
_STORED = {
    "regarding": "involvedObject",
    "related": "related",
    "reason": "reason",
    "note": "message",
    "type": "type",
    "eventTime": "eventTime",
    "action": "action",
    "reportingController": "reportingComponent",
    "reportingInstance": "reportingInstance",
}
_REFERENCES = {"regarding", "related"}
_OTHERS = {
    "series",
    "deprecatedCount",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
    "deprecatedSource",
}
_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "note": 1024}
_SHOWN = {"note": "message", "regarding": "involvedObject"}
_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_QUALIFIED = re.compile(rf"([a-z0-9.-]+/)?{_PART}")


def created(
    body: bytes, namespace: str, content_type: str, validation: str
) -> tuple[Object, list[str]]:
    """Return the Event as it is stored, and warnings. Raises ApiError."""
    if content_type.partition(";")[0].strip() not in {"", "application/json"}:
        why = "the body of the request was in an unknown format - accepted media types include: "
        media = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        raise ApiError(415, "UnsupportedMediaType", why + media)
    try:
        given = decode_json(body)
    except ValueError as error:
        text = f"the object provided is unrecognized (must be of type Event): {error}"
        raise ApiError(400, "BadRequest", text) from None
    complaints = _decode(given)
    if complaints and validation == "Strict":
        raise _no_event("strict decoding error: " + ", ".join(complaints))
    meta = given.get("metadata", {})
    if meta.setdefault("namespace", namespace) != namespace:
        why = "the namespace of the provided object does not match the namespace sent on the"
        raise ApiError(400, "BadRequest", f"{why} request")
    _validate(given, meta.get("name", ""), namespace)
    kept = {_STORED[key]: value for key, value in given.items() if key in _STORED}
    stored = {"metadata": meta, "source": {}, "firstTimestamp": None, "lastTimestamp": None} | kept
    return stored, complaints if validation != "Ignore" else []


def shown(stored: Object) -> Object:
    """Return a stored Event as events.k8s.io/v1 shows it."""
    found = {key: stored[name] for key, name in _STORED.items() if name in stored}
    old = {
        "deprecatedSource": stored["source"],
        "deprecatedFirstTimestamp": stored["firstTimestamp"],
        "deprecatedLastTimestamp": stored["lastTimestamp"],
    }
    head = {"kind": "Event", "apiVersion": f"{GROUP}/v1", "metadata": stored["metadata"]}
    return {**head, **found, **old}


def _decode(given: Object) -> list[str]:
    """Return complaints about unknown fields; 400 for what makes no Event."""
    if given.get("kind", "Event") != "Event" or given.get("apiVersion", "") not in {
        "",
        f"{GROUP}/v1",
    }:
        raise _no_event(f'no kind "{given["kind"]}" is registered for version "{GROUP}/v1"')
    if others := _OTHERS & set(given):
        raise NotImitated(f"an Event with {sorted(others)}")
    for key in _STORED:
        sort = dict if key in _REFERENCES else str
        if not isinstance(given.get(key, sort()), sort):
            raise _no_event(f"json: cannot unmarshal into Go struct field Event.{key}")
    at = given.get("eventTime")
    if at is not None and not _MICRO.fullmatch(at):
        raise _no_event(f'parsing time "{at}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse')
    known = {"kind", "apiVersion", "metadata", *_STORED}
    return [f'unknown field "{key}"' for key in given if key not in known]


def _validate(given: Object, name: str, namespace: str) -> None:
    causes = []
    if not name:
        causes.append(("metadata.name", "Required value: name or generateName is required"))
    elif not _NAME.fullmatch(name):
        why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
        causes.append(("metadata.name", f'Invalid value: "{name}": {why}'))
    of = given.get("regarding", {}).get("namespace", "")
    if not of and namespace not in {"default", "kube-system"}:
        why = 'Invalid value: "": does not match event.namespace'
        causes.append(("involvedObject.namespace", why))
    controller = given.get("reportingController", "")
    if not _QUALIFIED.fullmatch(controller):
        why = "name part must consist of alphanumeric characters, '-', '_' or '.'"
        causes.append(("reportingController", f'Invalid value: "{controller}": {why}'))
    for key in ("eventTime", "reportingController", "reportingInstance", "action", "reason"):
        if not given.get(key):
            causes.append((key, "Required value"))
    for key, limit in _LIMITS.items():
        if len(given.get(key, "").encode()) > limit:
            why = f'Invalid value: "": can have at most {limit} characters'
            causes.append((_SHOWN.get(key, key), why))
    if given.get("type") not in {"Normal", "Warning"}:
        why = f'Invalid value: "": has invalid value: {given.get("type", "")}'
        causes.append(("type", why))
    if causes:
        raise _invalid(name, causes)


def _invalid(name: str, causes: list[tuple[str, str]]) -> ApiError:
    words = [f"{field}: {why}" for field, why in causes]
    text = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
    listed = [
        {
            "reason": "FieldValueRequired" if why.startswith("Required") else "FieldValueInvalid",
            "message": why,
            "field": field,
        }
        for field, why in causes
    ]
    named = {"name": name} if name else {}
    message = f'Event "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, **named, kind="Event", causes=listed)


def _no_event(why: str) -> ApiError:
    return ApiError(400, "BadRequest", f'Event in version "v1" cannot be handled as a Event: {why}')
