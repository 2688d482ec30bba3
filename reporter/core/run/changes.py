"""What is different in a run since somebody last looked, for readers that follow its revisions.

Values only. When is looked, who is told and how it is written is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from reporter.core.run.beats import INTERVAL, Beat, stale
from reporter.core.run.entry import State
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Phase, Snapshot, final

WINDOW: Final = 1_000  # revisions that a reader may have missed and still be told the difference


@dataclass(frozen=True, slots=True)
class Changes:
    """What one look found, both in the order of the plan.

    `entries` are shown differently; of `heard` only the age of the last heartbeat is new, which
    needs no new revision.
    """

    entries: tuple[Key, ...]
    heard: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class History:
    """A run as it was last seen, and the revision at which each entry was last seen to differ.

    `first` is the revision with which it begins, `ended` the first at which the run was over.
    """

    snapshot: Snapshot
    first: int
    ended: int | None
    _stale: frozenset[Key]
    _changed: Mapping[Key, int] = field(default_factory=dict)

    @classmethod
    def begin(cls, snapshot: Snapshot, mono: float, interval: float = INTERVAL) -> Self:
        """Begin with a snapshot. `mono` is the clock of the heartbeats."""
        ended = snapshot.revision if final(snapshot) else None
        return cls(snapshot, snapshot.revision, ended, _stale(snapshot, mono, interval))

    def follow(
        self, new: Snapshot, mono: float, interval: float = INTERVAL
    ) -> tuple[Self, Changes]:
        """Return the history with a newer snapshot of the same run, and what is different in it."""
        old = self.snapshot
        # Who became stale is told with the revision that says so: else a reader that left in
        # between would know that revision without knowing the entry.
        grown = new.revision > old.revision
        silent = _stale(new, mono, interval) if grown else self._stale
        beaten = _differing(new.beats, old.beats)
        different = _differing(new.entries, old.entries) | _differing(new.progress, old.progress)
        different |= _differing(new.pods, old.pods)
        different |= {key for key in beaten if _began(old.beats.get(key), new.beats.get(key))}
        different |= silent ^ self._stale
        if new.phase is Phase.CLOSED and old.phase is not Phase.CLOSED:
            # The result status of those that are missing is known now.
            different |= {key for key, each in new.entries.items() if each.state is State.FAILED}
        entries, heard = (
            [key for key in new.entries if key in found] if found else []
            for found in (different, beaten - different)
        )
        ended = self.ended
        if ended is None and final(new):
            ended = new.revision
        changed = {**self._changed, **dict.fromkeys(entries, new.revision)}
        followed = replace(self, snapshot=new, ended=ended, _stale=silent, _changed=changed)
        return followed, Changes(tuple(entries), tuple(heard))

    def since(self, revision: int, window: int = WINDOW) -> tuple[Key, ...] | None:
        """The entries that differ from what a reader of this revision knows, in plan order.

        None if that cannot be told: the revision is too old, or was never given out here.
        """
        newest = self.snapshot.revision
        if not max(self.first, newest - window) <= revision <= newest:
            return None
        changed = self._changed
        return tuple(key for key in self.snapshot.entries if changed.get(key, -1) > revision)

    def told_end(self, revision: int) -> bool:
        """Whether a reader of this revision has seen the end of the run."""
        return self.ended is not None and self.ended <= revision <= self.snapshot.revision


def _differing(new: Mapping[Key, object], old: Mapping[Key, object]) -> set[Key]:
    """The keys whose value is another; the same objects, as nearly all are, are not compared."""
    if new is old:
        return set()
    others = {key for key in new.keys() | old.keys() if new.get(key) is not old.get(key)}
    return {key for key in others if new.get(key) != old.get(key)}


def _began(before: Beat | None, beat: Beat | None) -> bool:
    """Return whether the worker was heard for the first time, or has started to beat."""
    return beat is not None and (before is None or beat.armed is not before.armed)


def _stale(snapshot: Snapshot, mono: float, interval: float) -> frozenset[Key]:
    return frozenset(
        key
        for key, beat in snapshot.beats.items()
        if stale(beat, mono, interval) and not snapshot.entries[key].terminal
    )
