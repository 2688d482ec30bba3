"""Where the adapter leaves its result, and how the reporter gets to see it."""

import posixpath
from dataclasses import dataclass
from typing import Final

from reporter.common.objects import Object, items, section, text

VOLUME: Final = "status-reporter-results"
_AT: Final = "/results"
_HIDING: Final = frozenset(
    {"/app/cmd", "/app/reporter", "/app/site", "/dev", "/etc", "/proc", "/sys"}
    | {"/usr/bin", "/usr/lib", "/usr/local/bin", "/bin", "/lib", "/lib64", "/sbin"}
    | {"/var/run/secrets/kubernetes.io/serviceaccount", "/var/run/status-aggregator"}
)
"""What the reporter needs of its own file system: a mount there, or above, would hide it."""
_NOT_WRITABLE: Final = {
    "configMap": "a ConfigMap",
    "secret": "a Secret",
    "projected": "a projected volume",
    "downwardAPI": "a downward API volume",
    "image": "an image",
}


@dataclass(frozen=True, slots=True)
class Results:
    """The reporter's mount and path. `added` is the mount that the adapter lacks, or None."""

    mount: Object
    path: str
    added: Object | None = None
    remark: str = ""


def results(pod: Object, adapter: Object, path: str) -> Results | str:
    """Find where the adapter writes `path`, or why it cannot; a mount is added if none is there."""
    path = posixpath.normpath(path)
    leading = [
        (at, mount)
        for mount in items(adapter, "volumeMounts")
        if _leads(at := posixpath.normpath(text(mount, "mountPath")), path)
    ]
    if not leading:
        new = {"name": VOLUME, "mountPath": posixpath.dirname(path)}
        hidden = f"the new volume hides what the adapter's image has at {new['mountPath']}"
        return _seen(new, path, added=new, remark=hidden if _hides(new["mountPath"]) else "")
    at, mount = max(leading, key=lambda each: len(each[0]))
    name = text(mount, "name")
    if at == path:
        return f"{path} is mounted as a single file"
    if mount.get("readOnly") is True:
        return f"{at} is mounted read-only"
    if text(mount, "subPathExpr"):
        return f"{at} is mounted with subPathExpr, which the reporter cannot follow"
    volume = next((each for each in items(pod, "volumes") if text(each, "name") == name), {})
    kind = next((word for key, word in _NOT_WRITABLE.items() if key in volume), "")
    if kind:
        return f"{at} is {kind}, which cannot be written"
    if section(volume, "persistentVolumeClaim").get("readOnly") is True:
        return f"{at} is a read-only claim"
    remark = ""
    if "emptyDir" not in volume:
        remark = f"{at} is not an emptyDir: a result that is older than the Pod does not count"
    kept = {key: mount[key] for key in ("name", "mountPath", "subPath") if key in mount}
    return _seen(kept, path, remark=remark)


def _seen(mount: Object, path: str, added: Object | None = None, remark: str = "") -> Results:
    """Mount it where the adapter does, or elsewhere where that would hide the reporter's files."""
    at = posixpath.normpath(text(mount, "mountPath"))
    ours = {**mount, "readOnly": True}
    if _hides(at):
        ours["mountPath"] = _AT
        path = f"{_AT}/{path[len(at) :].lstrip('/')}"
    return Results(ours, path, added, remark)


def _hides(at: str) -> bool:
    return any(_leads(at, each) for each in _HIDING)


def _leads(at: str, path: str) -> bool:
    return at == path or path.startswith(f"{at.rstrip('/')}/")
