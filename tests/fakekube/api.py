"""Routing, rights, and the answers of everything but a watch stream."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.fakekube.answers import ApiError, NotImitated
from tests.fakekube.events import GROUP, created, shown
from tests.fakekube.jobstatus import MAX_BODY, STRATEGIC, patched
from tests.fakekube.journal import Entry
from tests.fakekube.podmeta import JSON_MERGE, annotated
from tests.fakekube.rbac import Tokens
from tests.fakekube.store import API_VERSIONS, Store

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>batch|events\.k8s\.io)/v1)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>pods|jobs|events)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?"
)
_GROUPS = {"pods": {""}, "jobs": {"batch"}, "events": {"", GROUP}}
_PATCHES = {STRATEGIC, JSON_MERGE, "application/json-patch+json"}


@dataclass(frozen=True)
class Target:
    """What a path names; a namespace of "" means all."""

    group: str
    namespace: str
    resource: str
    name: str | None
    subresource: str | None

    @property
    def kind(self) -> str:
        return {"pods": "Pod", "jobs": "Job", "events": "Event"}[self.resource]


def target_of(path: str) -> Target | None:
    """Return what the path names, or None for one that does not exist."""
    found = _PATH.fullmatch(path)
    if found is None or (found["group"] or "") not in _GROUPS[found["resource"]]:
        return None
    group, namespace, resource, name, subresource = found.group(
        "group", "namespace", "resource", "name", "subresource"
    )
    if name is not None and namespace is None:
        return None
    return Target(group or "", namespace or "", resource, name, subresource)


def selected_name(entry: Entry) -> str | None:
    """Return the name of a `metadata.name=` field selector."""
    key, _, name = entry.query.get("fieldSelector", "").partition("=")
    return name.lstrip("=") if key == "metadata.name" and name else None


def authorize(entry: Entry, target: Target, tokens: Tokens) -> None:
    """Raise 401 or 403 unless the request may be made."""
    role = tokens.role_of(entry.headers.get("authorization"))
    verb = {"post": "create"}.get(entry.method.lower(), entry.method.lower())
    name = target.name
    if verb == "get" and name is None:
        verb = "watch" if entry.is_watch else "list"
        name = selected_name(entry)
    resource = "/".join(filter(None, (target.resource, target.subresource)))
    tokens.check(role, verb, target.group, resource, target.namespace, name)


def answer(entry: Entry, target: Target, store: Store) -> tuple[int, dict[str, Any], list[str]]:
    """Return the status of a success, its object and warnings. Raises ApiError or NotImitated."""
    if (entry.method, target.group, target.name) == ("POST", GROUP, None):
        made, warnings = _create_event(entry, target, store)
        return 201, made, warnings
    found, warnings = _found_or_patched(entry, target, store)
    return 200, found, warnings


def _found_or_patched(
    entry: Entry, target: Target, store: Store
) -> tuple[dict[str, Any], list[str]]:
    if target.group == GROUP:
        raise NotImitated(f"{entry.method} {entry.path}")
    if entry.method == "GET" and target.name is not None and target.subresource in {None, "status"}:
        return store.get(target.kind, target.namespace, target.name), []
    if entry.method == "GET" and target.name is None:
        return _list(entry, target, store), []
    if (entry.method, target.resource, target.subresource) == ("PATCH", "pods", None):
        return _annotate(entry, target, store)
    if (entry.method, target.resource, target.subresource) == ("PATCH", "jobs", "status"):
        return _patch(entry, target, store)
    raise NotImitated(f"{entry.method} {entry.path}")


def _create_event(entry: Entry, target: Target, store: Store) -> tuple[dict[str, Any], list[str]]:
    sort = entry.headers.get("content-type", "")
    validation = entry.query.get("fieldValidation", "Warn")
    made, warnings = created(entry.body, target.namespace, sort, validation)
    return shown(store.create("Event", made)), warnings


def _list(entry: Entry, target: Target, store: Store) -> dict[str, Any]:
    wanted, labels = _selected_fields(entry), selected_labels(entry)
    with store.changed:
        found = sorted(
            store.find(target.kind, target.namespace or None),
            key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"]),
        )
        items = [
            # What the elements are is said once, by the list.
            {key: value for key, value in one.items() if key not in {"kind", "apiVersion"}}
            for one in found
            if all(_field(one, path) == value for path, value in wanted.items())
            and labels.items() <= one["metadata"].get("labels", {}).items()
        ]
        meta = {"resourceVersion": str(store.version)}
    limit, begin = int(entry.query.get("limit") or 0), int(entry.query.get("continue") or 0)
    items = items[begin:]
    if limit:
        left = len(items) - limit
        if left > 0:
            meta |= {"continue": str(begin + limit), "remainingItemCount": left}  # type: ignore[dict-item]
        items = items[:limit]
    version = API_VERSIONS[target.kind]
    return {"kind": f"{target.kind}List", "apiVersion": version, "metadata": meta, "items": items}


def _selected_fields(entry: Entry) -> dict[str, str]:
    found = {}
    for term in filter(None, entry.query.get("fieldSelector", "").split(",")):
        path, _, value = term.partition("=")
        found[path] = value.lstrip("=")
    return found


def _field(found: Any, path: str) -> Any:
    for key in path.split("."):
        found = found.get(key, {})
    return found


def selected_labels(entry: Entry) -> dict[str, str]:
    """Return the labels that a selector asks for."""
    terms = filter(None, entry.query.get("labelSelector", "").split(","))
    found = {}
    for term in terms:
        key, same, value = term.partition("=")
        if not same or key.endswith("!"):
            raise NotImitated(f"the label selector {term!r}")
        found[key] = value.removeprefix("=")
    return found


def _check_patch(entry: Entry, imitated: str) -> None:
    sort = entry.headers.get("content-type", "").partition(";")[0].strip()
    if sort not in _PATCHES:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    if sort != imitated:
        raise NotImitated(sort)
    if len(entry.body) > MAX_BODY:
        raise ApiError(
            413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}"
        )


def _annotate(entry: Entry, target: Target, store: Store) -> tuple[dict[str, Any], list[str]]:
    _check_patch(entry, JSON_MERGE)
    assert target.name is not None
    with store.changed:
        live = store.get("Pod", target.namespace, target.name)
        new = annotated(live, entry.body, entry.query.get("fieldValidation", "Warn"))
        return store.replace("Pod", new), []


def _patch(entry: Entry, target: Target, store: Store) -> tuple[dict[str, Any], list[str]]:
    _check_patch(entry, STRATEGIC)
    assert target.name is not None
    with store.changed:
        live = store.get("Job", target.namespace, target.name)
        new, warnings = patched(live, entry.body, entry.query.get("fieldValidation", "Warn"))
        return store.replace("Job", new), warnings


def encode(found: Any) -> bytes:
    """Return the JSON the server sends."""
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
