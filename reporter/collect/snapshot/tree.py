"""The files of a snapshot on the disk.

A list is written object by object, in as many files as it has namespaces; one is open at a time.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from reporter.collect.snapshot.limits import Course, Room
from reporter.collect.snapshot.paths import list_path
from reporter.kube.resources import Resource

_END = b"\n]}\n"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Site:
    """Where files go, what room they have, and until when. Threads share it."""

    root: Path
    room: Room
    course: Course


def encoded(found: Any) -> bytes:
    """Write a JSON value on one line. Raises ValueError, RecursionError."""
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def write(root: Path, path: str, data: bytes) -> None:
    """Write a file below `root`. Raises OSError."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as file:
        file.write(data)


class ListFiles:
    """The files of one resource. Closed, each of them is valid JSON. Raises OSError.

    `most` is how many bytes they may have together, within the room that all resources share.
    """

    def __init__(self, site: Site, resource: Resource, most: int) -> None:
        self._root, self._resource, self._room = site.root, resource, site.room
        self._most, self.size, self.count = most, 0, 0
        self._written: dict[str, tuple[int, int]] = {}  # objects and bytes by namespace
        self._namespace: str | None = None
        self._file: BinaryIO | None = None

    def add(self, namespace: str, found: dict[str, Any]) -> str:
        """Add an object; return nothing, or why there is no room for it."""
        data = encoded(found)
        new = namespace not in self._written
        start = self._start() if new else b",\n"
        size = len(start) + len(data) + (len(_END) if new else 0)
        if self.size + size > self._most:
            return "resource size limit reached"
        if why := self._room.take(size, files=1 if new else 0):
            return why
        self.size += size
        if namespace != self._namespace:
            self._open(namespace)
        assert self._file is not None
        self._file.write(start + data)
        count, bytes_before = self._written.get(namespace, (0, 0))
        self._written[namespace] = count + 1, bytes_before + size
        self.count += 1
        return ""

    def close(self) -> None:
        """End the file that is open."""
        if self._file is not None:
            file, self._file, self._namespace = self._file, None, None
            with file:
                file.write(_END)

    def discard(self, namespace: str | None) -> None:
        """Remove the file of a namespace; all of them for None."""
        self.close()
        for each in [*self._written] if namespace is None else [namespace]:
            count, size = self._written.pop(each, (0, 0))
            if count:
                self._place(each).unlink()
                self._room.give_back(size, files=1)
                self.size, self.count = self.size - size, self.count - count

    def _open(self, namespace: str) -> None:
        self.close()
        place = self._place(namespace)
        place.parent.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(os.open(place, _NEW, 0o644), "wb")
        if namespace in self._written:
            # Some servers do not sort their lists by namespaces.
            file.seek(-len(_END), os.SEEK_END)
            file.truncate()
        self._file, self._namespace = file, namespace

    def _place(self, namespace: str) -> Path:
        return self._root / list_path(self._resource, namespace)

    def _start(self) -> bytes:
        head = encoded(
            {"apiVersion": self._resource.api_version, "kind": f"{self._resource.kind}List"}
        )
        return head[:-1] + b',"items":[\n'
