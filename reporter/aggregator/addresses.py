"""How addresses are read from settings: hosts, ports, lists of names."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator

from reporter.common.text import is_host

_DNS_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PORT = re.compile(r"[0-9]{1,5}")
ADDRESS_RULE = "HOST:PORT, with an IPv6 address in brackets"


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


Listen = Annotated[HostPort, BeforeValidator(host_port)]
Advertised = Annotated[str, AfterValidator(_advertised)]
Ip = Annotated[str, AfterValidator(_ip)]
Names = Annotated[str, AfterValidator(_names)]
