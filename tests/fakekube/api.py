"""Routing, rights, and the answers of everything but a watch stream."""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.fakekube.answers import ApiError, NotImitated
from tests.fakekube.events import GROUP, shown
from tests.fakekube.events import created as created_event
from tests.fakekube.jobstatus import STRATEGIC, patched
from tests.fakekube.journal import Entry
from tests.fakekube.kinds import BY_PLURAL, KINDS
from tests.fakekube.lists import listed
from tests.fakekube.podmeta import JSON_MERGE, annotated
from tests.fakekube.rbac import Tokens
from tests.fakekube.store import Store
from tests.fakekube.writes import created, deleted, log_of, reviewed

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[a-z0-9.]+)/v1)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?"
)
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
        return BY_PLURAL[self.resource].name


def target_of(path: str) -> Target | None:
    """Return what the path names, or None for one that does not exist."""
    found = _PATH.fullmatch(path)
    kind = None if found is None else BY_PLURAL.get(found["resource"])
    if found is None or kind is None:
        return None
    if (found["group"] or "") not in {kind.group} | ({GROUP} if kind.name == "Event" else set()):
        return None
    if found["namespace"] is not None and not kind.namespaced:
        return None
    group, namespace, resource, name, subresource = found.group(
        "group", "namespace", "resource", "name", "subresource"
    )
    if name is not None and namespace is None and kind.namespaced:
        return None
    name = None if name is None else unquote(name)
    return Target(group or "", namespace or "", resource, name, subresource)


def selected_name(entry: Entry) -> str | None:
    """Return the name of a `metadata.name=` field selector."""
    key, _, name = entry.query.get("fieldSelector", "").partition("=")
    return name.lstrip("=") if key == "metadata.name" and name else None


def authorize(entry: Entry, target: Target, tokens: Tokens) -> None:
    """Raise 401 or 403 unless the request may be made."""
    if target.resource == "selfsubjectaccessreviews" and entry.headers.get("authorization"):
        tokens.role_of(entry.headers["authorization"])
        return
    role = tokens.role_of(entry.headers.get("authorization"))
    verb = {"post": "create"}.get(entry.method.lower(), entry.method.lower())
    name = target.name
    if verb == "get" and name is None:
        verb = "watch" if entry.is_watch else "list"
        name = selected_name(entry)
    resource = "/".join(filter(None, (target.resource, target.subresource)))
    tokens.check(role, verb, target.group, resource, target.namespace, name)


def answer(
    entry: Entry, target: Target, store: Store, tokens: Tokens
) -> tuple[int, dict[str, Any] | bytes, list[str]]:
    """Return the status of a success, its object and warnings. Raises ApiError or NotImitated."""
    kind = KINDS[target.kind]
    if (entry.method, target.group, target.name) == ("POST", GROUP, None):
        made, warnings = _create_event(entry, target, store)
        return 201, made, warnings
    if target.group != GROUP:
        if entry.method == "POST" and target.kind.endswith("SubjectAccessReview"):
            role = tokens.role_of(entry.headers.get("authorization"))
            return 201, reviewed(entry, kind, role, tokens), []
        if (entry.method, target.name) == ("POST", None) and kind.name != "Event":
            return 201, created(entry, kind, target.namespace, store), []
        if entry.method == "DELETE" and target.name is not None and target.subresource is None:
            return 200, deleted(entry, kind, target.namespace, target.name, store), []
        if (entry.method, target.kind, target.subresource) == ("GET", "Pod", "log"):
            assert target.name is not None
            log = log_of(entry, target.namespace, target.name, store)
            return (204, b"", []) if log is None else (200, log, [])
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
    if entry.method == "PATCH" and target.kind in {"Pod", "ConfigMap"} and not target.subresource:
        return _annotate(entry, target, store)
    if (entry.method, target.resource, target.subresource) == ("PATCH", "jobs", "status"):
        return _patch(entry, target, store)
    raise NotImitated(f"{entry.method} {entry.path}")


def _create_event(entry: Entry, target: Target, store: Store) -> tuple[dict[str, Any], list[str]]:
    sort = entry.headers.get("content-type", "")
    validation = entry.query.get("fieldValidation", "Warn")
    made, warnings = created_event(entry.body, target.namespace, sort, validation)
    return shown(store.create("Event", made)), warnings


def _list(entry: Entry, target: Target, store: Store) -> dict[str, Any]:
    with store.changed:
        found = list(store.all(target.kind, target.namespace or None))
        return listed(entry, KINDS[target.kind], found, store)


def _check_patch(entry: Entry, imitated: str) -> None:
    sort = entry.headers.get("content-type", "").partition(";")[0].strip()
    if sort not in _PATCHES:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    if sort != imitated:
        raise NotImitated(sort)


def _annotate(entry: Entry, target: Target, store: Store) -> tuple[dict[str, Any], list[str]]:
    _check_patch(entry, JSON_MERGE)
    assert target.name is not None
    with store.changed:
        live = store.get(target.kind, target.namespace, target.name)
        new = annotated(live, entry.body)
        return store.replace(target.kind, new), []


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
