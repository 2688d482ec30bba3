"""The aggregator's settings: every environment variable, its default and its rule.

Each is a flag of `status-aggregator run` too, by the same name: `RETRY_WINDOW_SECONDS` and
`--retry-window-seconds`. What needs a look at a file (the plan, a certificate) is not judged here.
Limits that nobody has to change are constants, in `aggregator.limits`.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, field_validator

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
from reporter.common.text import is_host

_DNS_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PORT = re.compile(r"[0-9]{1,5}")
_PATH_RULE = "a path"
_ADDRESS_RULE = "HOST:PORT, with an IPv6 address in brackets"
_MIB, _GIB = 2**20, 2**30


class HostPort(NamedTuple):
    """An address with a port; `str()` puts an IPv6 address in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        if _DNS_NAME.fullmatch(text) and is_host(text) and not text.replace(".", "").isdigit():
            return text
        raise


def host_port(value: object) -> HostPort:
    """Read HOST:PORT."""
    if isinstance(value, HostPort):
        return value
    host, colon, port = str(value).rpartition(":")
    if not colon or not _PORT.fullmatch(port) or int(port) > 65535:
        raise ValueError
    if host.startswith("[") and host.endswith("]"):
        return HostPort(str(ipaddress.IPv6Address(host[1:-1])), int(port))
    if ":" in host:
        raise ValueError
    return HostPort(_host(host), int(port))


def _advertised(text: str) -> str:
    """Read HOST:PORT, or a host alone, to which the listener's port is added later."""
    try:
        return str(host_port(text)) if text else ""
    except ValueError:
        return _host(text.removeprefix("[").removesuffix("]"))


def _ip(text: str) -> str:
    return str(ipaddress.ip_address(text)) if text else ""


def _names(text: str) -> str:
    return ",".join(_host(name.strip()) for name in text.split(",")) if text else ""


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError
    return text


def _optional_name(text: str) -> str:
    return object_name(text) if text else ""


Listen = Annotated[HostPort, BeforeValidator(host_port)]
Advertised = Annotated[str, AfterValidator(_advertised)]
Ip = Annotated[str, AfterValidator(_ip)]
Names = Annotated[str, AfterValidator(_names)]
Path = Annotated[str, AfterValidator(_path)]
OptionalName = Annotated[str, AfterValidator(_optional_name)]


def _whole(means: str, default: int, low: int, high: int = LONGEST) -> Any:
    return setting(means, default, f"an integer from {low} to {high}", ge=low, le=high)


def _file(means: str, shown: str, rule: str = _PATH_RULE) -> Any:
    """Declare a path that need not be given; `shown` says what is done without it."""
    return setting(means, "", rule, shown=shown)


def _switch(means: str) -> Any:
    return setting(means, False, "true or false")


class Settings(Variables):
    """Validated settings. Fields are the variables in lower case; all times are in seconds."""

    plan: Path = setting("run plan (JSON file)", ..., _PATH_RULE)
    launch: Path = _file("launch file written by `status-ctl run`", "nothing is launched")
    state: Path = setting(
        "directory that must survive a restart: database, results, keys", ..., _PATH_RULE
    )
    output: Path = setting("directory for the tarball", ..., _PATH_RULE)
    listen: Listen = setting("listen address for workers (HTTPS)", "0.0.0.0:8080", _ADDRESS_RULE)
    status_listen: Listen = setting(
        "listen address for health, metrics and status", "0.0.0.0:8081", _ADDRESS_RULE
    )
    export_certs: Path = _file(
        "directory to export the workers' certificates to at the first start", "not exported"
    )
    export_secrets: Path = _file(
        "file to export the workers' certificates to, as Kubernetes Secrets", "not exported"
    )
    keep_blobs: Boolean = _switch("keep the received results after the tarball is made")

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
    worker_ca: Path = _file(
        "your own CA for the workers' certificates; only `ca.pem` is exported then",
        "the run's CA",
        "a path, given with EXPORT_CERTS and without EXPORT_SECRETS",
    )
    status_tls_cert: Path = _file("certificate chain of the status listener", "plain HTTP")
    status_tls_key: Path = _file(
        "private key of STATUS_TLS_CERT",
        "plain HTTP",
        "a path, given together with STATUS_TLS_CERT",
    )
    status_tls_client_ca: Path = _file(
        "CA of clients that may read run data remotely",
        "none",
        "a path, given only with STATUS_TLS_CERT",
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
    kubernetes_relax_x509_strict: Boolean = _switch(
        "accept a cluster CA that Python 3.13's strict check rejects"
    )
    log_level: LogLevel = rules.log_level()
    log_format: LogFormat = rules.log_format()

    retry_window_seconds: Integer = _whole(
        "how long a failed upload may be retried", 120, 1, 86_400
    )
    retry_window_cap_seconds: Integer = setting(
        "limit of the retry window, counted from the first failure",
        600,
        "an integer from RETRY_WINDOW_SECONDS to 86400",
        le=86_400,
    )
    hold_seconds: Integer = _whole(
        "how long the run stays open for a late result after a timeout", 20, 0, 3_600
    )
    package_give_up_seconds: Integer = _whole("how long packing is retried", 3_600, 0)
    upload_url_file: Path = _file(
        "file with the presigned https URL for uploading the tarball (PUT)", "not uploaded"
    )
    upload_ca: Path = _file(
        "CA file for the host of that URL",
        "the system's",
        "a path, given only with UPLOAD_URL_FILE",
    )
    upload_give_up_seconds: Integer = _whole(
        "time limit for the upload, including retries", 3_600, 1, 86_400
    )
    linger_seconds: Integer = _whole(
        "how long workers get responses after the run is closed", 120, 0, 86_400
    )
    exit_when_finished: Boolean = _switch(
        "exit when the run is over: 0 if it passed, 1 if not, 4 if it had to exit before"
    )
    heartbeat_interval_seconds: Integer = _whole(
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

    max_result_bytes: Integer = _whole("largest result body", 512 * _MIB, 1, 4 * _GIB)
    disk_reserve_bytes: Integer = _whole(
        "disk space kept free; uploads that would use it are refused", 64 * _MIB, 0, 2**50
    )
    connection_memory_bytes: Integer = _whole(
        "memory for worker connections, 41 KiB each; beyond it they close after each response",
        128 * _MIB,
        4 * _MIB,
        2**40,
    )
    archive_max_members: Integer = _whole(
        "maximum number of members of an archive", 20_000, 1, 10_000_000
    )
    archive_max_file_bytes: Integer = _whole("largest file in an archive", _GIB, 1, 2**50)
    archive_max_bytes: Integer = _whole("total size of the files in an archive", 2 * _GIB, 1, 2**50)
    archive_seconds: Integer = _whole("timeout for verifying an archive", 60, 1, 3_600)

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

    @field_validator(
        "worker_ca",
        "status_tls_key",
        "retry_window_cap_seconds",
        "status_tls_client_ca",
        "upload_ca",
    )
    @classmethod
    def _beside_others(cls, value: Any, info: ValidationInfo) -> Any:
        """Judge a value with those before it. One of them that is wrong is no second problem."""
        before = info.data
        match info.field_name:
            case "worker_ca":
                exported = before.get("export_certs", value) and not before.get("export_secrets")
                wrong = value and not exported
            case "status_tls_key":
                wrong = bool(value) != bool(before.get("status_tls_cert", value))
            case "retry_window_cap_seconds":
                wrong = value < before.get("retry_window_seconds", value)
            case "status_tls_client_ca":
                wrong = value and not before.get("status_tls_cert", value)
            case _:
                wrong = value and not before.get("upload_url_file", value)
        if wrong:
            raise ValueError
        return value
