"""Getting the disk in order at start: what a killed process left goes, what rows speak of is there.

Blocks: for threads. Nothing here fails because of our own debris.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from reporter.ledger.blobs import BlobStore
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
    unfinished = _empty(layout.staging) + _empty(layout.unfinished)
    if snapshot.tar is not None:
        return Recovered((), 0, unfinished)
    entries = snapshot.entries.values()
    records = [each for entry in entries for each in (entry.record, entry.superseded) if each]
    lost, unknown = blobs.resume({each.blob: each.size for each in records if each.blob})
    keys = tuple(entry.key for entry in entries if entry.record and entry.record.blob in lost)
    return Recovered(keys, unknown, unfinished)


def _empty(folder: Path) -> int:
    """Remove everything in a directory; return how many things that were."""
    found = list(folder.iterdir())
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return len(found)
