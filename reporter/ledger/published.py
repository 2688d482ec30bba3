"""What readers see of a ledger: the rows that have been committed, by their revisions.

Belongs to the event loop. No SQL, no thread and no file lives here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from reporter.ledger.engine import Changes
from reporter.ledger.transaction import Run
from reporter.run.entry import Entry, State
from reporter.run.heartbeats import Beat
from reporter.run.plan import Key
from reporter.run.progress import StoredProgress
from reporter.run.state import Kind, Snapshot


class Published:
    """A run as the transactions have told it, and who wants to hear of more."""

    run: Run

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.due_at: float | None = None
        """When time runs out for the first entry."""
        self._tally: Mapping[Kind, int] = {}
        self._tests: Mapping[str, int] = {}
        self._bytes = 0
        # The last change of each key, in the order of the revisions.
        self._revisions: dict[Key, int] = {}
        # Shared by readers for as long as it is true.
        self._snapshot: Snapshot | None = None
        self._views: dict[str, Mapping[Key, Any]] = {}
        self._subscribers: dict[object, Callable[[], None]] = {}
        self._telling = False

    def apply(self, changes: Changes) -> None:
        """Take in what a transaction has changed; the first one has everything."""
        first = not hasattr(self, "run")
        grown = first or changes.run.revision > self.run.revision
        if first:
            self.entries = {key: changes.entries[key] for key in changes.run.plan.keys}
        elif changes.entries:
            self.entries.update(changes.entries)
            self.forget("entries")
        self.run, self.due_at, self._tally = changes.run, changes.due_at, changes.tally
        self._tests, self._bytes = changes.tests, changes.bytes
        for key, revision in changes.revisions.items():
            self._revisions.pop(key, None)
            self._revisions[key] = revision
        if grown:
            self._snapshot = None
            self._changed()

    @property
    def open_plugins(self) -> set[str]:
        """The plugins that have open entries."""
        return {kind.plugin for kind in self._tally if kind.state is State.RUNNING}

    def changes(self, since: int) -> dict[Key, int]:
        """The keys with a greater revision, with it and in its order."""
        newer = takewhile(lambda each: each[1] > since, reversed(self._revisions.items()))
        return dict(reversed(list(newer)))

    def snapshot(
        self, progress: dict[Key, StoredProgress], beats: dict[Key, Beat], **others: Any
    ) -> Snapshot:
        """The run as it is now, with `others` of its fields.

        Only what has changed since the last one is copied.
        """
        if self._snapshot is None:
            self._snapshot = Snapshot(
                plan=self.run.plan,
                revision=self.run.revision,
                phase=self.run.phase,
                started_at=self.run.started_at,
                entries=self._view("entries", self.entries),
                progress=self._view("progress", progress),
                beats=self._view("beats", beats),
                tar=self.run.tar,
                error=self.run.error,
                retrieved_at=self.run.retrieved_at,
                upload=self.run.upload,
                counted=self._tally,
                tests=self._tests,
                summed=self._bytes,
                **others,
            )
        return self._snapshot

    def forget(self, name: str) -> None:
        """Copy `entries`, `progress` or `beats` again for the next snapshot."""
        self._views.pop(name, None)
        self._snapshot = None

    def _view(self, name: str, current: dict[Key, Any]) -> Mapping[Key, Any]:
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = MappingProxyType(current.copy())
        return view

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after changes."""
        token = object()
        self._subscribers[token] = callback

        def unsubscribe() -> None:
            self._subscribers.pop(token, None)

        return unsubscribe

    def _changed(self) -> None:
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._telling = False
        for callback in tuple(self._subscribers.values()):
            callback()
