"""The objects, their versions, and the log of events that watches read."""

import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from tests.fakekube.answers import already_exists, not_found
from tests.fakekube.kinds import KINDS, WITHOUT_STATUS

Object = dict[str, Any]


def copied(found: Any) -> Any:
    """A copy of what JSON can say, five times as fast as `copy.deepcopy`."""
    if isinstance(found, dict):
        return {name: copied(value) for name, value in found.items()}
    return [copied(value) for value in found] if isinstance(found, list) else found


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
        self.logs: dict[tuple[str, str, str], bytes] = {}
        """By namespace, Pod and container."""

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """Return a copy; 404 when there is none."""
        with self.changed:
            found = self._objects.get((kind, namespace, name))
            if found is None:
                raise not_found(kind, name)
            return copied(found)

    def find(self, kind: str, namespace: str | None) -> list[Object]:
        """Return copies of all objects of that kind there; None means all namespaces."""
        with self.changed:
            return [copied(found) for found in self.all(kind, namespace)]

    def all(self, kind: str, namespace: str | None) -> Iterator[Object]:
        """Yield the objects themselves, for callers that hold `changed` and alter nothing."""
        for (one, space, _), found in self._objects.items():
            if one == kind and namespace in {None, space}:
                yield found

    def has_namespace(self, name: str) -> bool:
        """Whether there is that Namespace; those in which a test put something need not be made."""
        with self.changed:
            return name == "default" or any(
                name == (own if kind == "Namespace" else space)
                for kind, space, own in self._objects
            )

    def create(self, kind: str, given: Object, *, dry_run: bool = False) -> Object:
        """Add it with what the server fills in: uid, creationTimestamp, resourceVersion."""
        made: Object = copied(given)
        meta: Object = made.setdefault("metadata", {})
        if KINDS[kind].namespaced:
            meta.setdefault("namespace", "default")
        else:
            meta.pop("namespace", None)
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", stamp(self._clock()))
        status = {} if kind in WITHOUT_STATUS else {"status": {}}
        made = {"kind": kind, "apiVersion": KINDS[kind].api_version, **status} | made
        with self.changed:
            if _place(kind, meta) in self._objects:
                raise already_exists(kind, meta["name"])
            return made if dry_run else self._keep(kind, "ADDED", made)

    def replace(self, kind: str, new: Object) -> Object:
        """Store a changed object; one that did not change keeps its version and causes no event."""
        with self.changed:
            meta = new["metadata"]
            if self.get(*_place(kind, meta)) == new:
                return copied(new)
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

    def collect(self, owner: str) -> None:
        """Take away what has this owner and no other, and what that owned."""
        with self.changed:
            for place, found in list(self._objects.items()):
                owners = [each["uid"] for each in found["metadata"].get("ownerReferences", [])]
                if owners == [owner] and place in self._objects:
                    self.delete(*place)
                    self.collect(found["metadata"]["uid"])

    def empty(self, namespace: str) -> None:
        """Take away all that is in this namespace."""
        with self.changed:
            for place in [each for each in self._objects if each[1] == namespace]:
                self.delete(*place)

    def compact(self) -> None:
        """Forget old versions: a watch from one of them is told that it is too old."""
        with self.changed:
            self.oldest = self.version

    def _keep(self, kind: str, event: str, new: Object) -> Object:
        meta = new["metadata"]
        kept = copied(new)
        self._objects[_place(kind, meta)] = kept
        return self._log(kind, event, kept)

    def _log(self, kind: str, event: str, found: Object) -> Object:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, event, copied(found)))
        self.changed.notify_all()
        return copied(found)


def _place(kind: str, meta: Object) -> tuple[str, str, str]:
    return kind, meta.get("namespace", ""), meta["name"]
