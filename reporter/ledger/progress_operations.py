"""What happens to progress inside a transaction, and to what is written behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from reporter.ledger.contract import ProgressTaken
from reporter.ledger.transaction import Operation, Transaction, known, running
from reporter.run.plan import Key
from reporter.run.progress import Progress, StoredProgress, UpdateId, fitting, newest, take


def take_progress(
    key: Key,
    update: Progress,
    update_id: UpdateId | None,
    *,
    at: float,
    unwritten: StoredProgress | None,
    room: int,
) -> Operation[ProgressTaken]:
    """Combine an update with what is stored, or with what is newer and was only in memory.

    Its texts are kept if they fit into `room` bytes.
    """

    def operation(transaction: Transaction) -> ProgressTaken:
        if not running(transaction):
            return ProgressTaken.CLOSED
        before = newest(transaction.progress(key), unwritten)
        stored = take(before, update, update_id, at)
        if stored is None:
            return ProgressTaken.STALE
        transaction.put_progress({key: fitting(stored, room)})
        return ProgressTaken.APPLIED

    return operation


def write_behind(
    progress: Mapping[Key, StoredProgress],
    beats: list[tuple[Key, bool, float]],
    alive: tuple[float, float] | None,
    shown: Collection[Key] | None,
    *,
    probing: bool,
) -> Operation[None]:
    """Write what was only in memory; `probing` writes in any case.

    The run takes a number if anything of it is `shown` differently, and so do those entries.
    """

    def operation(transaction: Transaction) -> None:
        if shown is not None:
            transaction.put_entries(transaction.entries(shown).values())
            transaction.take_number()
        if progress:
            transaction.put_progress(progress)
        if beats:
            transaction.put_beats(beats)
        if probing or alive is not None:
            run = known(transaction)
            at, wall = alive or (run.alive_at, run.alive_wall)
            transaction.put_run(replace(run, alive_at=at, alive_wall=wall))

    return operation
