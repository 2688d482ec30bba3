"""Getting the disk in order at start: what a killed process left goes, what rows speak of is there.

Blocks: for threads. Nothing here fails because of our own debris.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reporter.aggregator.store.blobs import BlobStore
from reporter.aggregator.store.files import remove_content
from reporter.aggregator.store.layout import Layout
from reporter.core.run.entry import Entry
from reporter.core.run.plan import Key
from reporter.core.run.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the start found: entries whose bytes are gone, unknown blobs and unfinished things that
    were removed."""  # noqa: D209

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
    lost, unknown = _resume_blobs(blobs, snapshot.entries.values())
    return Recovered(lost, unknown, unfinished)


def _resume_blobs(blobs: BlobStore, entries: Iterable[Entry]) -> tuple[tuple[Key, ...], int]:
    """Return the keys whose bytes are gone, and how many unknown blobs were removed."""
    sizes: dict[str, int] = {}
    holders: Counter[str] = Counter()
    by_digest: list[tuple[str, Key]] = []
    for entry in entries:
        for record in (entry.record, entry.superseded):
            if record is not None and record.digest:
                sizes[record.digest] = record.size
                holders[record.digest] += 1
                if record is entry.record:
                    by_digest.append((record.digest, entry.key))
    lost, unknown = blobs.resume(sizes, holders)
    return tuple(key for digest, key in by_digest if digest in lost), unknown
