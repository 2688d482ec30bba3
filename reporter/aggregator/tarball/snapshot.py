"""The snapshot of the cluster: the one result of a plugin that lies at the top of the tarball.

There its readers look for it. Only what a snapshot has by its names gets there, and only from the
plugin that `status-ctl run` itself has started for it: no other can put anything beside `plugins`.
"""

import os
from pathlib import Path

from reporter.aggregator.tarball.content import Folder
from reporter.collect.snapshot.files import TOP
from reporter.run.plan import GLOBAL, Key
from reporter.run.record import Rank, Record
from reporter.run.state import Snapshot

_TOP = frozenset(map(str.encode, TOP))


def taken(snapshot: Snapshot, plugin: str) -> Record | None:
    """Return the result of this plugin, if there is one that is an archive."""
    entry = snapshot.entries.get(Key(plugin, GLOBAL))
    record = None if entry is None else entry.record
    if record is None or record.rank is not Rank.RESULT or not record.archive:
        return None
    return record


def part(opened: Folder) -> Folder:
    """Take what belongs to the top out of a result, and return it."""
    return Folder({name: opened.pop(name) for name in [*opened] if name in _TOP})


def yield_to(directory: Path, folder: Folder) -> None:
    """Remove the files of a folder that are on the disk as well."""
    for name in [*folder]:
        below, there = folder[name], directory / os.fsdecode(name)
        if isinstance(below, Folder):
            if there.is_dir():
                yield_to(there, below)
        elif there.exists():
            del folder[name]
