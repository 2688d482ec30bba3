"""What the server says that it offers, and resources of other servers behind it.

`Offered` holds resources beyond `kinds.py`, as other API servers behind the same address have
them, and groups whose server does not answer.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakekube.answers import ApiError
from tests.fakekube.journal import Entry
from tests.fakekube.kinds import KINDS, Kind
from tests.fakekube.lists import listed
from tests.fakekube.rbac import Tokens
from tests.fakekube.store import Object, Store

AGGREGATED: Final = "APIGroupDiscoveryList"
_PATH = re.compile(r"/apis/([^/]+)/([^/]+)(?:/namespaces/([^/]+))?/([^/]+)")
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_READ = ("get", "list")


@dataclass
class Offered:
    """What there is beside the fake's own kinds."""

    others: dict[tuple[str, str, str], tuple[Kind, list[Object]]] = field(default_factory=dict)
    """Kind and objects by group, version and plural."""
    lasting: set[str] = field(default_factory=set)
    """Groups whose objects can be created and deleted, as those of custom resources."""
    broken: dict[str, str] = field(default_factory=dict)
    """Groups whose server does not answer, with their version."""

    def serve(self, kind: Kind, objects: list[Object]) -> None:
        """Offer one more resource, only to be read unless its group is `lasting`."""
        self.others[kind.group, kind.version, kind.plural] = kind, objects


def unavailable() -> ApiError:
    """503, as the aggregator of API servers answers for one that is away."""
    return ApiError(
        503, "ServiceUnavailable", "the server is currently unable to handle the request"
    )


def said(entry: Entry, offered: Offered) -> dict[str, Any] | None:
    """Return the discovery document at this path; nothing for another path."""
    if entry.method != "GET":
        return None
    if entry.path not in {"/api", "/apis"}:
        return None
    kinds = [*KINDS.values(), *(kind for kind, _ in offered.others.values())]
    groups = sorted({kind.group for kind in kinds if kind.group} | set(offered.broken))
    if AGGREGATED in entry.headers.get("accept", ""):
        names = [""] if entry.path == "/api" else groups
        return {
            "kind": AGGREGATED,
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [_group(name, kinds, offered) for name in names],
        }
    if entry.path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_versions(name, kinds, offered) for name in groups],
    }


def read(entry: Entry, offered: Offered, store: Store, tokens: Tokens) -> dict[str, Any] | None:
    """Return the list of another server's objects; nothing for a path that is none of those."""
    found = _PATH.fullmatch(entry.path)
    if found is None or entry.method != "GET":
        return None
    group, version, namespace, plural = found.groups()
    if group in offered.broken:
        raise unavailable()
    other = offered.others.get((group, version, plural))
    if other is None:
        return None
    role = tokens.role_of(entry.headers.get("authorization"))
    tokens.check(role, "list", group, plural, namespace or "", None)
    kind, objects = other
    with store.changed:
        fitting = [
            one for one in objects if namespace in {None, one["metadata"].get("namespace", "")}
        ]
        return listed(entry, kind, fitting, store)


def _group(name: str, kinds: list[Kind], offered: Offered) -> dict[str, Any]:
    metadata = {"name": name} if name else {}
    if name in offered.broken:
        stale = {"version": offered.broken[name], "freshness": "Stale"}
        return {"metadata": {**metadata, "creationTimestamp": None}, "versions": [stale]}
    versions = [
        {
            "version": version,
            "resources": [_described(kind, offered) for kind in kinds if _is(kind, name, version)],
            "freshness": "Current",
        }
        for version in _known(name, kinds)
    ]
    return {"metadata": {**metadata, "creationTimestamp": None}, "versions": versions}


def _described(kind: Kind, offered: Offered) -> dict[str, Any]:
    kinds = {"group": kind.group, "version": kind.version, "kind": kind.name}
    return {
        "resource": kind.plural,
        "responseKind": kinds,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.name.lower(),
        "verbs": list(verbs(kind, offered)),
    }


def verbs(kind: Kind, offered: Offered) -> tuple[str, ...]:
    """Return what can be done with it."""
    if kind.name.endswith("SubjectAccessReview"):
        return ("create",)
    own = KINDS.get(kind.name) == kind or kind.group in offered.lasting
    return _VERBS if own else _READ


def _versions(name: str, kinds: list[Kind], offered: Offered) -> dict[str, Any]:
    known = _known(name, kinds) or [offered.broken[name]]
    versions = [{"groupVersion": f"{name}/{each}", "version": each} for each in known]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _is(kind: Kind, group: str, version: str) -> bool:
    return (kind.group, kind.version) == (group, version)


def _known(group: str, kinds: list[Kind]) -> list[str]:
    """Return the versions of a group, the newest first."""
    return sorted({kind.version for kind in kinds if kind.group == group}, key=len)
