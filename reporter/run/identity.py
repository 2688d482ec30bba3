"""Whom a client certificate of a run stands for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reporter.run.plan import Key

ANY_NODE = "*"
"""The node part of a certificate that all nodes of a plugin share."""
_OURS = "urn:status-aggregator:"


def client_uri(run: str, plugin: str, node: str) -> str:
    """Return the URI that says whom a client certificate speaks for."""
    return f"{_OURS}{run}:{plugin}:{node}"


@dataclass(frozen=True, slots=True)
class Identity:
    """A plugin, its node (`*`: any), and the certificate's serial number in hexadecimal."""

    plugin: str
    node: str
    serial: str

    def permits(self, key: Key) -> bool:
        """Say whether it may speak for a key."""
        return self.plugin == key.plugin and self.node in (ANY_NODE, key.node)


def identity_of(certificate: Mapping[str, Any] | None, run: str) -> Identity | None:
    """Return the identity in a verified certificate, as `SSLObject.getpeercert` gives it.

    A URI of ours decides alone: one of another run, or two of them, is nobody, whatever the other
    names say. Without one, exactly one DNS name is the plugin, on any node: certificates of an
    operator's own CA look like that.
    """
    if not certificate:
        return None
    names = certificate.get("subjectAltName", ())
    serial = str(certificate.get("serialNumber", ""))
    ours = [value for kind, value in names if kind == "URI" and value.startswith(_OURS)]
    if ours:
        return _from_uri(ours, run, serial)
    match [value for kind, value in names if kind == "DNS"]:
        case [plugin]:
            return Identity(plugin, ANY_NODE, serial)
    return None


def _from_uri(uris: list[str], run: str, serial: str) -> Identity | None:
    prefix = f"{_OURS}{run}:"
    if len(uris) != 1 or not uris[0].startswith(prefix):
        return None
    plugin, _, node = uris[0].removeprefix(prefix).partition(":")
    return Identity(plugin, node, serial) if plugin and node else None
