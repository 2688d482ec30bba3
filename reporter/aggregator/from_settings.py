"""From settings to what the parts want: limits, names, contexts, certificates. No sockets."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

from reporter.aggregator import api as http
from reporter.aggregator import limits
from reporter.aggregator.certificates.export import export_files, export_secrets
from reporter.aggregator.certificates.run import Issued
from reporter.aggregator.certificates.tls import StatusContext
from reporter.aggregator.settings import Settings
from reporter.errors import SettingsError
from reporter.run import heartbeats as beats
from reporter.run.plan import Plan

_KEPT = 41 * 1024  # bytes that a kept connection holds, TLS included


def differing(chosen: Settings) -> dict[str, str]:
    """Return the settings that are not the defaults, for the log."""
    defaults = {found.name: found.default for found in Settings.described()}
    return {name: value for name, value in chosen.in_force() if value != defaults[name]}


def rhythm(chosen: Settings, plan: Plan) -> beats.Rhythm:
    """Return how often workers beat, and what becomes of those that do not."""
    return beats.rhythm(
        len(plan.keys), chosen.heartbeat_interval_seconds, chosen.heartbeat_timeout_seconds
    )


def connections(chosen: Settings) -> int:
    """Return how many connections of workers are kept: half as many as there can be files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(chosen.connection_memory_bytes // _KEPT, files // 2))


def waiting_handshakes() -> int:
    """Return how many peers wait for a handshake: a quarter as many as there can be files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(limits.BACKLOG, files // 4))


def open_files() -> None:
    """Let this process have as many files as it may: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def server_names(chosen: Settings) -> list[str]:
    """Return all names and addresses by which workers reach us, without ports."""
    hostname = socket.gethostname()
    names = [chosen.advertised(hostname, 0).host, chosen.sonobuoy_advertise_ip, hostname]
    if not _wildcard(chosen.listen.host):
        names.append(chosen.listen.host)
    names += chosen.server_names.split(",")
    return list(dict.fromkeys(filter(None, names)))


def hand_out(chosen: Settings) -> Callable[[Issued], None]:
    """Return what exports the workers' certificates. It raises OSError and SettingsError."""

    def export(issued: Issued) -> None:
        if not (chosen.export_certs or chosen.export_secrets):
            raise SettingsError(
                [
                    "EXPORT_CERTS and EXPORT_SECRETS are unset: one of them must be set at a run's "
                    "first start, or no worker can connect"
                ]
            )
        if chosen.worker_ca:
            issued = replace(issued, clients={})  # the listener would not know them
        if chosen.export_certs:
            export_files(issued, Path(chosen.export_certs), url=_worker_url(chosen))
        if chosen.export_secrets:
            namespace = chosen.pod_namespace or None
            export_secrets(issued, Path(chosen.export_secrets), namespace=namespace)

    return export


def _worker_url(chosen: Settings) -> str:
    """Return the address that workers are given; empty while the port is left to the system."""
    address = chosen.advertised(socket.gethostname(), chosen.listen.port)
    return f"https://{address}" if address.port else ""


def audience(chosen: Settings) -> http.Audience:
    """Return who may read run data on the status listener."""
    if chosen.status_scope == "any":
        return http.Audience.ANY
    return http.Audience.CERTIFIED if chosen.status_tls_client_ca else http.Audience.LOCAL


def status_tls(
    chosen: Settings,
    changed: Callable[[str | None], None],
    stand_in: Callable[[str], ssl.SSLContext] | None,
) -> Callable[[], ssl.SSLContext] | None:
    """Return what gives the status listener its context, None for plain HTTP.

    `changed` hears of files that were replaced, `stand_in` of one that is missing at the start;
    without it that is a CertificateError, too.
    """
    if not chosen.status_tls_cert:
        return None
    ca = chosen.status_tls_client_ca
    return StatusContext(
        Path(chosen.status_tls_cert),
        Path(chosen.status_tls_key),
        Path(ca) if ca else None,
        changed,
        stand_in,
    )


def _wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
