"""Environment variables that the kubelet sets for the Services of a Pod's namespace."""

import re

_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def is_service_link(variable: str, value: str) -> bool:
    """Return whether a Service's name made this variable.

    A Service `metrics` gives every container METRICS_PORT=tcp://10.0.0.1:9090, which is how Docker
    linked containers, and nobody's setting.
    """
    return variable.endswith("_PORT") and _ADDRESS.match(value) is not None


def service_link_ignored(variable: str, value: str) -> str:
    """Say in one line that such a variable is not used."""
    return f"{variable}={value[:64]!r}: set by Kubernetes for a Service, not a setting"
