"""Which volume the result file lies on, and which containers can write to it."""

import posixpath
from collections.abc import Mapping
from typing import Any

from reporter.common.objects import items, text

Object = Mapping[str, Any]


def declared(spec: Object, name: str) -> Object:
    """Return the container `name` of a Pod's spec, of any kind; empty if there is none."""
    everyone = (*items(spec, "containers"), *items(spec, "initContainers"))
    return next((c for c in everyone if text(c, "name") == name), {})


def writers(spec: Object, reporter: str, path: str) -> list[str]:
    """List the regular containers that mount the volume of `path` writable."""
    own = declared(spec, reporter)
    seen = [own] if own else items(spec, "containers")
    volume = next((found for c in seen if (found := volume_of(c, path))), "")
    return [text(c, "name") for c in items(spec, "containers") if writes(c, volume)]


def empty_dir(spec: Object, reporter: str, path: str) -> str:
    """Return the name of the emptyDir that `path` is on, or nothing if it is on another volume.

    The reporter's own mount identifies the volume.
    """
    volume = volume_of(declared(spec, reporter), path)
    kind = next((v for v in items(spec, "volumes") if text(v, "name") == volume), {})
    return volume if isinstance(kind.get("emptyDir"), Mapping) else ""


def init_writes(spec: Object, reporter: str, volume: str) -> bool:
    """Return whether an init container besides the reporter mounts a volume writable."""
    others = [c for c in items(spec, "initContainers") if text(c, "name") != reporter]
    return any(writes(c, volume) for c in others)


def writes(container: Object, volume: str) -> bool:
    """Return whether a container mounts a volume writable."""
    return any(
        text(mount, "name") == volume and mount.get("readOnly") is not True
        for mount in items(container, "volumeMounts")
    )


def volume_of(container: Object, path: str) -> str:
    """Return the name of the volume that `path` lies on."""
    return text(mount_of(container, path), "name")


def mount_of(container: Object, path: str) -> Object:
    """Return the mount that `path` lies on: the one with the longest path; empty without one."""
    path, found, longest = posixpath.normpath(path), dict[str, Any](), -1
    for mount in items(container, "volumeMounts"):
        base = _at(mount).rstrip("/")
        if path.startswith(base + "/") and len(base) > longest:
            found, longest = dict(mount), len(base)
    return found


def shares(container: Object, mount: Object, path: str) -> bool:
    """Return whether a container can write the file that `mount` of another shows at `path`.

    Mounted at the same path, both have to be of the same part of the volume.
    """
    file = posixpath.join(_part(mount), posixpath.relpath(path, _at(mount)))
    for each in items(container, "volumeMounts"):
        if text(each, "name") != text(mount, "name") or each.get("readOnly") is True:
            continue
        if text(each, "subPathExpr") or text(mount, "subPathExpr"):
            return True  # known only in the Pod
        part = _part(each)
        if _at(each) == _at(mount):
            found = part == _part(mount)
        else:
            found = not part or file.startswith(part + "/")
        if found:
            return True
    return False


def _at(mount: Object) -> str:
    return posixpath.normpath(text(mount, "mountPath"))


def _part(mount: Object) -> str:
    """Return which folder of its volume a mount shows; empty for all of it."""
    return posixpath.normpath(f"/{text(mount, 'subPath')}").strip("/")
