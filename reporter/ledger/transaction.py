"""An open transaction, and the rows it reads and writes. `operations` decides what happens in one.

Every change of an entry or of its progress, and of what is shown of the run, takes the next number
under the row of the run: its revision. Whoever knows revision N learns all the rest from the rows
with a greater one, and of two that commit, the later one never has the smaller number. Heartbeats
and signs of life take none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from reporter.ledger.contract import WrongRun
from reporter.run.entry import Entry, State
from reporter.run.plan import Key, Plan
from reporter.run.progress import StoredProgress
from reporter.run.state import Phase, Tar
from reporter.run.tar_upload import TarUpload

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """The one row about the run itself.

    `revision` is the number taken last. `alive_at` is when a process last said that it was there,
    `alive_wall` what the wall clock said then, `packing_failed_since` when the packing failed
    first. `launching` says that its plugins are launched by us, and that there may be objects of
    theirs, `retrieved_at` when the tarball was first downloaded as a whole, `upload` how its upload
    stands.
    """

    plan: Plan
    started_at: float
    phase: Phase = Phase.RUNNING
    revision: int = 0
    tar: Tar | None = None
    error: str | None = None
    alive_at: float = 0.0
    alive_wall: float = 0.0
    packing_failed_since: float | None = None
    launching: bool = False
    retrieved_at: float | None = None
    upload: TarUpload | None = None


class Changed(NamedTuple):
    """A row with the number that its last change has taken."""

    revision: int
    key: Key
    value: Entry | StoredProgress


class Transaction(Protocol):
    """An open transaction."""

    @property
    def run(self) -> Run | None:
        """The run as the transaction found it or put it, or nothing in a new store."""

    def create(self, run: Run) -> None:
        """Write a new run and an entry for each key of its plan, as revision 1."""

    def put_run(self, run: Run) -> None:
        """Write the run; where something of it is shown differently, that takes a number."""

    def take_number(self) -> None:
        """Let the run take a number as it is."""

    def entries(self, keys: Collection[Key]) -> dict[Key, Entry]:
        """Read these entries of the plan."""

    def entries_in(self, state: State) -> dict[Key, Entry]:
        """Read the entries in that state."""

    def due_entries(self, now: float) -> dict[Key, Entry]:
        """Read those for which time has run out at `now`, and no others."""

    def put_entries(self, entries: Collection[Entry]) -> None:
        """Write entries; each takes a number."""

    def progress(self, key: Key) -> StoredProgress | None:
        """Read the progress of a key."""

    def put_progress(self, sent: Mapping[Key, StoredProgress]) -> None:
        """Write the progress of some keys, where it is newer than what is there."""

    def put_beats(self, beats: Iterable[tuple[Key, bool, float]]) -> None:
        """Write, for some keys, whether they are armed and their last sign of life."""

    def armed(self) -> dict[Key, bool]:
        """Read which keys were heard, and whether by a real heartbeat."""

    def changes(self, since: int) -> list[Changed]:
        """Read the rows whose revision is greater, in its order."""


Operation = Callable[[Transaction], T]


def known(transaction: Transaction) -> Run:
    """Return the run of a store that was opened."""
    run = transaction.run
    if run is None:
        raise WrongRun("the store no longer holds the run")
    return run


def running(transaction: Transaction) -> bool:
    """Say whether the set of results is still open."""
    return known(transaction).phase is Phase.RUNNING
