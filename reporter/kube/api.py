"""The Kubernetes API: read Pods and the Job, patch the Job's status, create Events.

Objects go in and out as plain dicts; every failure is a domain error of `errors.py`. There are no
retries here but one: a 401 is tried again with a token read anew. Rights needed by the sidecar:
`jobs/status: get, patch`, `pods: get, watch`, `events: create`; by the aggregator: `pods: list,
patch`; by people who ask what became of a Job: `jobs: get, list, watch`, `pods: list`,
`events: list`, `pods/log: get`. Requests for any kind of object are in `objects.py`.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reporter.common.service_links import is_service_link
from reporter.errors import SettingsError
from reporter.kube.answers import plain
from reporter.kube.client import JSON, JSON_MERGE, Client, Request, load_kubeconfig
from reporter.kube.objects import FIELD_MANAGER, SILENCE, STRICT, Objects
from reporter.kube.stream import Watch

if TYPE_CHECKING:
    from reporter.kube.port_forward import PortForward
    from reporter.kube.reading import Reading

MOST_PODS = 10  # in one answer, which has its own limit: each may carry 256 KiB of annotations
MOST_EVENTS = 500
LOG_BYTES = 64 * 1024
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_CA_FILE, _TOKEN_FILE = f"{_SERVICE_ACCOUNT}/ca.crt", f"{_SERVICE_ACCOUNT}/token"
_PORT = re.compile(r"[0-9]{1,5}")

_POD = "/api/v1/namespaces/{namespace}/pods/{name}"
_LOG = "/api/v1/namespaces/{namespace}/pods/{name}/log"
_NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{namespace}/events"
_JOB_STATUS = "/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status"


class KubeApi(Objects):
    """What the programs ask, beside what can be asked of any object. Threads may share it."""

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
                ca_file=_CA_FILE,
                token_file=_TOKEN_FILE,
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
            Client(
                server,
                ca_file=ca_file,
                token_file=token_file,
                relax_x509_strict=relax_x509_strict,
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
        config, namespace = load_kubeconfig(files, context)
        return cls(Client.configured(config, relax_x509_strict=relax_x509_strict)), namespace

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

    def get_pod(self, namespace: str, name: str, *, timeout: float = 5.0) -> dict[str, Any]:
        """Return the Pod."""
        return self.get("Pod", namespace, name, timeout=timeout)

    def get_job(self, namespace: str, name: str, *, timeout: float = 5.0) -> dict[str, Any]:
        """Return the whole Job, read through its status subresource."""
        request = Request("GET", _JOB_STATUS, {"namespace": namespace, "name": name})
        return self._requests.object("Job", request, timeout)

    def patch_job_status(
        self, namespace: str, name: str, body: dict[str, Any], *, timeout: float = 5.0
    ) -> dict[str, Any]:
        """Merge `body` into the Job's status and annotations (strategic merge); return the new Job.

        With `metadata.uid` in the body another Job of that name raises Gone, with
        `metadata.resourceVersion` a write since the read raises Conflict; fields that a Job does
        not have raise InvalidRequest.
        """
        names = {"namespace": namespace, "name": name}
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": STRICT}
        return self._requests.object(
            "Job", Request("PATCH", _JOB_STATUS, names, query, body), timeout
        )

    def create_event(self, namespace: str, event: dict[str, Any], *, timeout: float = 5.0) -> None:
        """Create an Event (events.k8s.io/v1). Conflict where there is one of that name."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": STRICT}
        names = {"namespace": namespace}
        request = Request("POST", _NEW_EVENTS, names, query, event, JSON)
        self._requests.answer(request, timeout)

    def list_pods(
        self,
        namespace: str | None,
        label_selector: str,
        *,
        limit: int = MOST_PODS,
        timeout: float = 5.0,
    ) -> list[dict[str, Any]]:
        """Return the Pods with these labels (`KEY=VALUE,...`), sorted by name, at most `limit`.

        None in a namespace that does not exist; `namespace` None means all.
        """
        return self.list_page("Pod", namespace, label_selector, limit=limit, timeout=timeout).items

    def list_events(
        self, namespace: str, field_selector: str, *, timeout: float = 5.0
    ) -> list[dict[str, Any]]:
        """Return the events with these fields, as `involvedObject.uid=...`, at most 500."""
        page = self.list_page(
            "Event", namespace, field_selector=field_selector, limit=MOST_EVENTS, timeout=timeout
        )
        return page.items

    def read_log(self, namespace: str, name: str, container: str, *, timeout: float = 5.0) -> bytes:
        """Return the end of a container's log, at most 100 lines and 64 KiB."""
        query = {"container": container, "tailLines": "100", "limitBytes": str(LOG_BYTES)}
        request = Request("GET", _LOG, {"namespace": namespace, "name": name}, query)
        return self._requests.answer(request, timeout)

    def annotate_pod(
        self,
        namespace: str,
        name: str,
        annotations: Mapping[str, str | None],
        *,
        timeout: float = 5.0,
    ) -> dict[str, Any]:
        """Set these annotations of the Pod (JSON merge), None deletes; return the new Pod.

        All annotations of a Pod together may have 256 KiB: InvalidRequest beyond.
        """
        names = {"namespace": namespace, "name": name}
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": STRICT}
        body = {"metadata": {"annotations": dict(annotations)}}
        return self._requests.object(
            "Pod", Request("PATCH", _POD, names, query, body, JSON_MERGE), timeout
        )

    def watch_pod(
        self, namespace: str, name: str, *, server_timeout: int = 900, silence: float = SILENCE
    ) -> Watch:
        """Return a watch of one Pod that starts with its present state.

        The server ends it after `server_timeout` seconds: long enough for most Jobs, since each
        watch is a request. `silence` is how long nothing may come.
        """
        return self.watch(
            "Pod",
            namespace,
            field_selector=f"metadata.name={name}",
            server_timeout=server_timeout,
            silence=silence,
        )

    def reading(self) -> "Reading":
        """Return what reads whatever the server offers, with connections of its own."""
        from reporter.kube.reading import Reading

        return Reading(self._client)

    def port_forward(
        self, namespace: str, name: str, port: int, *, timeout: float = 5.0
    ) -> "PortForward":
        """Connect to a port of a Pod through the API server.

        Rights: `pods/portforward: get`, and from Kubernetes 1.35 on `create`.
        """
        from reporter.kube.port_forward import PortForward

        return PortForward(self._client, namespace, name, port, timeout=timeout)


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
