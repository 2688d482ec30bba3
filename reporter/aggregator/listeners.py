"""The two listeners as the settings want them: addresses, limits, and the run's certificates."""

from __future__ import annotations

import resource
import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from reporter.aggregator import limits
from reporter.aggregator.certificates.export import export_files, export_secrets
from reporter.aggregator.certificates.run import Authority, Issued, validity
from reporter.aggregator.certificates.tls import (
    StatusContext,
    read_ca,
    stand_in_context,
    worker_context,
)
from reporter.aggregator.context import Context
from reporter.aggregator.server.listener import Handler, Listener
from reporter.errors import SettingsError
from reporter.run.settings import HostPort, Settings

_STATUS_KEEP_ALIVE = 10.0  # seconds; readers poll, or hold a stream


def open_files() -> None:
    """Let this process have as many files as it may: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def advertised(settings: Settings, port: int) -> HostPort:
    """Return the address that workers are given; `port` is the listener's."""
    return settings.advertised(socket.gethostname(), port)


def worker_listener(context: Context, app: Handler, authority: Authority) -> Listener:
    """Make what workers connect to. Raises CertificateError, OSError."""
    settings = context.settings
    ca = read_ca(Path(settings.worker_ca)) if settings.worker_ca else authority.ca
    return _listener(
        context,
        app,
        settings.listen,
        tls=worker_context(ca, authority.server),
        most=context.connections,
        keep_alive=context.rhythm.keep_alive,
    )


def status_listener(context: Context, gate: Handler) -> Listener:
    """Make what probes, scrapes and readers connect to. Raises CertificateError."""
    return _listener(
        context,
        gate,
        context.settings.status_listen,
        tls=_status_tls(context),
        most=max(1, context.connections // 8),  # a few readers beside the workers
        keep_alive=_STATUS_KEEP_ALIVE,
    )


def _listener(
    context: Context,
    app: Handler,
    address: HostPort,
    *,
    tls: ssl.SSLContext | StatusContext | None,
    most: int,
    keep_alive: float,
) -> Listener:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Listener(
        app,
        ssl_context=tls,
        host=address.host,
        port=address.port,
        connections=most,
        keep_alive=keep_alive,
        waiting_handshakes=max(1, min(limits.BACKLOG, files // 4)),
        observer=context.metrics,
    )


def _status_tls(context: Context) -> StatusContext | None:
    """Return what gives the status listener its TLS context; None for plain HTTP."""
    settings, log = context.settings, context.log
    if not settings.status_tls_cert:
        return None

    def changed(error: str | None) -> None:
        if error is None:
            log.info("The status listener's certificate was reloaded")
        else:
            log.warning(
                "The status listener's new certificate cannot be used; keeping the previous one",
                error=error,
            )

    def stand_in(error: str) -> ssl.SSLContext:
        log.warning(
            "The status listener's certificate is missing: status and results can only be read "
            "through a port-forward",
            error=error,
        )
        return stand_in_context(context.wall())

    return StatusContext(
        Path(settings.status_tls_cert),
        Path(settings.status_tls_key),
        Path(settings.status_tls_client_ca) if settings.status_tls_client_ca else None,
        changed,
        # A run that has begun does not end for it: workers need none of these files.
        stand_in if context.layout.database.exists() else None,
    )


def authority_of(context: Context) -> Authority:
    """Read the run's certificates, or make and export them; blocks, for a thread.

    Raises CertificateError, OSError, and SettingsError when nobody would get them.
    """
    settings, names = context.settings, server_names(context.settings)
    tls, plan, now = context.layout.tls, context.plan, context.wall()
    hand_out = partial(_hand_out, settings) if context.launch is None else None
    authority = Authority.open(
        tls, plan, names, now=now, seconds=validity(plan, context.launch), hand_out=hand_out
    )
    if authority.fresh:
        exported = [path for path in (settings.export_certs, settings.export_secrets) if path]
        context.log.info("Certificates created", names=names, exported=exported)
    else:
        context.log.info("Existing certificates of this run are used, nothing is exported")
    if authority.uncovered:
        context.log.warning(
            "The server certificate lacks names that workers may use", names=authority.uncovered
        )
    return authority


def server_names(settings: Settings) -> list[str]:
    """Return all names and addresses by which workers reach us, without ports."""
    names = [advertised(settings, 0).host, settings.sonobuoy_advertise_ip, socket.gethostname()]
    if not _wildcard(settings.listen.host):
        names.append(settings.listen.host)
    names += settings.server_names.split(",")
    return list(dict.fromkeys(filter(None, names)))


def _wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _hand_out(settings: Settings, issued: Issued) -> None:
    """Export the workers' certificates. Raises OSError and SettingsError."""
    if not (settings.export_certs or settings.export_secrets):
        raise SettingsError(
            [
                "EXPORT_CERTS and EXPORT_SECRETS are unset: one of them must be set at a run's "
                "first start, or no worker can connect"
            ]
        )
    if settings.worker_ca:
        issued = replace(issued, clients={})  # the listener would not know them
    if settings.export_certs:
        address = advertised(settings, settings.listen.port)
        # Empty while the port is left to the system.
        url = f"https://{address}" if address.port else ""
        export_files(issued, Path(settings.export_certs), url=url)
    if settings.export_secrets:
        namespace = settings.pod_namespace or None
        export_secrets(issued, Path(settings.export_secrets), namespace=namespace)
