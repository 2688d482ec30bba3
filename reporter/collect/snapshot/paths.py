"""Where everything lies in a snapshot, as Sonobuoy's users know it.

Group and version are in the name of a file, so that no two resources have the same one. Every part
of a path is made safe: groups, plurals and names may come from anybody who runs an API server
behind this one.
"""

import hashlib
import re
from typing import Final

from reporter.kube.resources import Resource

INDEX: Final = "resources/index.json"
SERVER_VERSION: Final = "serverversion.json"
TOP: Final = frozenset({"resources", "hosts", "podlogs", SERVER_VERSION})
"""What a snapshot has at its top."""
_CORE: Final = "core"
_LONGEST: Final = 200
_UNSAFE = re.compile(rb"[^A-Za-z0-9._-]|^\.")


def segment(name: str) -> str:
    """Return a name as one component of a path: different names stay different."""
    raw = name.encode("utf-8", "surrogateescape")
    return _short(_UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], raw).decode("ascii"))


def file_name(resource: Resource) -> str:
    """Return `GROUP_VERSION_RESOURCE.json`; the core group is called `core`."""
    group = _part(resource.group) if resource.group else _CORE
    if resource.group == _CORE:  # another group
        group = "%63ore"
    return _short("_".join((group, _part(resource.version), _part(resource.plural)))) + ".json"


def _part(name: str) -> str:
    return segment(name).replace("_", "%5F")


def _short(safe: str) -> str:
    if 0 < len(safe) <= _LONGEST:
        return safe
    digest = hashlib.sha256(safe.encode("ascii")).hexdigest()[:16]
    return f"{safe[:_LONGEST]}%{digest}"


def list_path(resource: Resource, namespace: str) -> str:
    """Return the file for the objects of one namespace, or of the cluster where it is empty."""
    home = f"resources/ns/{segment(namespace)}" if namespace else "resources/cluster"
    return f"{home}/{file_name(resource)}"


def host_path(node: str, what: str) -> str:
    """Return the file for what a kubelet says: `configz` or `healthz`."""
    return f"hosts/{segment(node)}/{what}.json"


def log_path(namespace: str, pod: str, container: str, *, previous: bool = False) -> str:
    """Return the file of a container's log; no container has a dot in its name."""
    suffix = ".previous.txt" if previous else ".txt"
    return f"podlogs/{segment(namespace)}/{segment(pod)}/logs/{segment(container)}{suffix}"
