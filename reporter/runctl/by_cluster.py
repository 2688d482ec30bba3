"""A run in the user's cluster: its aggregator's Pod, asked through a port-forward of our own.

Where that is not possible, the annotation on the Pod says how the run is. Results come only through
the port-forward.
"""

import argparse
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from reporter.cli import cluster
from reporter.cli.exits import CannotTell
from reporter.common.objects import items, number, section, text
from reporter.errors import Forbidden, KubeError
from reporter.run.from_annotations import of_reading
from reporter.run.pod_status import ReadOutcome
from reporter.run.view import Look
from reporter.runctl.by_http import ByHttp
from reporter.runctl.search import Search
from reporter.runctl.server import ANSWER, StatusServer
from reporter.runctl.tls import Address

if TYPE_CHECKING:
    from reporter.kube.port_forward import PortForward

NO_RESULTS: Final = """\
results are not available: {why}
Request permission to create port-forwards (pods/portforward: create, get), or specify the status
listener with --url or --connection"""
_STATUS_PORT: Final = "status"


class ByCluster:
    """One run, the one named `run` or the only one. Raises CannotTell without a cluster."""

    pause = 2.0

    def __init__(self, options: argparse.Namespace, run: str = "") -> None:
        self._api, namespace = cluster.open_cluster(options)
        self.search = Search(self._api, namespace, run, only_there=bool(options.namespace))
        where = f"namespace {namespace}" if namespace else "all namespaces"
        self.name = f"run {run}" if run else where
        self._http: ByHttp | None = None
        self._refused = ""  # why there is no port-forward, for good
        self._forward: PortForward | None = None

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask the status listener; without it read what the annotation says, which is not long.

        Raises CannotTell where a run that was there can tell no more: it was deleted, or its
        aggregator has ended.
        """
        trouble = ""
        if self._http is not None:
            look = self._http.look(timeout, entries=entries)
            if look.outcome is ReadOutcome.OK:
                return look
            trouble = self._lose(look)
        reading = self.search.read(timeout)
        if reading.pod is not None and not trouble and self._connect(reading.pod):
            assert self._http is not None
            look = self._http.look(timeout, entries=entries)
            if look.outcome is ReadOutcome.OK:
                return look
            self._lose(look)
        return of_reading(reading)

    @property
    def server(self) -> StatusServer:
        """The status listener. Raises CannotTell where it is not reached."""
        if self._http is None:
            raise CannotTell(
                NO_RESULTS.format(why=self._refused or "the aggregator does not answer")
            )
        return self._http.server

    def _connect(self, pod: Mapping[str, Any]) -> bool:
        """Prepare a port-forward to the Pod; return whether it may work."""
        scheme, port = _status_port(pod)
        running = text(section(pod, "status"), "phase") == "Running"
        if self._refused or port is None or not running:
            return False
        metadata = section(pod, "metadata")
        namespace, name = text(metadata, "namespace"), text(metadata, "name")

        def dial(timeout: float) -> socket.socket:
            try:
                self._forward = self._api.port_forward(namespace, name, port, timeout=timeout)
            except Forbidden as error:
                self._refused = str(error)
                raise ConnectionError(str(error)) from None
            except KubeError as error:
                raise ConnectionError(str(error)) from None
            return self._forward.socket

        # By the name of the local machine, as of every port-forward: others are refused. The API
        # server and the kubelet lead to this Pod: its certificate, by a CA that nobody may have to
        # read here, would prove nothing more.
        address = Address(f"{scheme}://localhost:{port}", verify=False)
        self._http = ByHttp(StatusServer(address, dial=dial), f"pod/{name}")
        return True

    def _lose(self, look: Look) -> str:
        """Give up the connection; return what was in the way."""
        self._http, forward, self._forward = None, self._forward, None
        if forward is None:
            return look.detail
        why = forward.error or look.detail
        forward.close()
        return why


def _status_port(pod: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return scheme and port of the status listener, where the Pod is an aggregator of ours.

    Its probes say whether it speaks TLS: they ask the same listener.
    """
    for container in items(section(pod, "spec"), "containers"):
        for port in items(container, "ports"):
            if text(port, "name") == _STATUS_PORT:
                probed = section(container, "readinessProbe", "httpGet")
                scheme = "https" if text(probed, "scheme") == "HTTPS" else "http"
                return scheme, number(port, "containerPort")
    return "", None
