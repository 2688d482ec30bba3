"""What the containers that are added to a Pod have in common: what they mount, and their user.

Keys and tokens are files of such a container alone: in the environment or in a shared volume the
plugin could read them. Under the contract `link` no container is added, and the plugin's own has
the key.
"""

from collections.abc import Mapping
from typing import Any, Final

from reporter.common.manifest import filled
from reporter.common.objects import Object, section
from reporter.run.definition import RESERVED, RESERVED_VOLUMES

SIDECAR, WORKER = RESERVED
CERTIFICATES, TOKEN, CONFIG = RESERVED_VOLUMES

_CERTIFICATES_AT = "/var/run/status-aggregator"
_PEMS: Final = {
    "CA_CERT_FILE": "ca.crt",
    "CLIENT_CERT_FILE": "tls.crt",
    "CLIENT_KEY_FILE": "tls.key",
}


def variables(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Write variables as a container has them."""
    return [{"name": name, "value": value} for name, value in values.items()]


def from_field(name: str, path: str) -> dict[str, Any]:
    """Write a variable that Kubernetes fills in from the Pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def certificate_files() -> dict[str, str]:
    """Return the variables that name the files of `certificates_mount`."""
    return {name: f"{_CERTIFICATES_AT}/{file}" for name, file in _PEMS.items()}


def certificates_mount() -> dict[str, Any]:
    """Return the mount of the client's certificate."""
    return {"name": CERTIFICATES, "mountPath": _CERTIFICATES_AT, "readOnly": True}


def certificates_volume(secret: str) -> dict[str, Any]:
    """Return the volume with the client's certificate."""
    return {"name": CERTIFICATES, "secret": {"secretName": secret}}


def token_mount() -> dict[str, Any]:
    """Return the mount of the token of `token_volume`, where clients look for it."""
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    return {"name": TOKEN, "mountPath": path, "readOnly": True}


def token_volume() -> dict[str, Any]:
    """Return the volume with a token of the Pod's account."""
    (found,) = filled("reporter.launch", "token-volume.yaml", {"name": TOKEN})
    return found


def security(plugin: Object, pod: Object) -> dict[str, Any]:
    """Return the restricted profile, with the user of the plugin's container where it names one.

    Its files may be readable for nobody else. A Pod-wide user holds for both by itself, and root,
    which some plugins ask for, must not be forbidden then: the kubelet would not start us.
    """
    own, whole = section(plugin, "securityContext"), section(pod, "securityContext")
    same = {name: own[name] for name in ("runAsUser", "runAsGroup") if name in own}
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": {**whole, **same}.get("runAsUser") != 0,
        "seccompProfile": {"type": "RuntimeDefault"},
        **same,
    }
