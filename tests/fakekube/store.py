"""The objects, their versions, and the log of events that watches read."""

import copy
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.fakekube.answers import already_exists, not_found

Object = dict[str, Any]
API_VERSIONS = {"Pod": "v1", "Job": "batch/v1", "Event": "v1"}


def stamp(moment: datetime) -> str:
    """Return the time as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Objects by kind, namespace and name. `changed` guards them and is told of every change."""

    def __init__(self, changed: threading.Condition, clock: Callable[[], datetime]) -> None:
        self.changed = changed
        self._clock = clock
        self._objects: dict[tuple[str, str, str], Object] = {}
        self.version = 1000
        self.oldest = 0
        """Watches from before this version are too old."""
        self.events: list[tuple[int, str, Object]] = []
        """Version, type and object of every event since the start."""

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """Return a copy; 404 when there is none."""
        with self.changed:
            found = self._objects.get((kind, namespace, name))
            if found is None:
                raise not_found(kind, name)
            return copy.deepcopy(found)

    def find(self, kind: str, namespace: str | None) -> list[Object]:
        """Return copies of all objects of that kind there; None means all namespaces."""
        with self.changed:
            return [
                copy.deepcopy(found)
                for (one, space, _), found in self._objects.items()
                if one == kind and namespace in {None, space}
            ]

    def create(self, kind: str, given: Object) -> Object:
        """Add it with what the server fills in: uid, creationTimestamp, resourceVersion."""
        made: Object = copy.deepcopy(given)
        meta: Object = made.setdefault("metadata", {})
        meta.setdefault("namespace", "default")
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", stamp(self._clock()))
        status = {} if kind == "Event" else {"status": {}}
        made = {"kind": kind, "apiVersion": API_VERSIONS[kind], **status} | made
        with self.changed:
            if (kind, meta["namespace"], meta["name"]) in self._objects:
                raise already_exists(kind, meta["name"])
            return self._keep(kind, "ADDED", made)

    def replace(self, kind: str, new: Object) -> Object:
        """Store a changed object; one that did not change keeps its version and causes no event."""
        with self.changed:
            meta = new["metadata"]
            if self.get(kind, meta["namespace"], meta["name"]) == new:
                return copy.deepcopy(new)
            return self._keep(kind, "MODIFIED", new)

    def update(
        self, kind: str, namespace: str, name: str, change: Callable[[Object], Object | None]
    ) -> Object:
        """Apply `change`, which alters the object or returns another one."""
        with self.changed:
            new = self.get(kind, namespace, name)
            return self.replace(kind, change(new) or new)

    def delete(self, kind: str, namespace: str, name: str) -> Object:
        """Take it away; a watch sees DELETED with its last state."""
        with self.changed:
            last = self.get(kind, namespace, name)
            del self._objects[kind, namespace, name]
            return self._log(kind, "DELETED", last)

    def compact(self) -> None:
        """Forget old versions: a watch from one of them is told that it is too old."""
        with self.changed:
            self.oldest = self.version

    def _keep(self, kind: str, event: str, new: Object) -> Object:
        meta = new["metadata"]
        kept = copy.deepcopy(new)
        self._objects[kind, meta["namespace"], meta["name"]] = kept
        return self._log(kind, event, kept)

    def _log(self, kind: str, event: str, found: Object) -> Object:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, event, copy.deepcopy(found)))
        self.changed.notify_all()
        return copy.deepcopy(found)
