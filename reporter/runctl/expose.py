"""A run that is reached from outside the cluster: its certificates, address, connection file."""

import argparse
import base64
import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.cli.exits import CannotTell, Unusable
from reporter.cli.output import tell
from reporter.common.objects import items, number, section, text
from reporter.common.private_file import write_private
from reporter.errors import Forbidden, KubeError, NotFound
from reporter.run.connection_file import ConnectionFile, UnusableFile, encode
from reporter.run.launch_file import longest
from reporter.run.view import ReadOutcome
from reporter.runctl.follow import Deadline
from reporter.runctl.origin import by_connection, own_place, read_connection
from reporter.runctl.run_status import find_aggregator
from reporter.runctl.server import ByHttp
from reporter.runctl.spec import STATUS_PORT, RunSpec, StatusTls, status_name

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_AFTERWARDS: Final = 48 * 3600.0
"""Seconds for which the certificates are good after the last plugin: for the results."""
_NEEDS = "--expose requires the extra [aggregator] of the package: {} is not installed"
_LATER: Final = """\
connection file: {path}, so far with the address inside the cluster; once the Service has one
outside of it, set host_address in the file to https://ADDRESS:PORT:
  kubectl get service {name} -n {namespace}"""
_SETTLING: Final = 15.0  # seconds in which a node's rules or a balancer may learn of the Pod
_ANSWER: Final = 3.0
_PAUSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Access:
    """What the status listener gets, and the connection file of those who read it."""

    tls: StatusTls
    path: Path
    connection: ConnectionFile

    def create(self) -> None:
        """Write the connection file, with the address inside the cluster. Raises Unusable.

        It is the only copy of the client's key, so it is there before the run.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(self.path, flags, 0o600), "wb") as file:
                try:
                    file.write(encode(self.connection))
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    self.path.unlink()
                    raise
        except FileExistsError:
            raise Unusable(self._exists()) from None
        except OSError as error:
            raise Unusable(f"cannot write {self.path}: {error.strerror}") from None

    def in_the_way(self) -> list[str]:
        """Say that there is such a file already."""
        return [self._exists()] if os.path.lexists(self.path) else []

    def point_to(self, url: str) -> None:
        """Put the address into the connection file. Raises OSError."""
        write_private(self.path, encode(replace(self.connection, address=url)))

    def trouble(self, url: str) -> str:
        """Return why the status is not reached there; nothing if it is."""
        with_url = by_connection(replace(self.connection, address=url))
        try:
            look = ByHttp(with_url).look(_ANSWER, entries=False)
        finally:
            with_url.close()
        return "" if look.outcome is ReadOutcome.OK else look.detail

    def _exists(self) -> str:
        return f"{self.path} exists: delete it, or name another file with --connection"


def remove_connection(path: Path) -> str:
    """Remove the file; return why it is still there, nothing once it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def make_access(options: argparse.Namespace, spec: RunSpec) -> Access:
    """Make the certificates of the run's status listener and of its readers. Raises CannotTell."""
    try:
        from reporter.pki.status import issue_status
    except ModuleNotFoundError as error:
        raise CannotTell(_NEEDS.format(error.name)) from None
    path = options.connection or own_place(os.environ)
    if path is None:
        raise CannotTell("no home directory found: set --connection")
    run, namespace, now = spec.run, spec.namespace, time.time()
    name = _status_host(run, namespace)
    seconds = longest(spec.plan, spec.launch) + _AFTERWARDS
    # Whoever makes a port-forward with other programs connects to this machine.
    made = issue_status([name, "localhost", "127.0.0.1", "::1"], now=now, seconds=seconds)
    connection = ConnectionFile(
        inside_url(run, namespace),
        now,
        made.ca.decode("ascii"),
        made.client.certificate.decode("ascii"),
        made.client.key.decode("ascii"),
        name,
    )
    tls = StatusTls(
        certificate=made.server.certificate, private_key=made.server.key, client_ca=made.ca
    )
    return Access(tls, path, connection)


def publish(
    api: "KubeApi",
    spec: RunSpec,
    access: Access,
    deadline: Deadline,
) -> None:
    """Wait for an address, put it into the file, and say what it is."""
    settled: Deadline | None = None
    while True:
        try:
            found, trouble = _urls(api, spec), ""
        except KubeError as error:
            found, trouble = [], words(error)
        if found:
            left = deadline.left()
            settling = _SETTLING if left is None else min(_SETTLING, left)
            settled = settled or Deadline(settling, deadline.clock)
            reached = next((url for url in found if not access.trouble(url)), "")
            if reached or settled.over():
                _point(access, reached or found[0])
                if not reached:
                    tell(f"it is not reachable from here: {access.trouble(found[0])}")
                return
        elif deadline.over():
            tell(trouble or f"service/{status_name(spec.run)} has no address yet")
            tell(_later(spec, access))
            return
        deadline.sleep(_PAUSE)


def _point(access: Access, url: str) -> None:
    try:
        access.point_to(url)
    except OSError as error:
        tell(f"cannot write {access.path}: {error.strerror}")
        tell(f"the status is at {url}; set host_address in {access.path} to it")
    else:
        tell(f"the status is at {url}; connection file: {access.path}")


def _later(spec: RunSpec, access: Access) -> str:
    return _LATER.format(name=status_name(spec.run), namespace=spec.namespace, path=access.path)


def dry_run_notes(spec: RunSpec, access: Access, options: argparse.Namespace) -> list[str]:
    """Return what somebody has to know who prints the objects instead of creating them."""
    name = status_name(spec.run)
    told = f"secret/{name} has the key of the status listener: keep the output private"
    if options.connection is None:
        return [told, "no connection file is written; --connection FILE writes one"]
    return [told, _later(spec, access)]


def file_of(api: "KubeApi", namespace: str, run: str) -> Path | None:
    """Return the connection file in its usual place, if it is the one of this run."""
    path = own_place(os.environ)
    if path is None:
        return None
    try:
        kept = read_connection(path, math.inf)
        if kept.server_name != _status_host(run, namespace):
            return None
        secret = api.get("Secret", namespace, status_name(run), timeout=TIMEOUT)
    except (OSError, UnusableFile, KubeError):
        return None
    # A run of that name in another cluster has another authority.
    authority = base64.b64encode(kept.ca.encode()).decode()
    return path if text(section(secret, "data"), "ca.crt") == authority else None


def _urls(api: "KubeApi", spec: RunSpec) -> list[str]:
    """Return where the Service is reached, as far as that is known. Raises KubeError."""
    service = api.get("Service", spec.namespace, status_name(spec.run), timeout=TIMEOUT)
    if spec.expose == "loadbalancer":
        return balancer_urls(service)
    pod, _ = find_aggregator(api, spec.namespace, run=spec.run, timeout=TIMEOUT)
    try:
        node = api.get("Node", None, text(section(pod, "spec"), "nodeName"), timeout=TIMEOUT)
    except (Forbidden, NotFound):
        node = {}
    return node_urls(service, pod, node)


def _status_host(run: str, namespace: str) -> str:
    """Return the name in the status certificate, which is that of the Service in the cluster."""
    return f"{status_name(run)}.{namespace}.svc"


def inside_url(run: str, namespace: str) -> str:
    """Return where Pods of the cluster reach it."""
    return _url(_status_host(run, namespace), STATUS_PORT)


def node_urls(
    service: Mapping[str, Any], pod: Mapping[str, Any], node: Mapping[str, Any]
) -> list[str]:
    """Return the URLs of a Service of the type NodePort on the aggregator's node, the best first.

    Nothing while no port is allotted. Without the Node the Pod says one of its addresses.
    """
    ports = [number(each, "nodePort") for each in items(section(service, "spec"), "ports")]
    found = [
        text(each, "address")
        for kind in ("ExternalIP", "InternalIP")
        for each in items(section(node, "status"), "addresses")
        if text(each, "type") == kind
    ]
    found.append(text(section(pod, "status"), "hostIP"))
    return _of_hosts(found, ports)


def balancer_urls(service: Mapping[str, Any]) -> list[str]:
    """Return the URLs of a Service of the type LoadBalancer; nothing while it has no address."""
    ingress = items(section(service, "status", "loadBalancer"), "ingress")
    hosts = [text(each, "ip") or text(each, "hostname") for each in ingress]
    return _of_hosts(hosts, [STATUS_PORT])


def _of_hosts(hosts: Iterable[str], ports: Iterable[int | None]) -> list[str]:
    known = list(dict.fromkeys(filter(None, hosts)))
    return [_url(host, port) for port in ports if port for host in known]


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
