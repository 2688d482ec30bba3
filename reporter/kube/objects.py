"""Any kind of object: create, get, delete, list, watch; and one request at a time.

A kind that a caller names (`"Job"`) is found in `KINDS`; `namespace` None means all of them
in a list or a watch, and is right for kinds that have no namespace.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reporter.errors import TooLarge, Unavailable
from reporter.kube.answers import MAX_ALONE, MAX_OBJECT, decode_json
from reporter.kube.client import JSON, Client, Request, Requests
from reporter.kube.resources import Resource
from reporter.kube.stream import LogStream, Watch

FIELD_MANAGER = "status-reporter"
SILENCE = 135.0
"""Seconds without a word after which a watch counts as dead.

The server sends a bookmark every 60 s; where no Pod of the cluster changes one of two stays away.
"""
PAGE = 100  # objects asked for at once where there may be thousands
STRICT = "Strict"
"""Unknown fields are refused."""
WARN = "Warn"
"""Unknown fields are dropped, as kubectl's old clients and Sonobuoy do."""

_LOG = "/api/v1/namespaces/{namespace}/pods/{name}/log"


def _kind(kind: str, group: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(group, "v1", plural, kind, namespaced)


_RBAC = "rbac.authorization.k8s.io"

KINDS = {
    each.kind: each
    for each in (
        _kind("ConfigMap", "", "configmaps"),
        _kind("Event", "", "events"),
        _kind("Namespace", "", "namespaces", namespaced=False),
        _kind("Node", "", "nodes", namespaced=False),
        _kind("PersistentVolumeClaim", "", "persistentvolumeclaims"),
        _kind("Pod", "", "pods"),
        _kind("Secret", "", "secrets"),
        _kind("Service", "", "services"),
        _kind("ServiceAccount", "", "serviceaccounts"),
        _kind("Deployment", "apps", "deployments"),
        _kind(
            "SelfSubjectAccessReview",
            "authorization.k8s.io",
            "selfsubjectaccessreviews",
            namespaced=False,
        ),
        _kind("LocalSubjectAccessReview", "authorization.k8s.io", "localsubjectaccessreviews"),
        _kind("CronJob", "batch", "cronjobs"),
        _kind("Job", "batch", "jobs"),
        _kind("NetworkPolicy", "networking.k8s.io", "networkpolicies"),
        _kind("ClusterRole", _RBAC, "clusterroles", namespaced=False),
        _kind("ClusterRoleBinding", _RBAC, "clusterrolebindings", namespaced=False),
        _kind("Role", _RBAC, "roles"),
        _kind("RoleBinding", _RBAC, "rolebindings"),
    )
}


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. `more` asks for the next one; empty after the last.

    `limit` is how many objects to ask for with it: fewer where they are large.
    """

    items: list[dict[str, Any]]
    resource_version: str
    more: str
    limit: int = PAGE


class Objects:
    """One API server. Threads may use it at the same time.

    `timeout` of a request bounds all of it in seconds (connect and handshake at most 3 s). Every
    method raises NotFound, Forbidden, Unauthorized, InvalidRequest or Unavailable; what writes also
    Conflict, a patch Gone.
    """

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._requests = client, Requests(client, clock)

    @property
    def server_time(self) -> float | None:
        """The API server's clock when it last answered, in epoch seconds; None if it does not say.

        It is that of the times in its objects; ours may be another.
        """
        return self._requests.server_time

    def server_version(self, *, timeout: float = 5.0) -> str:
        """Return the API server's version, as `v1.34.1`. Everybody may ask for it."""
        found = decode_json(self._requests.answer(Request("GET", "/version", {}, {}), timeout))
        version = found.get("gitVersion")
        if not isinstance(version, str):
            raise Unavailable("the response is not a version")
        return version

    def create(
        self,
        kind: str,
        namespace: str | None,
        body: Mapping[str, Any],
        *,
        dry_run: bool = False,
        validation: str = STRICT,
        timeout: float = 10.0,
    ) -> dict[str, Any]:
        """POST the object; return it as it was stored, or as it would be (`dry_run`).

        Raises AlreadyExists where there is one of that name, NotFound without its namespace, and
        Denied (a Forbidden) where a policy or a quota refuses it.
        """
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": validation}
        if dry_run:
            query["dryRun"] = "All"
        path, names = KINDS[kind].path(namespace)
        return self._requests.object(
            kind, Request("POST", path, names, query, dict(body), JSON), timeout
        )

    def get(
        self, kind: str, namespace: str | None, name: str, *, timeout: float = 5.0
    ) -> dict[str, Any]:
        """Return the object."""
        return self._requests.object(kind, self._one("GET", kind, namespace, name), timeout)

    def delete(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        grace: int | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Delete the object, and in the background what it owns.

        With `uid` another object of that name raises Conflict. `grace` is a Pod's grace
        period in seconds instead of its own; a deletion under way it can only shorten. A return
        means that the server has agreed: finalizers and grace periods may keep the object for a
        while.
        """
        body: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            # Without it the Pods of a Job are left behind.
            "propagationPolicy": "Background",
        }
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        asked = self._one("DELETE", kind, namespace, name)
        self._requests.answer(Request("DELETE", asked.path, asked.names, {}, body, JSON), timeout)

    def list_page(
        self,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        *,
        field_selector: str = "",
        limit: int = PAGE,
        more: str = "",
        timeout: float = 10.0,
    ) -> Page:
        """Return the objects with these labels and fields, at most `limit` of them.

        Where they are too large for one answer it asks again for half as many, each time with this
        `timeout`, down to one.

        They lack `kind` and `apiVersion`, which the list says once. `more` of the page before
        continues it; Unavailable (410) where that took too long, and the list has to begin anew.
        """
        path, names = KINDS[kind].path(namespace)
        asked = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "continue": more,
        }
        query = {key: value for key, value in asked.items() if value}
        while True:
            request = Request("GET", path, names, query | {"limit": str(limit)})
            most = MAX_OBJECT if limit > 1 else MAX_ALONE
            try:
                found = self._requests.object(f"{kind}List", request, timeout, most)
                break
            except TooLarge:
                if limit == 1:
                    raise
                limit //= 2
        items = found.get("items") or []
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            raise Unavailable(f"the response is not a list of {kind}s")
        version, rest = (found["metadata"].get(key) for key in ("resourceVersion", "continue"))
        return Page(
            items,
            version if isinstance(version, str) else "",
            rest if isinstance(rest, str) else "",
            min(2 * limit, PAGE),
        )

    def list_all(
        self,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        *,
        field_selector: str = "",
        timeout: float = 10.0,
    ) -> Iterator[dict[str, Any]]:
        """Yield the objects with these labels and fields, page by page; `timeout` is for each."""
        more, limit = "", PAGE
        while True:
            page = self.list_page(
                kind,
                namespace,
                label_selector,
                field_selector=field_selector,
                limit=limit,
                more=more,
                timeout=timeout,
            )
            yield from page.items
            more, limit = page.more, page.limit
            if not more:
                return

    def watch(
        self,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        *,
        field_selector: str = "",
        resource_version: str = "",
        server_timeout: int = 300,
        silence: float = SILENCE,
    ) -> Watch:
        """Return a watch of the objects with these labels and fields.

        It goes on from `resource_version` (of a list, an event or a bookmark), without one it
        starts with all that there is. The server ends it after `server_timeout` seconds; `silence`
        is how long nothing may come.
        """
        asked = {
            "watch": "true",
            "fieldSelector": field_selector,
            "timeoutSeconds": str(server_timeout),
            "allowWatchBookmarks": "true",
            "labelSelector": label_selector,
            "resourceVersion": resource_version,
        }
        path, names = KINDS[kind].path(namespace)
        query = {key: value for key, value in asked.items() if value}
        return Watch(self._client, kind, Request("GET", path, names, query), silence)

    def stream_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        tail_lines: int | None = None,
        previous: bool = False,
        stamped: bool = False,
        since: str = "",
        silence: float | None = 30.0,
    ) -> LogStream:
        """Return a container's log as a stream of bytes, with `follow` until the container ends.

        `previous` is that before its last restart. With `stamped` each line has its time before it;
        `since` is such a time, in whole seconds, with which the stream begins. `silence` is how
        long nothing may come, in seconds; None means for ever.
        """
        query = {"container": container}
        if follow:
            query["follow"] = "true"
        if tail_lines is not None:
            query["tailLines"] = str(tail_lines)
        if previous:
            query["previous"] = "true"
        if stamped:
            query["timestamps"] = "true"
        if since:
            query["sinceTime"] = since
        request = Request("GET", _LOG, {"namespace": namespace, "name": pod}, query)
        return LogStream(self._client, request, silence)

    def close(self) -> None:
        """Close the idle connections. Watches and streams are closed by themselves."""
        self._requests.close()

    def _one(self, method: str, kind: str, namespace: str | None, name: str) -> Request:
        path, names = KINDS[kind].path(namespace)
        return Request(method, f"{path}/{{name}}", names | {"name": name})
