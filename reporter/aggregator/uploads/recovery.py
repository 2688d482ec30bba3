"""Getting the disk in order at start: what a killed process left goes, what rows speak of is there.

Blocks: for threads. Nothing here fails because of our own debris.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reporter.aggregator.store.blobs import Blobs
from reporter.aggregator.store.files import remove_content
from reporter.aggregator.store.layout import Layout
from reporter.core.run.entry import Entry
from reporter.core.run.plan import Key


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the start found: entries whose bytes are gone, unknown blobs and unfinished things that
    were removed."""  # noqa: D209

    lost: tuple[Key, ...]
    unknown: int
    unfinished: int


def sweep(layout: Layout) -> int:
    """Remove everything unfinished; how many things. Raises OSError."""
    return remove_content(layout.staging) + remove_content(layout.unfinished)


def resume_blobs(blobs: Blobs, entries: Iterable[Entry]) -> tuple[tuple[Key, ...], int]:
    """Compare blobs with rows: the keys whose bytes are gone, and how many blobs were removed.

    Raises OSError.
    """
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
