"""The Kubernetes API: get, create, patch, delete, list and watch objects of any kind.

Objects go in and out as plain dicts; every failure is a domain error of `errors.py`. There are no
retries here but one: a 401 is tried again with a token read anew. Rights needed by the sidecar:
`jobs/status: get, patch`, `pods: get, watch`, `events: create`; by an aggregator that launches
plugins: those of `runctl/manifests/run.yaml`, by any other `pods: patch`; by people who ask what
became of a Job: `jobs: get, list, watch`, `pods: list`, `events: list`, `pods/log: get`.
"""

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from reporter.common.defaults import is_service_link
from reporter.errors import InvalidRequest, SettingsError, TooLarge, Unavailable
from reporter.kube.answers import MAX_ALONE, decode_json, plain
from reporter.kube.client import JSON, Client, Request, kubeconfig_client, mounted_client
from reporter.kube.resources import AGGREGATED, KINDS, Discovered, Resource, discovered
from reporter.kube.stream import LogStream, Watch

if TYPE_CHECKING:
    from reporter.kube.port_forward import PortForward

FIELD_MANAGER: Final = "status-reporter"
SILENCE: Final = 135.0
"""Seconds without a word after which a watch counts as dead.

The server sends a bookmark every 60 s; where no Pod of the cluster changes one of two stays away.
"""
PAGE: Final = 100  # objects asked for at once where there may be thousands
STRICT: Final = "Strict"
"""Unknown fields are refused."""
WARN: Final = "Warn"
"""Unknown fields are dropped, as kubectl's old clients and Sonobuoy do."""
_POD_LOG: Final = "/api/v1/namespaces/{namespace}/pods/{name}/log"
MAX_DOCUMENT: Final = 32 * 2**20  # bytes of what is read and is no object

_PATCHES: Final = {
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/merge-patch+json",
}
_METADATA_LIST: Final = "PartialObjectMetadataList"
_METADATA_ONLY: Final = f"{JSON};as={_METADATA_LIST};g=meta.k8s.io;v=v1"
_DISCOVERY: Final = ",".join(
    [f"{JSON};g=apidiscovery.k8s.io;v={each};as={AGGREGATED}" for each in ("v2", "v2beta1")]
    + [JSON]
)
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_PORT = re.compile(r"[0-9]{1,5}")

Kind = str | Resource
"""A kind of `KINDS` by its name, or whatever else a server offers."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list. `more` asks for the next one; empty after the last.

    `limit` is how many objects to ask for with it: fewer where they are large.
    """

    items: list[dict[str, Any]]
    resource_version: str
    more: str
    limit: int = PAGE


class KubeApi:
    """One API server. Threads may share it.

    `namespace` None means all of them in a list or a watch, and is right for kinds that have no
    namespace. `timeout` of a request bounds all of it in seconds (connect and handshake at most
    3 s). Every method raises NotFound, Forbidden, Unauthorized, InvalidRequest or Unavailable; what
    writes also Conflict, a patch Gone.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    @classmethod
    def in_cluster(cls, *, relax_x509_strict: bool = False) -> "KubeApi":
        """Return the API of the cluster we run in, with the mounted token and ca.crt.

        Both files are followed as they rotate: the token at most a minute later (at once after a
        401), the CA at the next connection, also with `relax_x509_strict`. That drops only Python
        3.13's strict X.509 check, for clusters whose CA lacks the extensions it asks for. Raises
        SettingsError outside of a cluster, and for an address that is none.
        """
        server = _server_address(os.environ)
        try:
            return cls.connect(
                server,
                ca_file=f"{_SERVICE_ACCOUNT}/ca.crt",
                token_file=f"{_SERVICE_ACCOUNT}/token",
                relax_x509_strict=relax_x509_strict,
            )
        except ValueError:
            host = os.environ["KUBERNETES_SERVICE_HOST"]
            raise SettingsError(
                [plain(f"KUBERNETES_SERVICE_HOST={host!r}: must be a host name or an IP address")]
            ) from None

    @classmethod
    def connect(
        cls,
        server: str,
        *,
        ca_file: str | None,
        token_file: str | None,
        relax_x509_strict: bool = False,
    ) -> "KubeApi":
        """Return the API at `server` (`https://HOST:PORT`). ValueError for another form."""
        return cls(
            mounted_client(
                server, ca_file=ca_file, token_file=token_file, relax_x509_strict=relax_x509_strict
            )
        )

    @classmethod
    def from_kubeconfig(
        cls, files: str, *, context: str | None = None, relax_x509_strict: bool = False
    ) -> "tuple[KubeApi, str]":
        """Return the API that a kubeconfig names, and its context's namespace or nothing.

        `files` is as in KUBECONFIG: several, separated by colons. Raises SettingsError when there
        is none, when it is broken, or when its credentials are not available.
        """
        client, namespace = kubeconfig_client(files, context, relax_x509_strict=relax_x509_strict)
        return cls(client), namespace

    def hurry_after(
        self,
        stopped: Callable[[], float | None],
        writes_end: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """End requests that are on their way when we are asked to end soon after that moment.

        `stopped` returns its monotonic time, nothing before it. One that hangs would outlive the
        grace period; later ones have timeouts that fit. A PATCH may go on until `writes_end`.
        Watches are not meant.
        """
        self._client.haste.stopped, self._client.haste.writes_end = stopped, writes_end

    @property
    def server(self) -> str:
        """Its address."""
        return self._client.server

    @property
    def server_time(self) -> float | None:
        """The API server's clock when it last answered, in epoch seconds; None if it does not say.

        It is that of the times in its objects; ours may be another.
        """
        return self._client.server_time

    def close(self) -> None:
        """Close the idle connections. Watches and streams are closed by themselves."""
        self._client.close()

    def get(
        self, kind: Kind, namespace: str | None, name: str, *, part: str = "", timeout: float = 5.0
    ) -> dict[str, Any]:
        """Return the object; through its subresource `part` where only that may be read."""
        resource = _resource(kind)
        request = Request("GET", *resource.one(namespace, name, part))
        return self._client.object(resource.kind, request, timeout)

    def create(
        self,
        kind: Kind,
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
        resource = _resource(kind)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": validation}
        if dry_run:
            query["dryRun"] = "All"
        request = Request("POST", *resource.path(namespace), query, dict(body), JSON)
        return self._client.object(resource.kind, request, timeout)

    def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        body: dict[str, Any],
        *,
        part: str = "",
        merge: Literal["strategic", "json"] = "strategic",
        timeout: float = 5.0,
    ) -> dict[str, Any]:
        """Merge `body` into the object; return the new one.

        With `metadata.uid` in the body another object of that name raises Gone, with
        `metadata.resourceVersion` a write since the read raises Conflict; unknown fields, and more
        than 256 KiB of annotations, raise InvalidRequest. In annotations None deletes.
        """
        resource = _resource(kind)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": STRICT}
        request = Request(
            "PATCH", *resource.one(namespace, name, part), query, body, _PATCHES[merge]
        )
        return self._client.object(resource.kind, request, timeout)

    def delete(
        self,
        kind: Kind,
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
        request = Request("DELETE", *_resource(kind).one(namespace, name), {}, body, JSON)
        for _ in self._client.pieces(request, timeout):
            pass

    def list_page(
        self,
        kind: Kind,
        namespace: str | None,
        label_selector: str = "",
        *,
        field_selector: str = "",
        metadata_only: bool = False,
        limit: int = PAGE,
        more: str = "",
        most: int = MAX_ALONE,
        timeout: float = 10.0,
    ) -> Page:
        """Return the objects with these labels and fields, at most `limit` of them.

        Where they are larger than a quarter of `most` bytes it asks again for half as many, each
        time with this `timeout`, down to one; TooLarge where that is larger than `most`.

        They lack `kind` and `apiVersion`, which the list says once. `more` of the page before
        continues it; Expired where that took too long. A namespace that does not exist has no
        objects.
        """
        resource = _resource(kind)
        path, names = resource.path(namespace)
        query = _given(
            {"labelSelector": label_selector, "fieldSelector": field_selector, "continue": more}
        )
        # Whoever defines a kind may call its list as they like.
        of_list = f"{kind}List" if isinstance(kind, str) else ""
        accept = JSON
        if metadata_only:
            of_list, accept = _METADATA_LIST, _METADATA_ONLY
        while True:
            query["limit"] = str(limit)
            request = Request("GET", path, names, query, accept=accept)
            bound = most if limit == 1 else most // 4
            try:
                found = self._client.object(of_list, request, timeout, bound)
                break
            except TooLarge:
                if limit == 1:
                    raise
                limit //= 2
        items = found.get("items") or []
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            raise Unavailable(f"the response is not a list of {resource.kind}s")
        version, rest = (found["metadata"].get(key) for key in ("resourceVersion", "continue"))
        return Page(
            items,
            version if isinstance(version, str) else "",
            rest if isinstance(rest, str) else "",
            min(2 * limit, PAGE),
        )

    def list_all(
        self,
        kind: Kind,
        namespace: str | None,
        label_selector: str = "",
        *,
        field_selector: str = "",
        metadata_only: bool = False,
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
                metadata_only=metadata_only,
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
        kind: Kind,
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
        resource = _resource(kind)
        query = _given(
            {
                "watch": "true",
                "fieldSelector": field_selector,
                "timeoutSeconds": str(server_timeout),
                "allowWatchBookmarks": "true",
                "labelSelector": label_selector,
                "resourceVersion": resource_version,
            }
        )
        request = Request("GET", *resource.path(namespace), query)
        return Watch(self._client, resource.kind, request, silence)

    def stream_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        stamped: bool = False,
        since: str = "",
        silence: float | None = 30.0,
    ) -> LogStream:
        """Return a container's log as a stream of bytes, with `follow` until the container ends.

        With `stamped` each line has its time before it; `since` is such a time, in whole seconds,
        with which the stream begins. `silence` is how long nothing may come, in seconds; None means
        for ever.
        """
        query = _given(
            {
                "container": container,
                "follow": "true" if follow else "",
                "timestamps": "true" if stamped else "",
                "sinceTime": since,
            }
        )
        request = Request("GET", _POD_LOG, {"namespace": namespace, "name": pod}, query)
        return LogStream(self._client, request, silence)

    def read_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        query: Mapping[str, str],
        *,
        most: int = MAX_DOCUMENT,
        timeout: float = 30.0,
    ) -> Iterator[bytes]:
        """Yield what there is of a container's log, in pieces, over a connection that is kept."""
        names = {"namespace": namespace, "name": pod}
        return self.read(
            _POD_LOG, names, {"container": container, **query}, most=most, timeout=timeout
        )

    def read(
        self,
        path: str,
        names: Mapping[str, str] = _NOTHING,
        query: Mapping[str, str] = _NOTHING,
        *,
        accept: str = JSON,
        most: int = MAX_DOCUMENT,
        timeout: float = 30.0,
    ) -> Iterator[bytes]:
        """Yield the pieces of what is at a path; its placeholders are filled in with `names`.

        `timeout` includes what is done between the pieces.
        """
        return self._client.pieces(Request("GET", path, names, query, accept=accept), timeout, most)

    def document(
        self,
        path: str,
        names: Mapping[str, str] = _NOTHING,
        *,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> dict[str, Any]:
        """Return the JSON object at a path."""
        return decode_json(b"".join(self.read(path, names, accept=accept, timeout=timeout)))

    def server_version(self, *, timeout: float = 5.0) -> str:
        """Return the API server's version, as `v1.34.1`. Everybody may ask for it."""
        version = self.document("/version", timeout=timeout).get("gitVersion")
        if not isinstance(version, str):
            raise Unavailable("the response is not a version")
        return version

    def discover(self) -> Discovered:
        """Return every resource once, and the groups whose server does not answer."""
        found = [self.document(path, accept=_DISCOVERY) for path in ("/api", "/apis")]
        if any(each.get("kind") != AGGREGATED for each in found):
            raise InvalidRequest(
                "the API server has no aggregated discovery; Kubernetes has it since version 1.27"
            )
        return discovered(found)

    def port_forward(
        self,
        namespace: str,
        name: str,
        port: int,
        *,
        timeout: float = 5.0,
        near: socket.socket | None = None,
    ) -> "PortForward":
        """Connect to a port of a Pod through the API server, `near` if it is given.

        Rights: `pods/portforward: get`, and from Kubernetes 1.35 on `create`.
        """
        from reporter.kube.port_forward import PortForward

        return PortForward(self._client, namespace, name, port, timeout=timeout, near=near)


def _resource(kind: Kind) -> Resource:
    return KINDS[kind] if isinstance(kind, str) else kind


def _given(query: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in query.items() if value}


def _server_address(environ: Mapping[str, str]) -> str:
    """Return `https://HOST:PORT`. Raises SettingsError outside of a cluster."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if is_service_link("KUBERNETES_SERVICE_PORT", port):
        # It is set by a Service `kubernetes-service` in our namespace; the other one says the same.
        port = environ.get("KUBERNETES_SERVICE_PORT_HTTPS", "443")
    if not host or not port:
        raise SettingsError(
            [
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: must be set; "
                "Kubernetes does so in every container"
            ]
        )
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise SettingsError(
            [plain(f"KUBERNETES_SERVICE_PORT={port!r}: must be an integer from 1 to 65535")]
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
