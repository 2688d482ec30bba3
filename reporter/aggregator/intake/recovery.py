"""Getting the disk in order at start: what a killed process left goes, what rows speak of is there.

Blocks: for threads. Nothing here fails because of our own debris.
"""

from dataclasses import dataclass

from reporter.ledger.blobs import BlobStore
from reporter.ledger.files import remove_content
from reporter.ledger.layout import Layout
from reporter.run.plan import Key
from reporter.run.state import Snapshot


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the start found: entries whose bytes are gone, unknown blobs and unfinished things that
    were removed."""

    lost: tuple[Key, ...]
    unknown: int
    unfinished: int


def recover(layout: Layout, blobs: BlobStore, snapshot: Snapshot) -> Recovered:
    """Remove everything unfinished and, unless the run is packed, compare blobs with rows.

    Raises OSError.
    """
    unfinished = remove_content(layout.staging) + remove_content(layout.unfinished)
    if snapshot.tar is not None:
        return Recovered((), 0, unfinished)
    entries = snapshot.entries.values()
    records = [each for entry in entries for each in (entry.record, entry.superseded) if each]
    lost, unknown = blobs.resume({each.blob: each.size for each in records if each.blob})
    keys = tuple(entry.key for entry in entries if entry.record and entry.record.blob in lost)
    return Recovered(keys, unknown, unfinished)
