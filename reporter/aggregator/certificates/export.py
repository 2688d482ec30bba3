"""Handing certificates out: as files beside each other, or as Secret manifests.

Everything is written 0600, each file whole or not at all. The CA certificate comes last: who sees
it sees everything. Nothing is kept or read here.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reporter.aggregator.certificates.run import Issued
from reporter.common.private_file import private_directory, write_private
from reporter.common.yaml_text import to_yaml
from reporter.pki.issuing import Pair
from reporter.pki.status import StatusIssued
from reporter.run.connection_file import ConnectionFile, encode
from reporter.run.identity import ANY_NODE
from reporter.run.plan import GLOBAL, Key

_SECRET_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SECRET_NAME = 253


def export_files(issued: Issued, directory: Path, *, url: str) -> None:
    """Write `NAME.crt`, `NAME.key` and `NAME.json` of every plugin, and `ca.pem`. Raises OSError.

    `NAME.json` is what `WORKER_CONFIG_FILE` reads: all that a worker needs to reach `url`, which is
    left out where it is empty. Files of single nodes are `NAME@NODE.crt` and so on.
    """
    files: dict[str, bytes] = {}
    for key, pair in issued.clients.items():
        files |= _pair(_file_name(key), pair)
        files[f"{_file_name(key)}.json"] = _worker_file(key, pair, issued.ca, url)
    _write_all(directory, files, issued.ca)


def _worker_file(key: Key, pair: Pair, ca: bytes, url: str) -> bytes:
    document = {
        **({"aggregatorurl": url} if url else {}),
        "resulttype": key.plugin,
        "cacert": ca.decode("ascii"),
        "clientcert": pair.certificate.decode("ascii"),
        "clientkey": pair.key.decode("ascii"),
    }
    if key.node not in {ANY_NODE, GLOBAL}:
        document["nodename"] = key.node
    return json.dumps(document, indent=2).encode() + b"\n"


def export_status(issued: StatusIssued, directory: Path, *, address: str, now: float) -> None:
    """Write `server.crt`, `server.key`, `client.crt`, `client.key` and `ca.pem`. Raises OSError.

    And `connection.json`, by which `status-ctl` finds `address` and is let in.
    """
    files = _pair("server", issued.server) | _pair("client", issued.client)
    _write_all(directory, files, issued.ca)
    connection = ConnectionFile(
        address,
        now,
        issued.ca.decode("ascii"),
        issued.client.certificate.decode("ascii"),
        issued.client.key.decode("ascii"),
    )
    write_private(directory / "connection.json", encode(connection))


def export_secrets(issued: Issued, path: Path, *, namespace: str | None = None) -> None:
    """Write the manifests of `secrets` as one YAML file. Raises OSError."""
    private_directory(path.parent)
    documents = map(to_yaml, secrets(issued, namespace=namespace))
    write_private(path, "---\n".join(documents).encode())


def secrets(issued: Issued, *, namespace: str | None = None) -> list[dict[str, Any]]:
    """Return one Secret of type `kubernetes.io/tls` per client, with the CA as `ca.crt`.

    It is named after the plugin (and the node); a name that Kubernetes would not take is made one,
    and a digest keeps it apart from others.
    """
    taken: set[str] = set()
    found = []
    for key, pair in issued.clients.items():
        name = _secret_name(key, taken)
        taken.add(name)
        found.append(_secret(name, namespace, issued, key, pair))
    return found


def _secret(
    name: str, namespace: str | None, issued: Issued, key: Key, pair: Pair
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            # Not labels, whose values may have only 63 characters.
            "annotations": {
                "status-reporter.io/run": issued.run,
                "status-reporter.io/plugin": key.plugin,
                "status-reporter.io/node": key.node,
            },
        },
        "type": "kubernetes.io/tls",
        "data": {
            "ca.crt": _base64(issued.ca),
            "tls.crt": _base64(pair.certificate),
            "tls.key": _base64(pair.key),
        },
    }


def _pair(name: str, pair: Pair) -> dict[str, bytes]:
    return {f"{name}.key": pair.key, f"{name}.crt": pair.certificate}


def _write_all(directory: Path, files: Mapping[str, bytes], ca: bytes) -> None:
    private_directory(directory)
    # One that is there is of a start that was killed before it could keep what it made.
    (directory / "ca.pem").unlink(missing_ok=True)
    for name, data in files.items():
        write_private(directory / name, data)
    write_private(directory / "ca.pem", ca)


def _file_name(key: Key) -> str:
    return key.plugin if key.node in {ANY_NODE, GLOBAL} else f"{key.plugin}@{key.node}"


def _secret_name(key: Key, taken: set[str]) -> str:
    wished = f"status-aggregator-{_file_name(key).replace('@', '.')}"
    if _SECRET_NAME.fullmatch(wished) and len(wished) <= _MAX_SECRET_NAME and wished not in taken:
        return wished
    digest = hashlib.sha256(f"{key.plugin}/{key.node}".encode()).hexdigest()[:12]
    plain = re.sub(r"[^a-z0-9]+", "-", wished.lower())
    return f"{plain[: _MAX_SECRET_NAME - 13].strip('-')}-{digest}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
