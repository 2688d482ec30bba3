"""One watch: which events come, when bookmarks come, and how it ends."""

import time
from collections.abc import Iterator
from typing import Any

from tests.fakekube.answers import status
from tests.fakekube.api import Target
from tests.fakekube.journal import Entry
from tests.fakekube.kinds import KINDS
from tests.fakekube.selectors import FieldSelector, LabelSelector
from tests.fakekube.store import Store

Event = dict[str, Any]

LAST_BOOKMARK_SECONDS = 1.5
"""How long before its end a watch that is not short gets its last bookmark."""


class Stream:
    """Iterate for events, or None when nothing has come for a moment."""

    def __init__(self, entry: Entry, target: Target, store: Store, bookmark_every: float) -> None:
        self._store = store
        self._kind, self._namespace = target.kind, target.namespace
        self._fields, self._labels = FieldSelector(entry), LabelSelector(entry)
        self._bookmarks = entry.query.get("allowWatchBookmarks") == "true"
        self._every = bookmark_every
        self._seconds = float(entry.query.get("timeoutSeconds") or "inf")
        self._version = int(entry.query.get("resourceVersion") or "0")

    def __iter__(self) -> Iterator[Event | None]:
        started = time.monotonic()
        end = started + self._seconds
        with self._store.changed:
            place = len(self._store.events)
            first, too_old = self._first(place)
        yield from first
        if too_old:
            return
        marks = self._marks(started, end)
        due = next(marks, None)
        while (now := time.monotonic()) < end:
            with self._store.changed:
                if len(self._store.events) == place:
                    self._store.changed.wait(min(0.05, end - now))
                fresh = self._store.events[place:]
                place = len(self._store.events)
            yield from self._wanted(fresh, self._version)
            if due is not None and due <= time.monotonic():
                yield self._bookmark({})
                due = next(marks, None)
            yield None

    def _first(self, place: int) -> tuple[list[Event], bool]:
        if self._version:
            if self._version < self._store.oldest:
                message = f"too old resource version: {self._version} ({self._store.oldest})"
                return [{"type": "ERROR", "object": status(410, "Expired", message)}], True
            return list(self._wanted(self._store.events[:place], self._version)), False
        now = [
            {"type": "ADDED", "object": found}
            for found in self._store.find(self._kind, self._namespace or None)
            if self._fits(found)
        ]
        if self._bookmarks:
            now.append(self._bookmark({"k8s.io/initial-events-end": "true"}))
        return now, False

    def _wanted(self, log: list[tuple[int, str, Any]], after: int) -> Iterator[Event]:
        for version, event, found in log:
            if version > after and found["kind"] == self._kind and self._fits(found):
                yield {"type": event, "object": found}

    def _fits(self, found: Event) -> bool:
        meta = found["metadata"]
        return (
            self._namespace in {"", meta.get("namespace", "")}
            and self._fields.fits(found)
            and self._labels.fits(found)
        )

    def _marks(self, started: float, end: float) -> Iterator[float]:
        if not self._bookmarks:
            return
        due = started + self._every
        last = end - LAST_BOOKMARK_SECONDS if self._seconds >= 10 else end
        while due < last:
            yield due
            due += self._every
        if last < end:
            yield last

    def _bookmark(self, annotations: dict[str, str]) -> Event:
        meta: dict[str, Any] = {
            "resourceVersion": str(self._store.version),
            "creationTimestamp": None,
        }
        if annotations:
            meta["annotations"] = annotations
        found = {"kind": self._kind, "apiVersion": KINDS[self._kind].api_version, "metadata": meta}
        spec = {"containers": None} if self._kind == "Pod" else {"template": {"spec": {}}}
        return {"type": "BOOKMARK", "object": found | {"spec": spec, "status": {}}}
