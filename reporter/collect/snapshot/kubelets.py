"""What the kubelets say: their configuration and whether they are well."""

from collections.abc import Mapping
from typing import Any, Protocol

from reporter.collect.snapshot.index import Collected
from reporter.collect.snapshot.limits import SnapshotEnded
from reporter.collect.snapshot.paths import host_path
from reporter.collect.snapshot.redact import redact
from reporter.collect.snapshot.tree import Site, encoded, write
from reporter.errors import KubeError

_PROXY = "/api/v1/nodes/{name}/proxy/"


class Contents(Protocol):
    """What is asked of the API server."""

    def document(self, path: str, names: Mapping[str, str], /) -> dict[str, Any]:
        """Return the JSON object at a path."""

    def content(self, path: str, names: Mapping[str, str], /) -> bytes:
        """Return what is at a path."""


def collect_host(api: Contents, site: Site, node: str) -> Collected:
    """Ask one kubelet through the API server; one that does not answer is told."""
    found, names = Collected(), {"name": node}

    def configz() -> dict[str, Any]:
        said = api.document(f"{_PROXY}configz", names)
        found.redacted += redact(said)
        return said

    def healthz() -> dict[str, Any]:
        api.content(f"{_PROXY}healthz", names)
        return {"status": 200}

    for what, ask in (("configz", configz), ("healthz", healthz)):
        try:
            data = encoded(site.course.tried(ask))
            found.truncated = site.room.take(len(data), files=1)
            if found.truncated:
                break
            write(site.root, host_path(node, what), data)
            found.count += 1
            found.size += len(data)
        except SnapshotEnded as why:
            found.truncated = str(why)
            break
        except (KubeError, OSError, ValueError, RecursionError) as error:
            found.error = f"{node}: {error}"
    return found
