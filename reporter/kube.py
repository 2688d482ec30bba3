"""The door to the Kubernetes API: read Pods and the Job, patch the Job's status, annotate a Pod.

Objects go in and out as plain dicts; every failure is a domain error of `errors.py`. There are no
retries here but one: a 401 is tried again with a token read anew. Rights needed by the sidecar:
`jobs/status: get, patch`, `pods: get, watch`; by the aggregator: `pods: list, patch`.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from reporter.errors import SettingsError, Unavailable
from reporter.kube_answers import MAX_OBJECT, MAX_REFUSAL, decode_object, refusal
from reporter.kube_client import JSON_MERGE, Client, Request, transport
from reporter.kube_watch import PodWatch

__all__ = ["KubeApi", "PodWatch"]

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
FIELD_MANAGER = "status-reporter"
SILENCE = 135.0
"""Seconds without a word after which a watch counts as dead.

The server sends a bookmark every 60 s; where no Pod of the cluster changes one of two stays away.
"""
LONGEST_IDLE = 30.0  # seconds; a new connection costs about 10 ms
MOST_PODS = 10  # in one answer, which has its own limit: each may carry 256 KiB of annotations

_PODS = "/api/v1/namespaces/{namespace}/pods"
_POD = "/api/v1/namespaces/{namespace}/pods/{name}"
_JOB_STATUS = "/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status"


class KubeApi:
    """One API server. Threads may use it at the same time.

    `timeout` of a request bounds all of it in seconds (connect and handshake at most 3 s). Every
    method raises NotFound, Forbidden, Unauthorized, Refused or Unavailable; a patch also Conflict
    and Gone.
    """

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._api = client.open()
        self._used_at = clock()

    @classmethod
    def in_cluster(cls, *, relax_x509_strict: bool = False) -> "KubeApi":
        """Return the API of the cluster we run in, with the mounted token and ca.crt.

        Both files are followed as they rotate: the token at most a minute later (at once after a
        401), the CA at the next connection, also with `relax_x509_strict`. That drops only Python
        3.13's strict X.509 check, for clusters whose CA lacks the extensions it asks for. Raises
        SettingsError outside of a cluster.
        """
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port:
            raise SettingsError(
                [
                    "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: must be set; "
                    "Kubernetes does so in every container"
                ]
            )
        return cls.connect(
            f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            ca_file=f"{SERVICE_ACCOUNT}/ca.crt",
            token_file=f"{SERVICE_ACCOUNT}/token",
            relax_x509_strict=relax_x509_strict,
        )

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

    def get_pod(self, namespace: str, name: str, *, timeout: float = 5.0) -> dict[str, Any]:
        """Return the Pod."""
        request = Request("GET", _POD, {"namespace": namespace, "name": name})
        return self._object("Pod", request, timeout)

    def get_job(self, namespace: str, name: str, *, timeout: float = 5.0) -> dict[str, Any]:
        """Return the whole Job, read through its status subresource."""
        request = Request("GET", _JOB_STATUS, {"namespace": namespace, "name": name})
        return self._object("Job", request, timeout)

    def patch_job_status(
        self, namespace: str, name: str, body: dict[str, Any], *, timeout: float = 5.0
    ) -> dict[str, Any]:
        """Merge `body` into the Job's status and annotations (strategic merge); return the new Job.

        With `metadata.uid` in the body another Job of that name raises Gone, with
        `metadata.resourceVersion` a write since the read raises Conflict; fields that a Job does
        not have raise Refused.
        """
        names = {"namespace": namespace, "name": name}
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        return self._object("Job", Request("PATCH", _JOB_STATUS, names, query, body), timeout)

    def list_pods(
        self, namespace: str, label_selector: str, *, timeout: float = 5.0
    ) -> list[dict[str, Any]]:
        """Return the Pods with these labels (`KEY=VALUE,...`), sorted by name, at most 10.

        None in a namespace that does not exist.
        """
        query = {"labelSelector": label_selector, "limit": str(MOST_PODS)}
        request = Request("GET", _PODS, {"namespace": namespace}, query)
        pods = self._object("PodList", request, timeout).get("items") or []
        if not isinstance(pods, list) or not all(isinstance(pod, dict) for pod in pods):
            raise Unavailable("the answer is no list of Pods")
        return pods

    def annotate_pod(
        self,
        namespace: str,
        name: str,
        annotations: Mapping[str, str | None],
        *,
        timeout: float = 5.0,
    ) -> dict[str, Any]:
        """Set these annotations of the Pod (JSON merge), None deletes; return the new Pod.

        All annotations of a Pod together may have 256 KiB: Refused beyond.
        """
        names = {"namespace": namespace, "name": name}
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        body = {"metadata": {"annotations": dict(annotations)}}
        return self._object("Pod", Request("PATCH", _POD, names, query, body, JSON_MERGE), timeout)

    def watch_pod(
        self, namespace: str, name: str, *, server_timeout: int = 300, silence: float = SILENCE
    ) -> PodWatch:
        """Return a watch of one Pod that starts with its present state.

        The server ends it after `server_timeout` seconds; `silence` is how long nothing may come.
        """
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={name}",
            "timeoutSeconds": str(server_timeout),
            "allowWatchBookmarks": "true",
        }
        return PodWatch(
            self._client, Request("GET", _PODS, {"namespace": namespace}, query), silence
        )

    def close(self) -> None:
        """Close the idle connections. Watches are closed by themselves."""
        self._api.close()

    def _object(self, kind: str, request: Request, timeout: float) -> dict[str, Any]:
        now = self._clock()
        if now > self._used_at + LONGEST_IDLE:
            # Load balancers and firewalls forget idle connections without a word, and the first
            # request after minutes of silence is often the verdict: it must not wait in vain.
            self._api.rest_client.pool_manager.clear()
        self._used_at = now
        response = self._client.send(self._api, request, timeout)
        good = response.status == 200
        try:
            with transport():
                data = response.read(MAX_OBJECT + 1 if good else MAX_REFUSAL, decode_content=False)
        finally:
            # Read to its end, the connection is in the pool again; otherwise this ends it.
            response.close()
        if not good:
            raise refusal(str(request), response.status, response.headers, data)
        return decode_object(data, kind)
