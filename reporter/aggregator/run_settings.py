"""The aggregator's settings of the run it collects: files, addresses, certificates, times.

Settings that need a look at a file (the plan, a certificate) are not judged here. How much it
takes at a time is in `limit_settings`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo, field_validator

from reporter.aggregator.addresses import (
    ADDRESS_RULE,
    Advertised,
    HostPort,
    Ip,
    Listen,
    Names,
    host_port,
)
from reporter.aggregator.limit_settings import whole
from reporter.common import settings as rules
from reporter.common.settings import (
    LONGEST,
    NAME_RULE,
    Boolean,
    Integer,
    LogFormat,
    LogLevel,
    Variables,
    object_name,
    setting,
)

_PATH_RULE = "a path"
_ONLY_WITH = {"status_tls_client_ca": "status_tls_cert", "upload_ca": "upload_url_file"}
"""Variables that mean nothing without another one."""


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError
    return text


def _optional_name(text: str) -> str:
    return object_name(text) if text else ""


Path = Annotated[str, AfterValidator(_path)]
OptionalName = Annotated[str, AfterValidator(_optional_name)]


class Run(Variables):
    """One run, and who is told of it."""

    plan: Path = setting("run plan (JSON file)", ..., _PATH_RULE)
    launch: Path = setting(
        "launch file written by `status-ctl run`",
        "",
        _PATH_RULE,
        shown="nothing is launched",
    )
    state: Path = setting(
        "directory that must survive a restart: database, results, keys", ..., _PATH_RULE
    )
    output: Path = setting("directory for the tarball", ..., _PATH_RULE)
    listen: Listen = setting("listen address for workers (HTTPS)", "0.0.0.0:8080", ADDRESS_RULE)
    status_listen: Listen = setting(
        "listen address for health, metrics and status", "0.0.0.0:8081", ADDRESS_RULE
    )
    export_certs: Path = setting(
        "directory to export the workers' certificates to at the first start",
        "",
        _PATH_RULE,
        shown="not exported",
    )
    export_secrets: Path = setting(
        "file to export the workers' certificates to, as Kubernetes Secrets",
        "",
        _PATH_RULE,
        shown="not exported",
    )
    keep_blobs: Boolean = setting(
        "keep the received results after the tarball is made", False, "true or false"
    )

    advertise_address: Advertised = setting(
        "address workers connect to",
        "",
        "HOST or HOST:PORT, with an IPv6 address in brackets",
        shown="SONOBUOY_ADVERTISE_IP or the host name, with the listener's port",
    )
    sonobuoy_advertise_ip: Ip = setting(
        "IP address workers connect to if ADVERTISE_ADDRESS is unset",
        "",
        "an IP address",
        shown="unset",
    )
    server_names: Names = setting(
        "additional names and addresses for the server certificate",
        "",
        "comma-separated host names and IP addresses",
        shown="none",
    )
    worker_ca: Path = setting(
        "your own CA for the workers' certificates; only `ca.pem` is exported then",
        "",
        "a path, given with EXPORT_CERTS and without EXPORT_SECRETS",
        shown="the run's CA",
    )
    status_tls_cert: Path = setting(
        "certificate chain of the status listener", "", _PATH_RULE, shown="plain HTTP"
    )
    status_tls_key: Path = setting(
        "private key of STATUS_TLS_CERT",
        "",
        "a path, given together with STATUS_TLS_CERT",
        shown="plain HTTP",
    )
    status_tls_client_ca: Path = setting(
        "CA of clients that may read run data remotely",
        "",
        "a path, given only with STATUS_TLS_CERT",
        shown="none",
    )
    status_scope: Literal["local", "any"] = setting(
        "clients that may read run data: `local` (and those of STATUS_TLS_CLIENT_CA) or `any`",
        "local",
        "local or any",
    )
    status_values: Literal["sonobuoy", "strict"] = setting(
        "final status of a failed run in the annotation: complete (`sonobuoy`), failed (`strict`)",
        "sonobuoy",
        "sonobuoy or strict",
    )
    pod_namespace: OptionalName = setting(
        "namespace of the aggregator's Pod; enables the status annotations",
        "",
        NAME_RULE,
        shown="not in a cluster",
    )
    pod_name: OptionalName = setting(
        "name of the aggregator's Pod", "", NAME_RULE, shown="auto-detected by Sonobuoy's labels"
    )
    kubernetes_relax_x509_strict: Boolean = setting(
        "accept a cluster CA that Python 3.13's strict check rejects", False, "true or false"
    )
    log_level: LogLevel = rules.log_level()
    log_format: LogFormat = rules.log_format()

    retry_window_seconds: Integer = whole("how long a failed upload may be retried", 120, 1, 86_400)
    retry_window_cap_seconds: Integer = setting(
        "limit of the retry window, counted from the first failure",
        600,
        "an integer from RETRY_WINDOW_SECONDS to 86400",
        le=86_400,
    )
    hold_seconds: Integer = whole(
        "how long the run stays open for a late result after a timeout", 20, 0, 3_600
    )
    package_give_up_seconds: Integer = whole("how long packing is retried", 3_600, 0)
    upload_url_file: Path = setting(
        "file with the presigned https URL for uploading the tarball (PUT)",
        "",
        _PATH_RULE,
        shown="not uploaded",
    )
    upload_ca: Path = setting(
        "CA file for the host of that URL",
        "",
        "a path, given only with UPLOAD_URL_FILE",
        shown="the system's",
    )
    upload_give_up_seconds: Integer = whole(
        "time limit for the upload, including retries", 3_600, 1, 86_400
    )
    linger_seconds: Integer = whole(
        "how long workers get responses after the run is closed", 120, 0, 86_400
    )
    exit_when_finished: Boolean = setting(
        "exit when the run is over: 0 if it passed, 1 if not, 4 if it had to exit before",
        False,
        "true or false",
    )
    heartbeat_interval_seconds: Integer = whole(
        "heartbeat interval of workers; longer in large runs (at most 200 heartbeats per second)",
        15,
        1,
        3_600,
    )
    heartbeat_timeout_seconds: Integer = setting(
        "silence after which a worker that sends heartbeats is lost; at least four intervals",
        120,
        f"0 (never) or an integer to {LONGEST}",
        ge=0,
        le=LONGEST,
    )

    @property
    def in_job(self) -> bool:
        """Whether a Job starts it again unless it ends with 0, or with a verdict."""
        return self.exit_when_finished or bool(self.launch)

    def advertised(self, hostname: str, port: int) -> HostPort:
        """Return the address that workers are given; `port` is the listener's."""
        address = self.advertise_address or self.sonobuoy_advertise_ip or hostname
        try:
            return host_port(address)
        except ValueError:
            return HostPort(address, port)

    @field_validator("worker_ca")
    @classmethod
    def _with_files_alone(cls, value: str, info: ValidationInfo) -> str:
        if value and (not info.data.get("export_certs") or info.data.get("export_secrets")):
            raise ValueError
        return value

    @field_validator("status_tls_key")
    @classmethod
    def _with_its_certificate(cls, value: str, info: ValidationInfo) -> str:
        if bool(value) != bool(info.data.get("status_tls_cert", value)):
            raise ValueError
        return value

    @field_validator(*_ONLY_WITH)
    @classmethod
    def _only_with_another(cls, value: str, info: ValidationInfo) -> str:
        if value and not info.data.get(_ONLY_WITH[str(info.field_name)], value):
            raise ValueError
        return value

    @field_validator("retry_window_cap_seconds")
    @classmethod
    def _not_below_the_window(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("retry_window_seconds", value):
            raise ValueError
        return value
