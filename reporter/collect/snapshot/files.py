"""The files of a snapshot: where they lie, what room they have, and how lists are written.

They lie as Sonobuoy's users know it. Group and version are in the name of a file, so that no two
resources have the same one. Every part of a path is made safe: groups, plurals and names may come
from anybody who runs an API server behind this one.
"""

import hashlib
import json
import os
import re
import threading
from pathlib import Path
from typing import Any, BinaryIO, Final

from reporter.collect.snapshot.index import Collected, Truncated
from reporter.kube.resources import Resource

INDEX: Final = "resources/index.json"
SERVER_VERSION: Final = "serverversion.json"
TOP: Final = frozenset({"resources", "hosts", "podlogs", SERVER_VERSION})
"""What a snapshot has at its top."""
_CORE: Final = "core"
_LONGEST: Final = 200
_UNSAFE = re.compile(rb"[^A-Za-z0-9._-]|^\.")
_END: Final = b"\n]}\n"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


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


def encoded(found: Any) -> bytes:
    """Write a JSON value on one line. Raises ValueError, RecursionError."""
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


class Folder:
    """A directory, and the bytes and files that may still be written there. Threads share it.

    Methods raise OSError.
    """

    def __init__(self, root: Path, size: int, files: int) -> None:
        self.root = root
        self._lock, self._size, self._files = threading.Lock(), size, files

    def take(self, size: int, *, files: int) -> None:
        """Take room. Raises `Truncated` if there is not enough, and takes none then."""
        with self._lock:
            if size > self._size:
                raise Truncated("size limit reached")
            if files > self._files:
                raise Truncated("file limit reached")
            self._size -= size
            self._files -= files

    def give_back(self, size: int, *, files: int) -> None:
        """Return what was taken for something that is not kept."""
        with self._lock:
            self._size += size
            self._files += files

    def write(self, path: str, data: bytes) -> None:
        """Write a file that needs no room: there are few of them."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def add(self, path: str, data: bytes, found: Collected, *, redacted: int = 0) -> None:
        """Write a file and count it. Raises `Truncated` if there is no room."""
        self.take(len(data), files=1)
        self.write(path, data)
        found.add(Collected(1, len(data), redacted=redacted))


class ListFiles:
    """The files of one resource, counted in `found`: a list, in as many as it has namespaces.

    It is written object by object; one file is open at a time. Closed, each of them is valid JSON.
    `most` is how many bytes they may have together, within the room that all resources share.
    Raises OSError.
    """

    def __init__(self, folder: Folder, resource: Resource, most: int, found: Collected) -> None:
        self._folder, self._resource, self._most, self._found = folder, resource, most, found
        self._begun: set[str] = set()
        self._namespace: str | None = None
        self._file: BinaryIO | None = None

    def add(self, namespace: str, found: dict[str, Any], redacted: int) -> None:
        """Add an object. Raises `Truncated` if there is no room for it."""
        data = encoded(found)
        new = namespace not in self._begun
        start = self._start() if new else b",\n"
        size = len(start) + len(data) + (len(_END) if new else 0)
        if self._found.size + size > self._most:
            raise Truncated("resource size limit reached")
        self._folder.take(size, files=1 if new else 0)
        if namespace != self._namespace:
            self._open(namespace)
        assert self._file is not None
        self._file.write(start + data)
        self._found.add(Collected(1, size, redacted=redacted))

    def close(self) -> None:
        """End the file that is open."""
        if self._file is not None:
            file, self._file, self._namespace = self._file, None, None
            with file:
                file.write(_END)

    def discard(self) -> None:
        """Remove all of them: the list begins again."""
        self.close()
        for each in self._begun:
            self._place(each).unlink()
        self._folder.give_back(self._found.size, files=len(self._begun))
        self._begun.clear()
        self._found.count = self._found.size = self._found.redacted = 0

    def _open(self, namespace: str) -> None:
        self.close()
        place = self._place(namespace)
        place.parent.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(os.open(place, _NEW, 0o644), "wb")
        if namespace in self._begun:
            # Some servers do not sort their lists by namespaces.
            file.seek(-len(_END), os.SEEK_END)
            file.truncate()
        self._begun.add(namespace)
        self._file, self._namespace = file, namespace

    def _place(self, namespace: str) -> Path:
        return self._folder.root / list_path(self._resource, namespace)

    def _start(self) -> bytes:
        head = encoded(
            {"apiVersion": self._resource.api_version, "kind": f"{self._resource.kind}List"}
        )
        return head[:-1] + b',"items":[\n'
